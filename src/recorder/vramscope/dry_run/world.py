"""The rest of the world: trackers and the network, answered here."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import ipaddress
import os
import re
import socket
import sys
import threading
import time
from types import ModuleType
from typing import Any

from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError
from vramscope.record.patches import Patches

# Packages that send what a run logs.
TRACKERS = (
    "wandb",
    "swanlab",
    "mlflow",
    "comet_ml",
    "neptune",
    "clearml",
    "trackio",
    "aim",
    "dvclive",
    "tensorboardX",
    "codecarbon",
)

# Seconds that a command may wait at a time.
LONGEST_SLEEP = 0.01

# Switches of libraries that would look something up, before anything is imported.
OFFLINE = dict(
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    DISABLE_TELEMETRY="1",
    DO_NOT_TRACK="1",
    AXOLOTL_DO_NOT_TRACK="1",
    WANDB_MODE="disabled",
    TOKENIZERS_PARALLELISM="false",
)


class Nothing(ModuleType):
    """A module or an object whose every attribute and call does nothing."""

    __version__ = "9.0.0"

    def __getattr__(self, name: str) -> Any:
        """Another that does nothing."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = Nothing(name)
        setattr(self, name, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Itself, or a decorated function as it is."""
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else Nothing("answer")

    def __enter__(self) -> Any:
        """Enters nothing."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Leaves nothing."""

    def __iter__(self) -> Any:
        """No entries."""
        return iter(())

    def __bool__(self) -> bool:
        """Absent, as a run that was never begun."""
        return False

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keeps nothing."""

    def __getitem__(self, key: Any) -> Any:
        """Another that does nothing."""
        return Nothing(str(key))


def required(names: set[str]) -> set[str]:
    """Those that some installed package cannot be without: axolotl imports wandb whether or not a run is logged."""
    found = set()
    for distribution in importlib.metadata.distributions():
        for line in distribution.requires or ():
            name = re.split(r"[^\w.-]", line, maxsplit=1)[0].replace("-", "_")
            if name in names and "extra ==" not in line:
                found.add(name)
    return found


class Trackers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each tracker that is installed, asked for, or required by a tool that is installed."""

    def __init__(self, notes: Notes, words: list[str]) -> None:
        """Trackers that the environment has or should have, or that the command's words name."""
        said = " ".join(words)
        self.notes = notes
        asked = {n for n in TRACKERS if importlib.util.find_spec(n) is not None or re.search(rf"\b{n}\b", said)}
        self.names = asked | required(set(TRACKERS) - asked)
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The stand-in of a tracker or of a module within one."""
        if name.partition(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A module that does nothing."""
        if "." not in spec.name:
            self.notes.tell(spec.name, "answered by a stand-in: nothing is logged or sent")
        module = Nothing(spec.name)
        module.__path__ = []  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""

    def remove(self) -> None:
        """Finds no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in list(sys.modules):
            if name.partition(".")[0] in self.names and isinstance(sys.modules[name], Nothing):
                del sys.modules[name]


def reports(module: ModuleType, patches: Patches, notes: Notes) -> None:
    """Lets transformers report to nobody: its callbacks want their packages, which log and send."""

    def callbacks(report_to: Any) -> list[Any]:
        for name in report_to if isinstance(report_to, (list, tuple)) else [report_to]:
            if name and name != "none":
                notes.tell(str(name), "not reported to: nothing is logged or sent")
        return []

    patches.set_existing(module, get_reporting_integration_callbacks=callbacks)


def go_offline() -> None:
    """Tells libraries not to look anything up; before they are imported."""
    os.environ.update(OFFLINE)


def cut(patches: Patches, notes: Notes) -> None:
    """Lets no socket reach another host: who asks is told that there is no network, and it is noted."""

    def refuse(host: Any) -> None:
        notes.tell(f"network: {host}", "not reached; a dry run uses no network")
        raise OSError(f"a dry run uses no network, and {host} was asked for")

    def is_near(host: Any) -> bool:
        if host in (None, "", "localhost", b"localhost", socket.gethostname()):
            return True
        try:
            return ipaddress.ip_address(host if isinstance(host, str) else os.fsdecode(host)).is_loopback
        except ValueError:
            return False

    def connecting(real: Any) -> Any:
        def connect(self: Any, address: Any) -> Any:
            if isinstance(address, tuple) and not is_near(address[0]):
                refuse(address[0])
            return real(self, address)

        return connect

    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_near(host):
            notes.tell(f"network: {host}", "not reached; a dry run uses no network")
            raise socket.gaierror(socket.EAI_NONAME, f"a dry run uses no network, and {host} was asked for")
        return look_up(host, *args, **kwargs)

    sleep = time.sleep

    def doze(seconds: float) -> None:
        # Who waits in the main thread waits to ask again.
        main = threading.current_thread() is threading.main_thread()
        sleep(min(seconds, LONGEST_SLEEP) if main else seconds)

    patches.set(time, "sleep", doze)
    patches.set(socket, "getaddrinfo", getaddrinfo)
    patches.set(socket.socket, "connect", connecting(socket.socket.connect))
    patches.set(socket.socket, "connect_ex", connecting(socket.socket.connect_ex))


# What libraries say when they may not look something up.
OFFLINE_WORDS = re.compile(
    "a dry run uses no network|couldn.t connect to|offline mode|outgoing traffic has been disabled|Connection ?Error"
    "|Couldn.t reach|Failed to establish a new connection"
)


# Packages that bring a module of another name; for some of these a package of the module's name is another's.
PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dotenv": "python-dotenv",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "swift": "ms-swift",
    "yaml": "pyyaml",
}


def absent(module: str, within: str = "") -> str:
    """What to do for a module that is not there; `within` names a part of it, which alone may be missing."""
    if within not in ("", module) and importlib.util.find_spec(module) is not None:
        package = PACKAGES.get(module, module)
        version = ""
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = f" {importlib.metadata.version(package)}"
        return (
            f"The command needs {within}, which {package}{version} of {sys.executable} does not have: it wants another "
            f"version of {package}. Install the versions that go together, or have them found: "
            "vramscope dry-run --with TOOL …"
        )
    if os.path.isdir(module) or os.path.isfile(module + ".py"):
        return (
            f"The command needs {module}, which is here in {os.getcwd()}, where Python does not look: it searches a "
            f"script's own folder. Install it into {sys.executable} (pip install -e .), or put PYTHONPATH=. before the "
            "dry run."
        )
    package = PACKAGES.get(module, module)
    return (
        f"The command needs {module}, which {sys.executable} does not have. Install it there "
        f"(pip install {package}), or name the Python that has it: vramscope dry-run --python PATH …"
    )


def unfit(complaint: str) -> str | None:
    """What to do where a command was written for another version of a library; None for other complaints."""
    name = re.match(r"cannot import name '(\w+)' from '(\w+)([\w.]*)'", complaint)
    wanted = re.match(r"(\S+) is required for a normal functioning of this module, but found (\S+)\.(\s|$)", complaint)
    if name is not None:
        package = PACKAGES.get(name[2], name[2])
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None  # the command's own module
        needs = f"The command wants {name[1]} of {name[2]}{name[3]}, which {package} {version} does not have"
        found = f"{package}==VERSION"
    elif wanted is not None:
        needs, found = f"The command wants {wanted[1]}, and {wanted[2]} is installed", wanted[1]
    else:
        return None
    spec = "requirements.txt" if os.path.isfile("requirements.txt") else f"'{found},…'"
    return (
        f"{needs}: it was written for another version. Have an environment made of the versions that it names: "
        f"vramscope dry-run --with {spec} …, or name a Python that has them (--python PATH)."
    )


def explained(error: BaseException) -> RecordingError | None:
    """What to do where a script fails for want of the network or of a package; None for other errors."""
    seen: BaseException | None = error
    while seen is not None:
        kind = type(seen).__name__
        if isinstance(seen, ModuleNotFoundError) and seen.name:
            # Libraries that check versions put a sentence in place of the name.
            named = re.match(r"[\w.-]+$", seen.name) or re.search(r"'([\w.-]+)'", seen.name)
            top = named[0].strip("'").partition(".")[0] if named else seen.name
            return RecordingError(absent(top, named[0].strip("'") if named else top))
        if isinstance(seen, ImportError):
            why = unfit(str(seen))
            if why is not None:
                return RecordingError(why)
        if kind in ("LocalEntryNotFoundError", "OfflineModeIsEnabled") or OFFLINE_WORDS.search(str(seen)):
            return RecordingError(
                f"The command wants the network: {str(error).splitlines()[0][:300]}\nA dry run uses none. Fetch what "
                "it needs once (hf download ID), or give the path of a folder in place of the id; weights are not "
                "needed: config.json and the tokenizer's and processor's files are enough."
            )
        seen = seen.__cause__ or seen.__context__
    return None
