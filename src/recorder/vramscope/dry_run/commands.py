"""What a command line runs in Python: a script, a module, a program of the environment, or a notebook."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata

from vramscope.record.errors import RecordingError

# Programs that start another one with the words that follow, and their options that take a word.
WRAPPERS: dict[str, tuple[str, ...]] = {
    "env": ("-u", "--unset", "-C", "--chdir"),
    "exec": (),
    "nohup": (),
    "time": ("-f", "-o"),
    "sudo": ("-u", "-g"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "stdbuf": ("-o", "-e", "-i"),
    "setsid": (),
    "command": (),
    "timeout": ("-k", "-s"),
    "numactl": (),
    "srun": ("-n", "-N", "-c", "-p", "-J", "-w", "-t", "-A", "-q", "-G"),
    "uv run": ("--with", "--extra", "--group", "-p", "--python", "--project"),
    "poetry run": (),
    "pipenv run": (),
    "pdm run": (),
    "pixi run": ("-e",),
    "conda run": ("-n", "--name", "-p", "--prefix"),
    "mamba run": ("-n", "--name", "-p", "--prefix"),
}
# Wrappers whose first word that is no option is not yet the program.
ONE_MORE = ("timeout",)

# Options of Python that take the next word.
PYTHON_VALUES = ("-X", "-W", "--check-hash-based-pycs")

# Subcommands that train, of programs that do other things too.
TRAINS: dict[str, tuple[str, ...]] = {
    "swift": ("sft", "pt", "rlhf"),
    "llamafactory-cli": ("train",),
    "lmf": ("train",),
    "axolotl": ("train",),
    "accelerate": ("launch",),
    "trl": ("sft", "dpo", "grpo", "kto", "reward", "rloo", "ppo", "orpo", "cpo", "online_dpo", "gkd"),
    "tune": ("run",),
}
LAUNCHERS = ("torchrun", "accelerate-launch", "deepspeed")
# Modules that start no training.
OTHER_MODULES = (
    "pip",
    "venv",
    "http",
    "json",
    "ensurepip",
    "wandb",
    "tensorboard",
    "huggingface_hub",
    "ipykernel",
    "vllm",
)


@dataclass
class Program:
    """Something that Python runs, with its arguments and what the command sets in its environment."""

    kind: str  # script, module, entry, notebook, shell
    target: str
    args: list[str]
    env: dict[str, str] = field(default_factory=dict)
    wrapped: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[str]:
        """The words of the command, for the recording's header."""
        return (["-m", self.target] if self.kind == "module" else [self.target]) + self.args


def resolve(words: Sequence[str], cwd: str = ".") -> Program:
    """What these words run; raises if nobody knows."""
    words = list(words)
    env: dict[str, str] = {}
    wrapped: list[str] = []
    while words:
        assigned = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", words[0], re.DOTALL)
        if assigned:
            env[assigned[1]] = assigned[2]
            words = words[1:]
            continue
        rest = _unwrapped(words)
        if rest is None:
            break
        wrapped.append(" ".join(words[: len(words) - len(rest)]))
        words = rest
    if not words:
        raise RecordingError("The command sets variables and runs nothing.")
    first, args = words[0], words[1:]
    name = os.path.basename(first)
    path = first if cwd == "." else os.path.join(cwd, first)
    if re.fullmatch(r"(python|pypy)[0-9.]*(\.exe)?", name):
        return _python(first, args, env, wrapped, cwd)
    if name in ("bash", "sh", "zsh", "dash"):
        while args and args[0].startswith(("-", "+")) and args[0] != "-c":
            args = args[2:] if args[0] in ("-o", "+o", "-O", "+O") else args[1:]
        if not args or args[0] == "-c":
            raise RecordingError(
                f"Give the command itself, or the file of a script, in place of `{name} {' '.join(args[:1])}`."
            )
        return Program("shell", os.path.join(cwd, args[0]), args[1:], env, wrapped)
    if first.endswith((".sh", ".bash", ".slurm", ".sbatch")):
        return Program("shell", path, args, env, wrapped)
    if name == "sbatch":
        scripts = [word for word in args if not word.startswith("-")]
        if scripts:
            return Program("shell", scripts[0], args[args.index(scripts[0]) + 1 :], env, [*wrapped, "sbatch"])
    if first.endswith(".ipynb"):
        return Program("notebook", existing(path, first), args, env, wrapped)
    if first.endswith((".yaml", ".yml", ".json", ".toml")):
        return _configuration(existing(path, first), args, env)
    if first.endswith(".py") or _is_python(path):
        return Program("script", existing(path, first), args, env, wrapped)
    if first.endswith(os.sep) or os.path.isdir(path):
        raise RecordingError(f'"{first}" is a folder. Give the command that trains, or the file that starts it.')
    if entry(name) is not None:
        return Program("entry", name, args, env, wrapped)
    found = shutil.which(first) or _beside(name)
    if found is not None and _is_python(found):
        return Program("script", found, args, env, wrapped)
    raise RecordingError(unknown(first, found))


