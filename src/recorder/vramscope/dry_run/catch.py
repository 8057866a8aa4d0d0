"""Run by bash in place of a program: writes down what was to be started; answers questions without side effects.

A script of its own: it imports nothing of this package but the scanner, for a script that another one sources.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# Programs that read and print, and change nothing.
HARMLESS = set(
    """basename cat cut date dirname egrep expr fgrep grep head hostname id ls nproc paste printf pwd readlink realpath
    rev seq shuf sort stat tail test tr true false uname uniq wc which whoami awk gawk mawk jq bc column fold nl od tac
    getconf arch tty logname""".split()
)
# Those that write only if they are told to.
UNLESS = {"sed": ("-i", "--in-place", "-ni"), "find": ("-delete", "-exec", "-execdir", "-ok")}


def write(row: dict[str, Any]) -> None:
    """Adds a row; ends a script that does not come to its end."""
    path = os.path.join(os.environ["VRAMSCOPE_FOLDER"], "caught")
    with open(path, "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(json.dumps(row) + "\n")
    with open(path, errors="replace") as file:
        if sum(1 for _ in file) > int(os.environ["VRAMSCOPE_MOST"]):
            os.kill(os.getppid(), 15)


def environment() -> dict[str, str]:
    """The variables that the program would see."""
    return {**os.environ, "PATH": os.environ["VRAMSCOPE_PATH"]}


def catch(words: list[str]) -> int:
    """Answers, runs or writes down a command; returns its status."""
    name = os.path.basename(words[0])
    if name == "nvidia-smi":
        cards = int(os.environ["VRAMSCOPE_CARDS"])
        if "-L" in words or "--list-gpus" in words:
            print("\n".join(f"GPU {i}: NVIDIA" for i in range(cards)))
        elif any(w.startswith("--query-gpu") for w in words):
            print("\n".join(map(str, range(cards))))
        return 0
    if name == "tee":
        sys.stdout.write(sys.stdin.read())
        return 0
    if name.startswith("python") and words[1:2] == ["-c"] and "device_count" in "".join(words[2:]):
        print(os.environ["VRAMSCOPE_CARDS"])
        return 0
    if name in HARMLESS or (name in UNLESS and not any(w.startswith(UNLESS[name]) for w in words[1:])):
        try:
            os.execvpe(words[0], words, environment())
        except OSError:
            return 127
    if name in ("bash", "sh", "zsh", "dash") or words[0].endswith(".sh"):
        rest = words if words[0].endswith(".sh") else words[1:]
        while rest and rest[0].startswith(("-", "+")) and rest[0] != "-c":
            rest = rest[1:]
        if rest and rest[0] != "-c" and os.path.isfile(rest[0]):
            line = 'builtin source "$VRAMSCOPE_FOLDER/prelude"; __script=$1; shift; builtin source "$__script" "$@"'
            bash = os.environ["VRAMSCOPE_BASH"]
            os.execve(bash, [bash, "-c", line, rest[0], defuse(rest[0]), *rest[1:]], environment())
    write({"words": words, "cwd": os.getcwd(), "env": environment()})
    return 0


def defuse(path: str) -> str:
    """Where the script at `path` lies once it is defused; itself if it is none."""
    if not os.path.isfile(path):
        return path
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, here)
    from vramscope.dry_run.shell import defused

    made = os.path.join(os.environ["VRAMSCOPE_FOLDER"], f"script-{os.getpid()}")
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    with open(made, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(defused(text, path))
    return made


def place(path: str) -> str:
    """Where a file that a script writes is put."""
    if path.startswith("/dev/"):
        return path
    path = os.path.realpath(path)
    made = os.path.join(os.environ["VRAMSCOPE_FOLDER"], path.strip("/").replace("/", "%")[-200:])
    write({"placed": path, "at": made})
    return made


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[0] == "--place":
        print(place(given[1]), end="")
    elif given[0] == "--defuse":
        print(defuse(given[1]), end="")
    else:
        sys.exit(catch(given))
