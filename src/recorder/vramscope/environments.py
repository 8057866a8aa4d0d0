"""Environments for dry runs: a tool with all that it needs, PyTorch's wheel of PyPI without NVIDIA's packages.

`python -m vramscope.environments SPEC…` prints the path of the Python that has them; a SPEC is what pip takes
(`ms-swift==4.6`, `trl>=1`), or the path of a requirements file. Needs the standard library alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# PyTorch that recordings were compared with; a newer one is taken where a SPEC names it.
TORCH = "torch<2.12"
# What vision-language models ask for and tools do not declare.
IMAGES = ("torchvision", "pillow", "num2words")
OF_TOOL = {"ms-swift": ("qwen-vl-utils",), "llamafactory": (), "trl": (), "axolotl": ()}
# Names that tools are called by.
ALIASES = {
    "swift": "ms-swift",
    "ms_swift": "ms-swift",
    "llama-factory": "llamafactory",
    "llama_factory": "llamafactory",
}
# Packages that run on a GPU alone: hundreds of megabytes that a dry run answers itself.
LEFT_OUT = re.compile(
    r"^(nvidia-.*|cuda-.*|triton|pytorch-triton.*|vllm|flash-attn.*|xformers|mamba-ssm|causal-conv1d)$"
)
# Packages that are shown with their versions.
SHOWN = ("ms-swift", "llamafactory", "trl", "axolotl", "deepspeed", "accelerate", "transformers", "peft", "torch")
# Changes whenever environments are made otherwise.
FORM = "2"
# Packages that are built from source and would look for a GPU.
BUILD = {
    "DS_BUILD_OPS": "0",
    "BUILD_CUDA_EXT": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


class NotMade(Exception):
    """Why there is no environment, in a sentence."""


def main(argv: Sequence[str]) -> int:
    """Makes the environment of these words, or finds it; prints its Python."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"vramscope dry-run: {text}", file=sys.stderr, flush=True)

    try:
        python = environment(list(argv), say)
    except NotMade as e:
        say(f"error: {e}")
        return 2
    except KeyboardInterrupt:
        say("stopped; the environment is not made.")
        return 130
    if time.monotonic() - began > 5:
        say(f"the environment is made, {time.monotonic() - began:.0f} s; it is kept for the next time")
    print(python)
    return 0


def name_of(spec: str) -> str:
    """The package that a SPEC names, as pip spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[=<>!~;@]", spec.strip(), maxsplit=1)[0]).lower()


def specs_of(words: Sequence[str]) -> list[str]:
    """What is asked for: SPECs, and the lines of requirements files."""
    found: list[str] = []
    for word in words:
        if word.endswith(".txt") or os.path.isfile(word):
            try:
                lines = Path(word).read_text(encoding="utf-8").splitlines()
            except OSError as e:
                raise NotMade(f'--with: "{word}" cannot be read ({e.strerror}).') from None
            found += [x for line in lines if (x := re.split(r"(?:^|\s)#", line)[0].strip()) and not x.startswith("-")]
        else:
            found += [part.strip() for part in word.split(",") if part.strip()] if "[" not in word else [word]
    made = []
    for spec in found:
        if not re.match(
            r"[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?\s*(([=<>!~]=?=?\s*[\w.*+!-]+)(,\s*[=<>!~]=?=?\s*[\w.*]+)*)?\s*(;.*)?$",
            spec,
        ):
            raise NotMade(f'--with takes packages such as ms-swift==4.6 or a requirements.txt; "{spec}" was given.')
        name = name_of(spec)
        made.append(ALIASES.get(name, name) + spec[len(re.match(r"[A-Za-z0-9][\w.-]*", spec)[0]) :])  # type: ignore[index]
    if not made:
        raise NotMade("--with names no package; give one such as ms-swift==4.6, or a requirements.txt.")
    return made


def cache() -> Path:
    """Where environments are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(home) / "vramscope" / "environments"


