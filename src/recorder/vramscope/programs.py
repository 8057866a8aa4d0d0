"""The program `vramscope`, which a wheel puts beside Python."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def program() -> str:
    """Path of the program: of this environment, else of `PATH`; raises if there is none."""
    name = "vramscope.exe" if os.name == "nt" else "vramscope"
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    if hasattr(sysconfig, "get_preferred_scheme"):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            "The program vramscope is not in this environment. Install it with: pip install vramscope"
        )
    return found