def _unwrapped(words: list[str]) -> list[str] | None:
    """The words without a program that only starts the rest; None if the first is none."""
    for length in (2, 1):
        name = " ".join([os.path.basename(words[0]), *words[1:length]])
        if len(words) > length and name in WRAPPERS:
            takes, rest = WRAPPERS[name], words[length:]
            more = 1 if name in ONE_MORE else 0
            while rest and (rest[0].startswith("-") or more):
                more -= 0 if rest[0].startswith("-") else 1
                rest = rest[2:] if rest[0] in takes else rest[1:]
            return rest
    return None


def _python(first: str, args: list[str], env: dict[str, str], wrapped: list[str], cwd: str) -> Program:
    """What `python …` runs."""
    i = 0
    while i < len(args):
        word = args[i]
        if word == "-m":
            if i + 1 == len(args):
                raise RecordingError("-m needs the name of a module to run.")
            return Program("module", args[i + 1], args[i + 2 :], env, wrapped)
        if word == "-c":
            raise RecordingError("`python -c` runs a line, which is no training; give the command that trains.")
        if not word.startswith("-") or word == "-":
            break
        i += 2 if word in PYTHON_VALUES else 1
    if i >= len(args) or args[i] == "-":
        raise RecordingError(f"`{first}` alone waits for a person; give the script that trains after it.")
    path = args[i] if cwd == "." else os.path.join(cwd, args[i])
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    return Program("script", existing(path, args[i]), args[i + 1 :], env, wrapped)


def existing(path: str, named: str) -> str:
    """The path of a file that is there."""
    if not os.path.isfile(path):
        folder = os.path.dirname(os.path.abspath(path))
        near = difflib.get_close_matches(os.path.basename(path), os.listdir(folder) if os.path.isdir(folder) else [], 1)
        hint = f' Did you mean "{os.path.join(os.path.dirname(named), near[0])}"?' if near else ""
        # The folder from which it was named, so that both together are the path that was looked at.
        root = os.path.abspath(path).removesuffix(os.path.normpath(named)).rstrip(os.sep)
        raise RecordingError(f'There is no file "{named}"{f" in {root}" if root else ""}.{hint}')
    return path


def _is_python(path: str) -> bool:
    """True if a file is a script whose first lines name Python."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(512)
    return head.startswith(b"#!") and b"python" in b"".join(head.splitlines()[:3])


def _beside(name: str) -> str | None:
    """A program beside the Python that runs."""
    path = os.path.join(os.path.dirname(sys.executable), name)
    return path if os.path.isfile(path) else None


def entry(name: str) -> metadata.EntryPoint | None:
    """A program that the environment's packages declare."""
    found = metadata.entry_points(group="console_scripts", name=name)
    return next(iter(found), None)


# Packages by the programs that they bring.
BRINGS = {
    "swift": "ms-swift",
    "megatron": "ms-swift",
    "llamafactory-cli": "llamafactory",
    "lmf": "llamafactory",
    "trl": "trl",
    "axolotl": "axolotl",
    "accelerate": "accelerate",
    "torchrun": "torch",
    "deepspeed": "deepspeed",
    "tune": "torchtune",
}


def unknown(first: str, found: str | None) -> str:
    """Why nothing can be run."""
    name = os.path.basename(first)
    if found is not None:
        return (
            f"`{first}` is {found}, which no Python runs, so there is no training in it to see. "
            "Give the Python command that trains."
        )
    package = BRINGS.get(name)
    if package is not None:
        return (
            f"{sys.executable} has no `{name}`: {package} is not installed there. Activate the environment that your "
            f"training runs in, name its Python with --python PATH, or install it: pip install {package}"
        )
    names = {e.name for e in metadata.entry_points(group="console_scripts")}
    near = difflib.get_close_matches(name, names, 1, 0.75)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return (
        f"There is no program and no file `{first}` for {sys.executable}.{hint} Give the command that trains, as you "
        "would type it, or the file that starts it (.sh, .py, .ipynb, a tool's .yaml)."
    )


