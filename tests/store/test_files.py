import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from recall.errors import TopicError, UnsafePathError
from recall.store import disk
from recall.store.files import atomic_write, confine, read_text, replace_exactly

LIMIT = 10_000


def written(folder: Path, data: bytes, name: str = "a.md") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file


# --- read_text


def test_text_is_read_as_it_is_with_its_line_ends(tmp_path: Path) -> None:
    file = written(tmp_path, "一\r\ntwo\rthree\n".encode())
    assert read_text(file, max_bytes=LIMIT) == ("一\r\ntwo\rthree\n", ())


def test_an_empty_file_is_an_empty_text(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, b""), max_bytes=LIMIT) == ("", ())


def test_a_byte_order_mark_is_stripped_without_a_word(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, b"\xef\xbb\xbf---\n"), max_bytes=LIMIT) == ("---\n", ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_wide_encoding_with_its_mark_is_decoded_with_a_warning(tmp_path: Path, encoding: str) -> None:
    file = written(tmp_path, ("\ufeff" + "记忆 memory").encode(encoding))
    text, warnings = read_text(file, max_bytes=LIMIT)
    assert text == "记忆 memory"
    assert len(warnings) == 1
    assert "save it as UTF-8" in warnings[0]


def test_a_cut_off_wide_file_is_kept_with_two_warnings(tmp_path: Path) -> None:
    text, warnings = read_text(written(tmp_path, "\ufeffab".encode("utf-16-le")[:-1]), max_bytes=LIMIT)
    assert text == "a\ufffd"
    assert len(warnings) == 2


def test_bytes_that_are_not_utf8_become_replacement_characters_with_a_warning(tmp_path: Path) -> None:
    text, warnings = read_text(written(tmp_path, b"caf\xe9 au lait"), max_bytes=LIMIT)
    assert text == "caf\ufffd au lait"
    assert len(warnings) == 1
    assert "UTF-8" in warnings[0]


def test_a_replacement_character_that_was_there_before_is_no_warning(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, "a\ufffdb".encode()), max_bytes=LIMIT) == ("a\ufffdb", ())


def test_a_single_nul_in_a_text_is_kept_with_a_warning(tmp_path: Path) -> None:
    text, warnings = read_text(written(tmp_path, b"---\nname: A\0B\n---\n"), max_bytes=LIMIT)
    assert text == "---\nname: A\0B\n---\n"
    assert warnings == ("holds 1 NUL character",)


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\0\0\n\0",
        b"\x1f\x8b\x08\0\0\0\0\0\xff\xfe",
        b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0",
        b"text" + bytes(5_000),
    ],
    ids=["one NUL", "no text", "gzip", "UTF-16 without a mark", "zeros after a crash"],
)
def test_binary_data_is_refused_with_advice(tmp_path: Path, data: bytes) -> None:
    file = written(tmp_path, data)
    with pytest.raises(TopicError, match="looks binary; save it as UTF-8") as caught:
        read_text(file, max_bytes=LIMIT)
    assert caught.value.path == file


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, b"x" * 100), max_bytes=100)[0] == "x" * 100
    with pytest.raises(TopicError, match="limit of 100 bytes; split it"):
        read_text(written(tmp_path, b"x" * 101), max_bytes=100)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(TopicError, match="a pipe, socket or device, not a regular file"):
        read_text(tmp_path / "pipe.md", max_bytes=LIMIT)


def test_a_link_to_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.md").symlink_to("pipe")
    with pytest.raises(TopicError, match="not a regular file"):
        read_text(tmp_path / "a.md", max_bytes=LIMIT)


def test_a_pipe_that_takes_the_place_of_a_file_between_look_and_open_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = written(tmp_path, b"x", "before.md").stat()
    os.mkfifo(tmp_path / "a.md")
    monkeypatch.setattr(Path, "stat", lambda _self: seen)
    with pytest.raises(TopicError, match="not a regular file"):
        read_text(tmp_path / "a.md", max_bytes=LIMIT)


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind("s.md")
        with pytest.raises(TopicError, match="not a regular file"):
            read_text(Path("s.md"), max_bytes=LIMIT)


def test_a_device_is_refused() -> None:
    with pytest.raises(TopicError, match="not a regular file"):
        read_text(Path("/dev/zero"), max_bytes=LIMIT)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopicError, match="a folder, not a regular file"):
        read_text(tmp_path, max_bytes=LIMIT)


def test_a_missing_file_raises_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "gone.md", max_bytes=LIMIT)


# --- atomic_write


