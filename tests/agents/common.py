"""Where the program and the Python package are."""

from __future__ import annotations

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "src", "recorder")


def program() -> str:
    """The program that the tests' build has made."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    return os.path.join(target, "debug", "vramscope")


def environment(home: str) -> dict[str, str]:
    """Variables under which no hub is asked, and nothing is kept beyond `home`."""
    return {
        **os.environ,
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "HF_HUB_OFFLINE": "1",
        "PATH": os.path.dirname(program()) + os.pathsep + os.environ.get("PATH", ""),
        "PYTHONPATH": PACKAGE,
    }