def environment(words: list[str], say: Any) -> Path:
    """The Python of an environment with these packages."""
    specs = specs_of(words)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    key = hashlib.sha256("\n".join([FORM, version, sys.platform, *sorted(specs)]).encode()).hexdigest()[:12]
    label = re.sub(r"[^\w.=-]", "", specs[0])[:40]
    folder = cache() / f"{label}-{key}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / "made_from").is_file() and python.exists():
        shown = json.loads((folder / "made_from").read_text(encoding="utf-8"))
        say(f"environment of {', '.join(specs)}: {versions(shown)}")
        return python
    say(f"making an environment of {', '.join(specs)} for Python {version}, in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    installer = Uv(python) if shutil.which("uv") else Pip(python)
    try:
        installer.create(folder)
        asked = [*specs, *more(specs)]
        if not any(name_of(s) == "torch" for s in specs):
            asked.append(TORCH)
        say("finding out which versions fit each other")
        chosen = beside_torch(installer, asked, installer.resolve(asked))
        kept = {name: v for name, v in chosen.items() if not LEFT_OUT.match(name)}
        dropped = len(chosen) - len(kept)
        say(f"{versions(kept)}; {len(kept)} packages, {dropped} of NVIDIA's and for GPUs left out")
        newest(specs, kept, say)
        install(installer, python, kept, say)
        (folder / "made_from").write_text(json.dumps(kept), encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return python


def more(specs: list[str]) -> list[str]:
    """What vision-language models need beside a tool."""
    named = {name_of(s) for s in specs}
    wanted = [*IMAGES, *(x for name in named for x in OF_TOOL.get(name, ()))]
    return [x for x in wanted if x not in named]


def beside_torch(installer: Any, asked: list[str], chosen: dict[str, str]) -> dict[str, str]:
    """The chosen versions, with torchaudio of PyTorch's own where there is one.

    torchaudio 2.11.1 declares `torch>=2.11`, and does not load beside 2.11.0: it calls a function of a later one.
    """
    torch, audio = (chosen.get(name, "").partition("+")[0] for name in ("torch", "torchaudio"))
    if not torch or not audio or torch == audio or any(name_of(spec) == "torchaudio" for spec in asked):
        return chosen
    try:
        return installer.resolve([*asked, f"torch=={torch}", f"torchaudio=={torch}"])
    except NotMade:
        return chosen  # none has been made for this PyTorch


def versions(chosen: dict[str, str]) -> str:
    """The tools' versions, for a person."""
    return ", ".join(f"{name} {chosen[name]}" for name in SHOWN if name in chosen)


def newest(specs: list[str], chosen: dict[str, str], say: Any) -> None:
    """Says which version was taken where none was asked for."""
    for spec in specs:
        name = name_of(spec)
        if spec == name and name in chosen:
            say(f"{name} {chosen[name]} is the newest that Python {sys.version.split()[0]} and the others allow")


def install(installer: Any, python: Path, chosen: dict[str, str], say: Any) -> None:
    """Installs the chosen versions, and makes PyTorch load without NVIDIA's libraries."""
    torch = chosen.get("torch")
    rest = [f"{name}=={version}" for name, version in chosen.items() if name != "torch"]
    if torch is not None:
        layer = cache() / f"torch-{torch}-{sys.version_info[0]}{sys.version_info[1]}"
        if not (layer / "made_from").is_file():
            say(f"fetching PyTorch {torch}, about 500 MB (once for all environments)")
            shutil.rmtree(layer, ignore_errors=True)
            installer.install([f"torch=={torch}"], layer)
            stand_ins(layer / "torch" / "lib")
            (layer / "made_from").write_text(torch, encoding="utf-8")
        linked(layer, packages_of(python))
    say(f"installing {len(rest)} packages")
    installer.install(rest, None)


def stand_ins(libraries: Path) -> None:
    """Stands in for the libraries that PyTorch's wheel links and a dry run never calls."""
    if sys.platform != "linux" or not libraries.is_dir():
        return
    missing = [tool for tool in ("cc", "readelf", "nm") if shutil.which(tool) is None]
    if missing:
        raise NotMade(
            f"PyTorch's wheel needs libraries that are stood in for, and {' and '.join(missing)} "
            "to make them: install a C compiler with its tools (Debian: apt-get install gcc), or give --python with an "
            "environment of your own."
        )
    script = Path(__file__).with_name("cuda_stand_ins.py")
    done = subprocess.run([sys.executable, str(script), str(libraries)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMade(f"NVIDIA's libraries could not be stood in for: {last(done.stderr)}")


def packages_of(python: Path) -> Path:
    """`site-packages` of an environment."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip())


def linked(source: Path, target: Path) -> None:
    """Puts the files of a folder into another without copying them, where the system can."""
    for folder, _, names in os.walk(source):
        made = target / os.path.relpath(folder, source)
        made.mkdir(parents=True, exist_ok=True)
        for name in names:
            here = os.path.join(folder, name)
            if os.path.dirname(here) == str(source):
                continue
            try:
                os.link(here, made / name)
            except OSError:
                shutil.copy2(here, made / name)


def last(text: str) -> str:
    """The lines of a program's errors that say why."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"(ERROR|error|\W+ No|Because|hint)", line)] or lines
    return " ".join(told[:3])[:600] or "no reason was given"


def run(words: list[str], what: str) -> str:
    """What an installer prints; raises with what it complained of."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **BUILD})
    if done.returncode:
        raise NotMade(f"{what}: {last(done.stderr or done.stdout)}")
    return done.stdout


class Pip:
    """`venv` and pip."""

    def __init__(self, python: Path) -> None:
        """Of the environment whose Python this is."""
        self.python = str(python)

    def create(self, folder: Path) -> None:
        """Makes an empty environment."""
        run(
            [sys.executable, "-m", "venv", str(folder)], f"{sys.executable} makes no environment (Debian: python3-venv)"
        )

    def pip(self, *words: str, what: str) -> str:
        """Runs pip."""
        return run([self.python, "-m", "pip", *words], what)

    def resolve(self, specs: list[str]) -> dict[str, str]:
        """Versions of all packages that these need, which are not fetched."""
        out = self.pip(
            "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-", *specs,
            what=f"{', '.join(specs)} cannot be installed together",
        )  # fmt: skip
        rows = json.loads(out[out.index("{") :])["install"]
        return {name_of(row["metadata"]["name"]): row["metadata"]["version"] for row in rows}

    def install(self, pinned: list[str], target: Path | None) -> None:
        """Installs exactly these."""
        where = [] if target is None else ["--target", str(target)]
        words = ["install", "--quiet", "--no-deps", "--no-compile", *where, *pinned]
        self.pip(*words, what="the packages cannot be installed")


class Uv:
    """uv, which is faster."""

    def __init__(self, python: Path) -> None:
        """Of the environment whose Python this is."""
        self.python = str(python)

    def create(self, folder: Path) -> None:
        """Makes an empty environment."""
        run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], "uv makes no environment")

    def resolve(self, specs: list[str]) -> dict[str, str]:
        """Versions of all packages that these need, which are not fetched."""
        asked = Path(self.python).parent / "asked.in"
        asked.write_text("\n".join(specs), encoding="utf-8")
        out = run(
            ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", self.python, str(asked)],
            f"{', '.join(specs)} cannot be installed together",
        )
        rows = re.findall(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==(\S+)", out, re.MULTILINE)
        return {name_of(name): version for name, version in rows}

    def install(self, pinned: list[str], target: Path | None) -> None:
        """Installs exactly these."""
        where = [] if target is None else ["--target", str(target)]
        run(
            ["uv", "pip", "install", "--quiet", "--no-deps", "--python", self.python, *where, *pinned],
            "the packages cannot be installed",
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