def test_what_is_written_can_be_read_back_byte_for_byte(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a.md", "一\r\nb\n\0")
    assert (tmp_path / "a.md").read_bytes() == "一\r\nb\n\0".encode()


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "a.md", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_mode_of_an_existing_file_is_kept(tmp_path: Path, mode: int) -> None:
    file = written(tmp_path, b"old")
    file.chmod(mode)
    atomic_write(file, "new")
    assert (stat.S_IMODE(file.stat().st_mode), file.read_text(encoding="utf-8")) == (mode, "new")


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    target = written(tmp_path, b"old", "real.md")
    (tmp_path / "a.md").symlink_to("real.md")
    atomic_write(tmp_path / "a.md", "new")
    assert (tmp_path / "a.md").is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_reader_that_has_the_old_file_open_keeps_the_old_content(tmp_path: Path) -> None:
    file = written(tmp_path, b"old content")
    with file.open(encoding="utf-8") as stream:
        atomic_write(file, "new")
        assert stream.read() == "old content"


def test_nothing_but_the_file_is_left_behind(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a.md", "x")
    atomic_write(tmp_path / "a.md", "y")
    assert os.listdir(tmp_path) == ["a.md"]  # noqa: PTH208 - names only


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path: Path) -> None:
    name = "长" * 84 + ".md"
    atomic_write(tmp_path / name, "x")
    assert (tmp_path / name).read_bytes() == b"x"


def test_half_a_character_is_refused_with_its_line_and_the_old_file_stays(tmp_path: Path) -> None:
    file = written(tmp_path, b"old")
    with pytest.raises(TopicError) as caught:
        atomic_write(file, "one\ntwo \ud83d\n")
    assert caught.value.line == 2
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.md"]  # noqa: PTH208 - names only


def test_a_failing_replace_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file = written(tmp_path, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(file, "new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.md"]  # noqa: PTH208 - names only


def test_a_pipe_or_folder_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    for name in ("pipe.md", "folder.md"):
        with pytest.raises(TopicError, match="not a regular file"):
            atomic_write(tmp_path / name, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe.md").stat().st_mode)


# --- confine


def test_a_path_inside_is_given_back_resolved(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    (root / "a").mkdir(parents=True)
    assert confine("a/../b.md", root) == (root / "b.md").resolve()
    assert confine(root / "a", root) == (root / "a").resolve()
    assert confine(".", root) == root.resolve()


@pytest.mark.parametrize("name", ["..name", "..name/x.md", "a/..b", "...", "a/.../b.md"])
def test_a_name_that_starts_with_two_dots_is_inside(tmp_path: Path, name: str) -> None:
    assert confine(name, tmp_path) == tmp_path.resolve() / name


@pytest.mark.parametrize("path", ["..", "../x.md", "a/../../x.md", "/etc/passwd", "../memory-2/x.md"])
def test_a_path_outside_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "memory-2").mkdir()
    root = tmp_path / "memory"
    root.mkdir()
    with pytest.raises(UnsafePathError) as caught:
        confine(path, root)
    assert (caught.value.path, caught.value.root) == (Path(path), root)


def test_a_link_out_of_the_root_is_refused_and_one_inside_is_followed(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    (root / "sub").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to("sub")
    assert confine("in/a.md", root) == (root / "sub/a.md").resolve()
    with pytest.raises(UnsafePathError):
        confine("out/a.md", root)


def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    assert confine("a.md", tmp_path / "root") == (tmp_path / "real/a.md").resolve()
    assert confine(tmp_path / "root/a.md", tmp_path / "root") == (tmp_path / "real/a.md").resolve()


def test_a_path_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError):
        confine("a\0b", tmp_path)


# --- replacing exactly what was seen


@pytest.mark.parametrize("can_exchange", [True, False])
def test_content_is_replaced_only_where_it_is_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(disk, "exchange", lambda _one, _other: False)
    file = tmp_path / "a.md"
    assert replace_exactly(file, None, b"first")
    assert not replace_exactly(file, None, b"second")
    assert not replace_exactly(file, b"else", b"second")
    assert file.read_bytes() == b"first"
    file.chmod(0o640)
    assert replace_exactly(file, b"first", b"second")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"second", 0o640)
    assert not replace_exactly(tmp_path / "gone.md", b"first", b"second")
    assert [found.name for found in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="this system cannot exchange files")
def test_an_edit_at_the_last_moment_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"first")
    exchange = disk.exchange

    def late(one: Path, other: Path) -> bool:
        monkeypatch.setattr(disk, "exchange", exchange)
        file.write_bytes(b"by somebody else")  # after the last look, before the exchange
        return exchange(one, other)

    monkeypatch.setattr(disk, "exchange", late)
    assert not replace_exactly(file, b"first", b"second")
    assert file.read_bytes() == b"by somebody else"
    assert [found.name for found in tmp_path.iterdir()] == ["a.md"]
