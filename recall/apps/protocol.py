"""How the hook client and the resident process find each other and talk: one JSON object a line over a Unix socket.

Every prompt of a host loads this module in a new process, so it imports little of the standard library and nothing
else, and names folders by strings: `pathlib` would cost more than the question and its answer.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from binascii import crc32

from recall import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
LONGEST_REQUEST = 256 * 1024
"""Bytes of one request with its newline."""
LONGEST_REPLY = 1024 * 1024
"""Bytes of one reply with its newline."""
LONGEST_QUERY = 8000
"""Characters of a prompt that are searched: its beginning and its end."""

SETTINGS_PREFIX = "RECALL_"
ENVIRONMENT = frozenset(
    {
        "HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
        "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_REMOTE_MEMORY_DIR",
        "CLAUDE_CODE_SIMPLE",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE",
        "QWEN_CODE_MEMORY_BASE_DIR",
        "QWEN_CODE_MEMORY_LOCAL",
        "QWEN_CODE_MEMORY_PROJECT_SCOPE",
        "QWEN_HOME",
        "QWEN_RUNTIME_DIR",
        "WAVE_DISABLE_AUTO_MEMORY",
    }
)
"""Variables that change which memory is found; who sets them differently gets a process of their own."""

# The shortest limit of the systems that have Unix sockets, without the closing NUL.
_LONGEST_PATH = 103
_PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid


class UnsafeFolderError(PermissionError):
    """A folder that others could have prepared for us."""


def socket_file(env: Mapping[str, str], *, longest: int = _LONGEST_PATH) -> str:
    """Where the process for this user, this release of recall and these variables listens; its folder is made.

    The folder is the user's runtime folder, else the cache folder, else one of the user's own in the temp folder.

    Args:
        env: environment variables.
        longest: bytes that a socket's path may have.

    Raises:
        UnsafeFolderError: the folder belongs to somebody else, or others may write there.
        OSError: the folder cannot be made.
    """
    name = f"{_fingerprint(env)}.sock"
    file = os.path.join(_runtime_folder(env) or cache_folder(env), name)
    if len(os.fsencode(file)) > longest:
        import tempfile  # slow to load and seldom needed

        own = f"recall-{os.getuid()}-{crc32(os.fsencode(file)):08x}"
        file = os.path.join(tempfile.gettempdir(), own, name)
    make_private(os.path.dirname(file))
    return file


def _fingerprint(env: Mapping[str, str]) -> str:
    known = sorted((name, env[name]) for name in env if name in ENVIRONMENT or name.startswith(SETTINGS_PREFIX))
    return f"{crc32(repr((VERSION, __version__, known)).encode('utf-8', 'surrogateescape')):08x}"


def _runtime_folder(env: Mapping[str, str]) -> str:
    """The folder that the system empties when the user has gone; "" where there is none."""
    for folder in (env.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.getuid()}"):
        if os.path.isabs(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.join(folder, "recall")
    return ""


def cache_folder(env: Mapping[str, str]) -> str:
    """The platform's cache folder of recall."""
    from recall.store import folders  # seldom needed where the user has a runtime folder

    return folders.cache_folder(env)


def make_private(folder: str) -> None:
    """Makes the folder when it is missing, for this user alone.

    Raises:
        UnsafeFolderError: it belongs to somebody else, or others may write there.
        OSError: it cannot be made.
    """
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise UnsafeFolderError(f"{folder} is not a folder of this user alone") from None
        if found.st_mode & 0o077:
            os.chmod(folder, 0o700)


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user; where the system cannot tell, the folder has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(uid == os.getuid())


def cut(query: str) -> str:
    """The query's beginning and end, where people ask, at a length that costs no time."""
    if len(query) <= LONGEST_QUERY:
        return query
    half = LONGEST_QUERY // 2
    return f"{query[:half]}\n{query[-half:]}"