def _configuration(path: str, args: list[str], env: dict[str, str]) -> Program:
    """The command that reads a tool's configuration file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(1 << 20)
    for line in text.splitlines()[:20]:
        said = re.match(r"#\s*(?:Usage:|usage:|Run:|\$)?\s*((?:swift|llamafactory-cli|trl|axolotl|tune)\s+\S+.*)", line)
        if said:
            words = said[1].split()
            if words[1] in TRAINS[words[0]]:
                # The file is named as it lay in its repository.
                words = [path if os.path.basename(w) == os.path.basename(path) else w for w in words]
                if path not in words:
                    words += ["--config", path] if words[0] == "trl" else [path]
                return Program("entry", words[0], words[1:] + args, env)
    keys = set(re.findall(r"^\s{0,2}[\"']?([A-Za-z_]\w*)[\"']?\s*:", text, re.MULTILINE))
    if keys & {"finetuning_type", "dataset_dir", "cutoff_len"} and "stage" in keys | {"do_train"}:
        return Program("entry", "llamafactory-cli", ["train", path, *args], env)
    if {"base_model"} <= keys and keys & {"datasets", "sequence_len", "micro_batch_size"}:
        return Program("entry", "axolotl", ["train", path, *args], env)
    if keys & {"tuner_type", "train_type"} and "dataset" in keys:
        method = "rlhf" if "rlhf_type" in keys else "sft"
        return Program("entry", "swift", [method, path, *args], env)
    raise RecordingError(
        f'"{os.path.basename(path)}" does not say which command reads it. Give that command, for example: '
        f"vramscope dry-run trl sft --config {os.path.basename(path)}"
    )


def trains(program: Program) -> bool | None:
    """True for what trains, False for what surely does not, None for a script of unknown purpose."""
    if program.kind == "shell":
        return None
    if program.kind == "entry":
        name = program.target
        if name in TRAINS:
            return bool(program.args) and program.args[0].replace("_", "-") in {
                t.replace("_", "-") for t in TRAINS[name]
            }
        return True if name in LAUNCHERS else None if re.search("train|tune|sft", name) else False
    if program.kind == "module":
        if program.target.partition(".")[0] in OTHER_MODULES:
            return False
        return True if program.target in ("torch.distributed.run", "torch.distributed.launch") else None
    return True if os.path.basename(program.target) in LAUNCHERS else None


def refuse_others(program: Program) -> None:
    """Raises for a command that is no training."""
    if program.kind == "entry" and trains(program) is False:
        said = " ".join([program.target, *program.args[:1]])
        if program.target not in TRAINS:
            raise RecordingError(
                f"`{said}` is no training that is known here; give the command or the script that trains."
            )
        known = ", ".join(f"`{program.target} {t}`" for t in TRAINS[program.target])
        raise RecordingError(f"`{said}` is no training. Of {program.target}, these are: {known}.")
    if program.kind == "module" and trains(program) is False:
        raise RecordingError(f"`python -m {program.target}` is no training; give the command that trains.")


# What tools call a size, by the program that reads it; others take the first spelling that they are given.
SIZES: dict[str, dict[str, str]] = {
    "batch": {
        "swift": "--per_device_train_batch_size",
        "trl": "--per_device_train_batch_size",
        "llamafactory-cli": "per_device_train_batch_size=",
        "lmf": "per_device_train_batch_size=",
        "axolotl": "--micro-batch-size",
    },
    "length": {
        "swift": "--max_length",
        "trl": "--max_length",
        "llamafactory-cli": "cutoff_len=",
        "lmf": "cutoff_len=",
        "axolotl": "--sequence-len",
    },
}
SPELLINGS = {
    "batch": ("per_device_train_batch_size", "micro_batch_size", "train_batch_size", "batch_size", "batch"),
    "length": (
        "max_seq_length",
        "max_length",
        "max_seq_len",
        "model_max_length",
        "seq_length",
        "seq_len",
        "cutoff_len",
    ),
}


def change(program: Program, name: str, value: str) -> None:
    """Gives a command another value: of a size by its name here, or of a flag as it is spelled."""
    known = SIZES.get(name, {}).get(program.target)
    flag = known or (name if name.startswith("-") else None)
    if flag is None:
        spelled = {s: a for a in program.args for s in SPELLINGS.get(name, ()) if re.match(rf"--?{s}(=|$)", _plain(a))}
        found = next((spelled[s] for s in SPELLINGS.get(name, ()) if s in spelled), None)
        if found is None:
            raise RecordingError(
                f"The command does not say what it calls its {name}. Give the flag in place of the word, such as "
                "--max --my-batch-size, or give the command that flag once."
            )
        flag = found.partition("=")[0]
    if flag.endswith("="):
        # `key=value` after the file, which LLaMA-Factory lets count.
        program.args[:] = [a for a in program.args if not a.startswith(flag)] + [flag + value]
        return
    for i, word in enumerate(program.args):
        if _plain(word) == _plain(flag) and i + 1 < len(program.args):
            program.args[i + 1] = value
            return
        if _plain(word).startswith(_plain(flag) + "="):
            program.args[i] = f"{word.partition('=')[0]}={value}"
            return
    program.args += [flag, value]


def _plain(flag: str) -> str:
    """A flag with the underscores that tools take for hyphens."""
    head, hyphens, rest = flag.partition("--")
    return (
        flag
        if head or not hyphens
        else "--" + rest.partition("=")[0].replace("-", "_") + rest[len(rest.partition("=")[0]) :]
    )
