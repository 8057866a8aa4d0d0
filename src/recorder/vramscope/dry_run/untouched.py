"""Nothing is written: what a run makes is taken away once it is recorded, and what was there stays as it was."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from typing import Any

from vramscope.dry_run.notes import Notes
from vramscope.record.patches import Patches

# Caches, by the variables that place them: they speed the next run up, and are no results.
CACHES = """XDG_CACHE_HOME HF_HOME HF_HUB_CACHE HF_DATASETS_CACHE HF_MODULES_CACHE TRANSFORMERS_CACHE TORCH_HOME
    TORCH_EXTENSIONS_DIR TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR MODELSCOPE_CACHE MPLCONFIGDIR NUMBA_CACHE_DIR
    PYTHONPYCACHEPREFIX""".split()

# Folders of libraries in a person's home.
HOMES = (".cache", ".config", ".triton", ".modelscope", ".nv", ".matplotlib", ".keras", ".deepspeed")

# Bytes of a file that is to be changed, up to which a copy is kept to put back.
COPIED = 64 << 20


class Untouched:
    """Watches what Python opens, makes and moves, and undoes it."""

    def __init__(self, notes: Notes, keep: str) -> None:
        """Watches from now on; the file at `keep` is the recording's own."""
        self.notes = notes
        self.keep = os.path.abspath(keep)
        self.made: list[str] = []
        self.saved: dict[str, str] = {}
        self.active = True
        self.within = False
        self.folder = tempfile.mkdtemp(prefix="vramscope-")
        home = os.path.expanduser("~")
        places = [tempfile.gettempdir(), "/dev", "/proc", "/sys", sys.prefix, sys.base_prefix]
        places += [os.path.join(home, name) for name in HOMES]
        places += [os.environ[name] for name in CACHES if os.environ.get(name)]
        # A working folder within the temporary one is a person's all the same.
        self.free = tuple(os.path.realpath(p) + os.sep for p in places)
        self.work = os.path.realpath(os.getcwd()) + os.sep
        sys.addaudithook(self.audit)

    def is_free(self, path: str) -> bool:
        """True for places that are nobody's results."""
        if path == self.keep or path.startswith(self.folder) or "__pycache__" in path:
            return True
        inside = [place for place in self.free if path.startswith(place)]
        return bool(inside) and not path.startswith(self.work)

    def audit(self, event: str, args: Any) -> None:
        """Sees an event of the interpreter before it happens."""
        if not self.active or self.within or event not in EVENTS:
            return
        self.within = True
        try:
            for path in written(event, args):
                self.before(path)
        finally:
            self.within = False

    def before(self, path: Any) -> None:
        """Notes what is about to be made, and keeps a copy of what is about to be changed."""
        if not isinstance(path, (str, bytes)):
            return
        path = os.path.realpath(os.fsdecode(path))
        if self.is_free(path):
            return
        if not os.path.lexists(path):
            self.made.append(path)
        elif os.path.isfile(path) and path not in self.saved and path not in self.made:
            if os.path.getsize(path) <= COPIED:
                copy = os.path.join(self.folder, str(len(self.saved)))
                shutil.copy2(path, copy)
                self.saved[path] = copy
            else:
                raise PermissionError(f"a dry run does not change {path}")

    def install(self, patches: Patches) -> None:
        """Leaves what was there before where it is, when a run would remove it."""
        for owner, names in ((os, ("remove", "unlink", "rmdir")), (shutil, ("rmtree",))):
            for name in names:
                patches.set(owner, name, self.sparing(getattr(owner, name)))

    def sparing(self, real: Any) -> Any:
        """A function that removes only what this run has made."""

        def remove(path: Any, *args: Any, **kwargs: Any) -> None:
            if isinstance(path, (str, bytes, os.PathLike)) and self.active:
                place = os.path.realpath(os.fsdecode(path))
                own = any(place == m or place.startswith(m + os.sep) for m in self.made)
                if os.path.lexists(place) and not own and not self.is_free(place):
                    self.notes.tell(os.path.relpath(place), "not removed")
                    return
            real(path, *args, **kwargs)

        return remove

    def undo(self) -> None:
        """Takes away what was made, the last first, and puts back what was changed."""
        self.active = False
        folders = {os.path.dirname(path) for path in self.made}
        for path in reversed(self.made):
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        for path, copy in self.saved.items():
            with contextlib.suppress(OSError):
                shutil.copy2(copy, path)
        shutil.rmtree(self.folder, ignore_errors=True)
        made = [path for path in self.made if os.path.dirname(path) not in self.made]
        if made and folders:
            shown = ", ".join(os.path.relpath(path) for path in made[:4])
            self.notes.tell(f"files: {shown}{' …' if len(made) > 4 else ''}", "written aside, and taken away")


EVENTS = {
    "open": None,
    "os.mkdir": None,
    "os.rename": None,
    "os.link": None,
    "os.symlink": None,
    "os.truncate": None,
    "os.remove": None,
    "sqlite3.connect": None,
}


def written(event: str, args: Any) -> tuple[Any, ...]:
    """Paths that an event makes or changes."""
    if event == "open":
        path, mode, flags = args
        if isinstance(mode, str):
            writes = any(c in mode for c in "wax+")
        else:
            writes = bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        return (path,) if writes else ()
    if event in ("os.rename", "os.link", "os.symlink"):
        return (args[0], args[1]) if event == "os.rename" else (args[1],)
    return (args[0],)
