"""Files as they lie there later: what was written a moment ago is read again at the next look."""

import os
from pathlib import Path


def age(folder: Path) -> Path:
    """Has every topic file below the folder look a minute older, their order kept; gives the folder."""
    for file in folder.rglob("*.md"):
        if file.is_file() and not file.is_symlink():
            status = file.stat()
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 60_000_000_000))
    return folder
