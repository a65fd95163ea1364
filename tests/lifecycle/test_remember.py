"""A fact is new, known, said better or a change; what is written down for it is read back as the same fact."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall.errors import StalePlanError, TopicError
from recall.lifecycle.forget import Candidate, candidates, forgetting
from recall.lifecycle.remember import (
    Decision,
    Neighbour,
    Origin,
    Outcome,
    comparable,
    decide,
    fact_of,
    foldered,
    slug_of,
)
from recall.store.applying import apply
from recall.store.frontmatter import parse
from recall.store.plan import Folder, IndexMode
from recall.store.topics import Entry, MemoryType, Scope, Topic, parse_entries, parse_topic

NOW = 1_790_000_000.0  # 2026-09-21
DAY = 86_400.0
TUESDAY = "Deploys to production happen on Tuesday"
THURSDAY = "Deploys to production happen on Thursday"
FRIDAY = "Deploys to production happen on Friday"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "memory").mkdir()
    return Folder(tmp_path / "memory", index=IndexMode.OFF)


def topics(folder: Folder) -> list[Topic]:
    return [
        parse_topic(
            file.read_bytes().decode("utf-8", "replace"),
            path=file.relative_to(folder.root).as_posix(),
            scope=folder.scope,
            mtime=file.stat().st_mtime,
            file=file,
        )
        for file in sorted(folder.root.rglob("*.md"))
    ]


def neighbours(*folders: Folder, cosine: float = 0.9) -> list[Neighbour]:
    return [Neighbour(one, cosine) for folder in folders for one in candidates(topics(folder))]


def put(folder: Folder, path: str, text: str) -> Path:
    file = folder.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


def decided(text: str, folder: Folder, among: Sequence[Neighbour] | None = None, *, now: float = NOW) -> Decision:
    fact = fact_of(text, MemoryType.PROJECT, Origin.OWNER)
    return decide(fact, neighbours(folder) if among is None else among, folder, now=now)


def remember(text: str, folder: Folder, *, now: float = NOW) -> Outcome:
    decision = decided(text, folder, now=now)
    apply(decision.plan, now=now)
    return decision.outcome


def said(folder: Folder) -> dict[str, list[Entry]]:
    return {topic.path: parse_entries(topic.body) for topic in topics(folder)}


# --- what becomes of a fact


def test_a_new_fact_gets_a_file_of_its_own(folder: Folder) -> None:
    assert remember(TUESDAY, folder) is Outcome.CREATED
    (topic,) = topics(folder)
    assert topic.path == "project_deploys-to-production-happen-on-tuesday.md"
    assert (topic.title, topic.description, topic.type, topic.body) == (TUESDAY, TUESDAY, MemoryType.PROJECT, TUESDAY)
    assert parse(topic.file.read_text(encoding="utf-8")).first("origin") == "owner"


@pytest.mark.parametrize("again", [TUESDAY, f"  {TUESDAY.upper()}. ", f"- {TUESDAY}"])
def test_the_same_again_changes_nothing(folder: Folder, again: str) -> None:
    remember(TUESDAY, folder)
    decision = decided(again, folder)
    assert decision.outcome is Outcome.KNOWN
    assert not decision.plan
    assert decision.other is not None
    assert decision.id == decision.other.id


def test_newer_words_for_the_same_take_the_place_of_the_older_ones(folder: Folder) -> None:
    put(folder, "many.md", "---\nname: Many\n---\n\nUse tabs in Go code\n\nWhy: gofmt\n\nOther\n")
    assert remember("In Go code, use tabs", folder) is Outcome.UPDATED
    assert said(folder) == {"many.md": [Entry("In Go code, use tabs", why="gofmt"), Entry("Other")]}
    assert topics(folder)[0].title == "Many"


def test_words_that_say_less_take_no_place(folder: Folder) -> None:
    put(folder, "a.md", "Always use tabs in Go code please\n")
    assert remember("use tabs in Go code", folder) is Outcome.KNOWN
    assert said(folder) == {"a.md": [Entry("Always use tabs in Go code please")]}


def test_a_changed_fact_keeps_the_old_one_dated_beside_it(folder: Folder) -> None:
    remember(TUESDAY, folder)
    (old,) = topics(folder)
    os.utime(old.file, (1_600_000_000, 1_600_000_000))
    assert remember(THURSDAY, folder) is Outcome.SUPERSEDED
    now, before = sorted(topics(folder), key=lambda topic: bool(topic.superseded_by))
    assert (now.path, now.body, now.title, now.description) == (old.path, THURSDAY, THURSDAY, THURSDAY)
    assert (before.body, before.superseded_by, before.superseded_on) == (TUESDAY, old.path, "2026-09-21")
    assert before.mtime == 1_600_000_000
    assert parse(now.file.read_text(encoding="utf-8")).first("supersedes") == before.path


def test_a_fact_that_changes_again_and_again_leaves_a_chain(folder: Folder) -> None:
    for text in (TUESDAY, THURSDAY, FRIDAY):
        remember(text, folder)
    assert remember(TUESDAY, folder, now=NOW + DAY) is Outcome.SUPERSEDED  # what held once may hold again
    found = topics(folder)
    assert [topic.body for topic in found if not topic.superseded_by] == [TUESDAY]
    assert sorted(topic.body for topic in found if topic.superseded_by) == [FRIDAY, THURSDAY, TUESDAY]
    assert len({topic.path for topic in found}) == 4
    assert remember(TUESDAY, folder) is Outcome.KNOWN


def test_one_of_many_facts_is_superseded_without_the_others(folder: Folder) -> None:
    put(folder, "many.md", f"---\r\nname: Many\r\n---\r\n- one\r\n- {TUESDAY}\r\n  - Why: quiet\r\n- two\r\n")
    decision = decided(THURSDAY, folder)
    assert (decision.outcome, decision.id) == (Outcome.SUPERSEDED, "many.md:1")
    apply(decision.plan, now=NOW)
    assert said(folder) == {
        "many.md": [Entry("one"), Entry(THURSDAY, why="quiet"), Entry("two")],
        "many-until-20260921.md": [Entry(TUESDAY, why="quiet")],
    }
    data = (folder.root / "many.md").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")


def test_old_text_with_broken_bytes_is_superseded_and_its_neighbours_keep_theirs(folder: Folder) -> None:
    file = put(folder, "a.md", f"broken \udcff bytes\n\n{TUESDAY}\n")
    assert remember(THURSDAY, folder) is Outcome.SUPERSEDED
    assert b"broken \xff bytes" in file.read_bytes()
    put(folder, "b.md", "Caf\udce9 opens on Tuesday\n\nother\n")
    chosen = [one for one in candidates(topics(folder)) if one.id == "b.md:0"]
    apply(forgetting(chosen, {folder.scope: folder}), now=NOW)
    assert said(folder)["b.md"] == [Entry("other")]


def test_what_was_superseded_is_neither_the_same_nor_changed_any_more(folder: Folder) -> None:
    put(folder, "old.md", f"---\nname: x\nsuperseded_by: new.md\n---\n{TUESDAY}\n")
    assert decided(TUESDAY, folder).outcome is Outcome.CREATED
    assert decided(THURSDAY, folder).outcome is Outcome.CREATED


def test_of_several_likenesses_the_same_comes_before_the_changed(folder: Folder) -> None:
    put(folder, "a.md", f"{THURSDAY}\n")
    put(folder, "b.md", f"{TUESDAY}\n")
    far, near = neighbours(folder)
    among = [Neighbour(far.candidate, 0.99), Neighbour(near.candidate, 0.9)]
    decision = decided(TUESDAY, folder, among)
    assert (decision.outcome, decision.id) == (Outcome.KNOWN, "b.md")


def test_without_likeness_nothing_is_merged(folder: Folder) -> None:
    put(folder, "a.md", "Use tabs in Go code\n")
    assert decided("In Go code, use tabs", folder, neighbours(folder, cosine=0.0)).outcome is Outcome.CREATED
    assert decided("The office has a new coffee machine", folder).outcome is Outcome.CREATED
    assert decided("Don't use tabs in Go code", folder).outcome is not Outcome.KNOWN


def test_a_file_that_changed_since_it_was_found_is_not_written_over(folder: Folder) -> None:
    file = put(folder, "a.md", f"{TUESDAY}\n")
    among = neighbours(folder)
    file.write_text("something else\n", encoding="utf-8")
    with pytest.raises(StalePlanError):
        decided(THURSDAY, folder, among)
    file.unlink()
    with pytest.raises(StalePlanError):
        decided(THURSDAY, folder, among)


def test_only_what_may_be_like_the_fact_is_compared_by_meaning(folder: Folder) -> None:
    put(folder, "many.md", f"{TUESDAY}\n\nThe office has a coffee machine\n\nProduction deploys happen on Tuesday\n")
    put(folder, "long.md", "## Notes\n\n" + f"{TUESDAY}\n" * 100)
    found = candidates(topics(folder))
    fact = fact_of(THURSDAY, MemoryType.PROJECT, Origin.OWNER)
    chosen = comparable(fact, found)
    assert "many.md:0" in [one.id for one in chosen]
    assert not {"many.md:1", "long.md"} & {one.id for one in chosen}
    left = [Neighbour(one, 0.9) for one in found if one not in chosen]
    assert decide(fact, left, folder, now=NOW).outcome is Outcome.CREATED


# --- scopes


def test_what_is_known_in_another_scope_is_known(folder: Folder, tmp_path: Path) -> None:
    user = Folder(tmp_path / "user", Scope.USER, IndexMode.OFF)
    put(user, "u.md", "Use tabs in Go code\n")
    for text in ("Use tabs in Go code", "In Go code, use tabs"):
        decision = decided(text, folder, neighbours(user))
        assert (decision.outcome, decision.id, bool(decision.plan)) == (Outcome.KNOWN, "user:u.md", False)


def test_what_holds_in_another_scope_is_not_changed_from_here(folder: Folder, tmp_path: Path) -> None:
    user = Folder(tmp_path / "user", Scope.USER, IndexMode.OFF)
    put(user, "u.md", f"{TUESDAY}\n")
    decision = decided(THURSDAY, folder, neighbours(user))
    assert (decision.outcome, decision.other) == (Outcome.CREATED, None)
    apply(decision.plan, now=NOW)
    assert said(user) == {"u.md": [Entry(TUESDAY)]}


def test_ids_of_the_user_scope_say_so(tmp_path: Path) -> None:
    user = Folder(tmp_path / "user", Scope.USER, IndexMode.OFF)
    assert decided(TUESDAY, user, []).id == "user:project_deploys-to-production-happen-on-tuesday.md"


# --- texts


def test_reasons_belong_to_their_fact(folder: Folder) -> None:
    remember("Use tabs\nWhy: gofmt\n**How to apply:** in Go", folder)
    assert list(said(folder).values()) == [[Entry("Use tabs", why="gofmt", how_to_apply="in Go")]]


def test_several_facts_come_into_one_file(folder: Folder) -> None:
    remember("- first thing\n- second thing\n", folder)
    assert list(said(folder).values()) == [[Entry("first thing"), Entry("second thing")]]


DOCUMENT = "## Steps\n\n1. build\n2. ship\n\n```sh\n- not a fact\n```\n\n> quoted"


def test_a_document_is_one_fact_and_stays_to_the_letter(folder: Folder) -> None:
    remember(DOCUMENT, folder)
    assert list(said(folder).values()) == [[Entry(DOCUMENT)]]
    assert remember(DOCUMENT, folder) is Outcome.KNOWN
    assert remember(DOCUMENT.replace("\n", "\r\n"), folder) is Outcome.KNOWN


NASTY = [
    "key: value # no comment",
    'she said "no: never"',
    "'quoted'",
    "--- three dashes",
    "# is the comment sign of YAML and shell",
    "{a: b} and [c]",
    "@here & *there | > %x `y` !z",
    "C:\\Users\\me\\notes",
    "true",
    "null and void",
    "2026-09-21",
    "用户：喜欢“简短”的回答 #重要",
    "🎉 released 🚀 v1.0",
    "a\u2028b\u2029c\x0bd\x85e",
    "zero\u200bwidth \u202eright to left",
    "Why: is all that is said",
    "- # is kept",
    "- 1. is kept",
    "<!-- hidden --> text",
    "[link](x.md) and [[wiki]]",
    "é composed and e\u0301 not",
]


@pytest.mark.parametrize("text", NASTY)
def test_no_text_breaks_the_header_or_is_read_back_as_another(folder: Folder, text: str) -> None:
    fact = fact_of(text, MemoryType.FEEDBACK, Origin.WEB)
    decision = decide(fact, [], folder, now=NOW)
    apply(decision.plan, now=NOW)
    (topic,) = topics(folder)
    assert parse_entries(topic.body) == list(fact.entries)
    assert topic.type is MemoryType.FEEDBACK
    assert topic.title == " ".join(fact.summary.split())
    assert set(parse(topic.file.read_text(encoding="utf-8")).fields) == {"name", "description", "type", "origin"}


@given(st.text(min_size=1, max_size=60))
@example("# \n---\nname: evil\n---\n")
@example("- # x")
@example("Why: x\ny")
def test_every_text_that_is_taken_is_read_back_as_it_was_said(text: str) -> None:
    try:
        fact = fact_of(text, MemoryType.PROJECT, Origin.OWNER)
    except TopicError:
        return
    (change,) = decide(fact, [], Folder(Path("/nowhere")), now=NOW).plan.changes
    assert change.after is not None
    front = parse(change.after.decode())
    assert parse_entries(front.body) == list(fact.entries)
    assert front.first("type") == "project"


@pytest.mark.parametrize("text", ["", " \n", "---", "…", "🎉", "a\0b", "half \ud83d", "x" * 70_000])
def test_what_says_nothing_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(TopicError):
        fact_of(text, MemoryType.PROJECT, Origin.OWNER)


def test_long_facts_are_cut_in_the_header_only(folder: Folder) -> None:
    text = "word 词 " * 100
    remember(text, folder)
    (topic,) = topics(folder)
    assert len(topic.title) <= 72
    assert len(topic.description) <= 150
    assert topic.description.endswith("…")
    assert topic.body == text.strip()


# --- names


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Use tabs, not spaces!", "use-tabs-not-spaces"),
        ("用户住在杭州", "用户住在杭州"),
        ("ＦＵＬＬ width", "full-width"),
        ("🎉 party", "party"),
        ("🎉…", "memory"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\\b:c*d?e", "a-b-c-d-e"),
        ("con", "con-fact"),
        ("NUL", "nul-fact"),
        ("aux.", "aux-fact"),
        ("COM¹", "com1-fact"),
        ("console", "console"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
    ],
)
def test_a_name_says_what_is_in_the_file_on_every_system(text: str, slug: str) -> None:
    assert slug_of(text) == slug


@given(st.text(max_size=200), st.sampled_from([0, 2, 99]))
def test_every_name_is_short_and_plain(text: str, number: int) -> None:
    slug = slug_of(text, number)
    assert slug
    assert len(slug.encode()) <= 48
    assert all(char.isalnum() or char == "-" for char in slug)
    assert PurePosixPath(foldered(MemoryType.USER, slug)).parts == ("user", f"{slug}.md")


def test_a_long_word_is_cut_between_characters() -> None:
    assert slug_of("词" * 100) == "词" * 13
    assert slug_of("short " + "x" * 100) == "short"


def test_a_name_that_is_taken_in_any_case_or_spelling_gets_a_number(folder: Folder) -> None:
    put(folder, "Project_DEPLOY.md", "x\n")
    put(folder, "project_e\u0301te\u0301.md", "x\n")
    (folder.root / "project_link.md").symlink_to("nowhere")
    (folder.root / "project_folder.md").mkdir()
    for text, path in (
        ("deploy", "project_deploy-2.md"),
        ("\u00e9t\u00e9", "project_\u00e9t\u00e9-2.md"),
        ("link", "project_link-2.md"),
        ("folder", "project_folder-2.md"),
    ):
        assert decided(text, folder, []).id == path
    put(folder, "project_deploy-2.md", "x\n")
    assert decided("deploy", folder, []).id == "project_deploy-3.md"


def test_a_topic_with_the_longest_name_can_be_superseded(folder: Folder) -> None:
    name = "长" * 84 + ".md"
    put(folder, f"sub/{name}", f"{TUESDAY}\n")
    assert remember(THURSDAY, folder) is Outcome.SUPERSEDED
    assert sorted(said(folder).values(), key=repr) == [[Entry(THURSDAY)], [Entry(TUESDAY)]]


def test_kinds_have_folders_where_the_memory_does(folder: Folder) -> None:
    fact = fact_of(TUESDAY, MemoryType.REFERENCE, Origin.AGENT)
    decision = decide(fact, [], folder, now=NOW, style=foldered)
    apply(decision.plan, now=NOW)
    assert [topic.path for topic in topics(folder)] == ["reference/deploys-to-production-happen-on-tuesday.md"]


def test_candidates_are_what_the_neighbours_are_of(folder: Folder) -> None:
    put(folder, "a.md", "one\n\ntwo\n")
    assert [(one.candidate.id, one.cosine) for one in neighbours(folder)] == [("a.md:0", 0.9), ("a.md:1", 0.9)]
    assert isinstance(neighbours(folder)[0].candidate, Candidate)
