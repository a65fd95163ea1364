"""Which complaints from the field have a test here, and why the others have none (spec: complaints).

A test of a complaint is called `test_<group><number>_<what is right>`, or names several of them in a row:
`test_c18_c20_...`. `test_manifest.py` holds both sides to each other.
"""

from typing import Final

_LATER: Final = "what writes MEMORY.md is not there yet"

COMPLAINTS: Final = {
    "A1": "",
    "A2": "",
    "A3": "",
    "A4": "",
    "A6": "",
    "B7": "",
    "B9": "",
    "B10": "",
    "B11": "",
    "B12": "",
    "B14": "",
    "B15": "",
    "B17": "",
    "C18": "",
    "C19": "",
    "C20": "",
    "C21": "",
    "C22": "",
    "D23": "",
    "D25": "",
    "D26": "",
    "D27": "",
    "D28": "",
    "E30": "",
    "E31": "",
    "F32": "",
    "F34": "",
    "F35": "",
    "F36": "",
    "F37": "",
    "F39": "",
    "G41": "",
    "G42": "",
    "G43": "",
    "H44": "",
    "H46": "where worktrees keep their memory; tests/store/test_hosts.py and tests/store/test_layout.py",
    "H47": "memory of project and user; tests/memory/test_memory.py",
    "I48": "",
    "I50": "gates of the light, deep and REM sleep, which are not there yet",
    "J52": "",
    "J54": "",
    "J55": "",
    "J57": "no installer changes settings of a host yet",
}
"""Reason why there is no test here, by group and number; "" where there is one."""
