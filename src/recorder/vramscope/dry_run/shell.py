"""A script of the shell as bash runs it: variables, branches, loops are bash's own; what it would start is caught."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from vramscope.dry_run import commands
from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError

# Seconds in which a script comes to its end; nothing that takes time is run.
DEADLINE = 60.0
# Commands after which a script is taken to wait for something that a dry run does not start.
MOST_COMMANDS = 400

# Functions and traps that go before a script. No program is found by its name (`PATH` is empty), so that
# `command_not_found_handle` gets all, with their words and variables as bash has them; those that are named by a path
# are sent to it by `defused`.
PRELUDE = r"""
export VRAMSCOPE_PATH=$PATH
PATH=/vramscope-has-no-programs
__vramscope_catch() { "$VRAMSCOPE_PYTHON" -IS "$VRAMSCOPE_CATCH" "$@"; }
command_not_found_handle() { __vramscope_catch "$@"; }
__vramscope_run() {
    [ $# -eq 0 ] && return 0
    case $(type -t -- "$1") in builtin|function|keyword) "$@" ;; *) __vramscope_catch "$@" ;; esac
}
__vramscope_place() { __vramscope_catch --place "$1"; }
exec() { [ $# -eq 0 ] && return 0; __vramscope_run "$@"; exit $?; }
command() { case $1 in -v|-V) PATH=$VRAMSCOPE_PATH builtin command "$@" ;; *) __vramscope_run "$@" ;; esac; }
source() { builtin source "$(__vramscope_catch --defuse "$1")" "${@:2}"; }
.() { source "$@"; }
__vramscope_path() {
    [ "$PATH" = /vramscope-has-no-programs ] && return
    export VRAMSCOPE_PATH=${PATH//\/vramscope-has-no-programs/$VRAMSCOPE_PATH}
    PATH=/vramscope-has-no-programs
}
set -o functrace
trap '__vramscope_path' DEBUG
trap wait EXIT
"""

WORD_END = set(" \t\n;&|<>()")
# Words after which a command begins.
BEFORE_COMMAND = {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time"}


# What a script calls the file that it lies in; it is run from a copy.
OWN_NAMES = re.compile(r"\$\{BASH_SOURCE(\[0\])?(:-\$0)?\}|\$BASH_SOURCE\b")


def defused(text: str, path: str) -> str:
    """The script at `path` with files that it writes placed elsewhere, and programs that it names by path caught."""
    own = re.sub(r'([\\$`"])', r"\\\1", path)
    return Scanner(OWN_NAMES.sub(lambda _: own, text)).scan()


class Scanner:
    """Goes through a script once, minding quotes, comments, here-documents and arithmetic."""

    def __init__(self, text: str) -> None:
        """At the script's beginning."""
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.begins = True  # a command begins here
        self.documents: list[tuple[str, bool]] = []

    def scan(self) -> str:
        """The whole text."""
        text = self.text
        while self.at < len(text):
            c = text[self.at]
            if text.startswith("\\\n", self.at):
                self.take(2)
            elif c == "\n":
                self.take(1)
                self.begins = True
                self.here_documents()
            elif c in " \t":
                self.take(1)
            elif c == "#":
                end = text.find("\n", self.at)
                self.take((len(text) if end < 0 else end) - self.at)
            elif self.begins and text.startswith("((", self.at):
                self.until("))")
            elif text.startswith("[[", self.at) and self.begins:
                self.until("]]")
            elif c in ";|(" or (c == "&" and not text.startswith("&>", self.at)):
                self.take(1)
                self.begins = True
            elif c == ")":
                self.take(1)
                self.begins = True  # after a pattern of `case`, or the end of a group
            elif c in "<>" or text.startswith("&>", self.at):
                self.redirection()
            else:
                self.word()
        return "".join(self.out)

    def take(self, length: int) -> None:
        """Copies characters."""
        self.out.append(self.text[self.at : self.at + length])
        self.at += length

    def until(self, end: str) -> None:
        """Copies up to the end of a test or of arithmetic."""
        found = self.text.find(end, self.at)
        self.take((len(self.text) if found < 0 else found + len(end)) - self.at)
        self.begins = False

    def redirection(self) -> None:
        """`< > >> >| &> &>> << <<< <&`, with the word that follows."""
        operator = re.match(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<|>", self.text[self.at :])[0]  # type: ignore[index]
        if self.text.startswith((">(", "<("), self.at):
            self.take(2)
            self.begins = True
            return
        self.take(len(operator))
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.take(1)
        word = self.peek_word()
        if operator in ("<<", "<<-"):
            self.documents.append((re.sub(r"[\"'\\]", "", word), operator == "<<-"))
        duplicates = operator == ">&" and re.fullmatch(r"[0-9-]+", word)
        if operator in (">", ">>", ">|", "&>", "&>>", "<>", ">&") and word and not duplicates:
            if not word.startswith("/dev/"):
                self.at += len(word)
                self.out.append(f'"$(__vramscope_place {word})"')
                return
        self.take(len(word))

    def word(self) -> None:
        """A word; a path in the place of a command is sent to what catches commands."""
        word = self.peek_word()
        if not word:
            self.take(1)
            return
        if self.begins and not re.match(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=", word):
            if word in BEFORE_COMMAND:
                self.take(len(word))
                return
            of_function = self.text[self.at + len(word) :].lstrip(" \t").startswith("(")
            of_case = self.text[self.at + len(word) :].lstrip(" \t").startswith(")")
            if ("/" in word or word[0] in "$\"'") and not (of_function or of_case):
                self.out.append("__vramscope_run ")
            self.begins = False
        elif self.begins and word.endswith("=") and self.text.startswith("(", self.at + len(word)):
            self.take(len(word))
            self.array()
            return
        self.take(len(word))

    def array(self) -> None:
        """The entries of an array, which are no commands."""
        depth = 0
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in "'\"$`\\":
                self.take(max(1, len(self.peek_word())))
                continue
            if c == "#" and self.text[self.at - 1] in " \t\n(":
                end = self.text.find("\n", self.at)
                self.take((len(self.text) if end < 0 else end) - self.at)
                continue
            depth += (c == "(") - (c == ")")
            self.take(1)
            if depth == 0:
                return

    def peek_word(self) -> str:
        """The word that begins here, with what is quoted or substituted in it."""
        text, at = self.text, self.at
        while at < len(text):
            c = text[at]
            if c == "\\":
                at += 2
            elif c == "'":
                end = text.find("'", at + 1)
                at = len(text) if end < 0 else end + 1
            elif c == '"':
                at = self.quoted(at + 1)
            elif c == "`":
                end = text.find("`", at + 1)
                at = len(text) if end < 0 else end + 1
            elif text.startswith(("$(", "${"), at):
                at = self.balanced(at + 1)
            elif c in WORD_END:
                break
            else:
                at += 1
        return text[self.at : at]

    def quoted(self, at: int) -> int:
        """The end of a double-quoted part."""
        while at < len(self.text) and self.text[at] != '"':
            if self.text[at] == "\\":
                at += 2
            elif self.text.startswith(("$(", "${"), at):
                at = self.balanced(at + 1)
            else:
                at += 1
        return at + 1

    def balanced(self, at: int) -> int:
        """The end of a substitution that opens here."""
        opening = self.text[at]
        closing = ")" if opening == "(" else "}"
        depth = 0
        while at < len(self.text):
            c = self.text[at]
            if c == "\\":
                at += 2
                continue
            if c == '"':
                at = self.quoted(at + 1)
                continue
            if c == "'" and opening == "(":
                end = self.text.find("'", at + 1)
                at = len(self.text) if end < 0 else end + 1
                continue
            depth += (c == opening) - (c == closing)
            at += 1
            if depth == 0:
                break
        return at

    def here_documents(self) -> None:
        """Copies the bodies of here-documents whose lines begin now."""
        for end, indented in self.documents:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop + 1
                line = self.text[self.at : stop].rstrip("\n")
                self.take(stop - self.at)
                if (line.lstrip("\t") if indented else line) == end:
                    break
        self.documents.clear()


@dataclass
class Caught:
    """A command that a script came to."""

    words: list[str]
    cwd: str
    env: dict[str, str]


def caught(path: str, args: list[str], env: dict[str, str], cards: int) -> tuple[list[Caught], dict[str, str], str]:
    """Commands that a script comes to, in order; files that it wrote, by where they lie now; and what bash said."""
    bash = shutil.which("bash")
    if bash is None:
        raise RecordingError("A script of the shell needs bash, and there is none on PATH. Give the command itself.")
    folder = tempfile.mkdtemp(prefix="vramscope-shell-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    given = dict(
        env,
        VRAMSCOPE_PYTHON=sys.executable,
        VRAMSCOPE_CATCH=os.path.join(os.path.dirname(os.path.abspath(__file__)), "catch.py"),
        VRAMSCOPE_FOLDER=folder,
        VRAMSCOPE_CARDS=str(cards),
        VRAMSCOPE_MOST=str(MOST_COMMANDS),
        VRAMSCOPE_BASH=bash,
    )
    with open(os.path.join(folder, "prelude"), "w", encoding="utf-8") as file:
        file.write(PRELUDE)
    script = os.path.join(folder, "script")
    with open(script, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(defused(text, path))
    line = 'builtin source "$VRAMSCOPE_FOLDER/prelude"; BASH_ARGV0=$0; builtin source "$VRAMSCOPE_FOLDER/script"'
    begin = [bash, "-c", line, path, *args]
    try:
        done = subprocess.run(begin, env=given, capture_output=True, text=True, timeout=DEADLINE, errors="replace")
        said = done.stderr
    except subprocess.TimeoutExpired:
        said = f"the script was stopped after {DEADLINE:.0f} s"
    found: list[Caught] = []
    placed: dict[str, str] = {}
    log = os.path.join(folder, "caught")
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="surrogateescape") as file:
            for row in map(json.loads, file):
                if "placed" in row:
                    placed[row["placed"]] = row["at"]
                else:
                    found.append(Caught(row["words"], row["cwd"], row["env"]))
    return found, placed, said


def training(program: commands.Program, notes: Notes, chosen: int | None, cards: int) -> tuple[commands.Program, str]:
    """The one command of a script that trains, and the folder that it starts in; asks which if there are several."""
    path = commands.existing(program.target, program.target)
    found, placed, said = caught(path, program.args, {**os.environ, **program.env}, cards)
    known: list[tuple[commands.Program, Caught, bool]] = []
    problems: list[str] = []
    for one in found:
        words = [moved(word, placed, one.cwd) for word in one.words]
        try:
            made = commands.resolve(words, one.cwd)
        except RecordingError as e:
            if os.path.basename(words[0]) in commands.BRINGS or words[0].startswith("python"):
                problems.append(str(e))
            notes.tell(shown(one.words), "not run")
            continue
        sure = commands.trains(made)
        if sure is False or made.kind == "shell":
            notes.tell(shown(one.words), "not run: it is no training")
            continue
        known.append((made, one, bool(sure)))
    name = os.path.basename(path)
    surely = [x for x in known if x[2]] or known
    for _, other, _ in known if len(surely) < len(known) else []:
        if not any(other is x[1] for x in surely):
            notes.tell(shown(other.words), "not run: another command of the script is the training")
    if not surely:
        why = f" {problems[0]}" if problems else f" bash said: {said.strip().splitlines()[-1]}" if said.strip() else ""
        raise RecordingError(f'"{name}" starts no training that is known here.{why}')
    if chosen is None and len(surely) > 1:
        lines = "\n".join(f"  --run {i}: {shown(x[1].words)}" for i, x in enumerate(surely, 1))
        raise RecordingError(f'"{name}" starts {len(surely)} commands that may train. Say which:\n{lines}')
    number = chosen or 1
    if not 1 <= number <= len(surely):
        raise RecordingError(f'--run {number}: "{name}" starts {len(surely)} commands that may train.')
    made, one, _ = surely[number - 1]
    made.env = {**{k: v for k, v in one.env.items() if not k.startswith("VRAMSCOPE_") and k != "_"}, **made.env}
    return made, one.cwd


def moved(word: str, placed: dict[str, str], cwd: str) -> str:
    """A word with a file that the script wrote, where it lies now."""
    head, equals, tail = word.rpartition("=")
    at = placed.get(os.path.realpath(os.path.join(cwd, tail)))
    return word if at is None else head + equals + at


def shown(words: list[Any]) -> str:
    """The beginning of a command, for a message."""
    text = " ".join(map(str, words))
    return text if len(text) <= 100 else text[:99] + "…"
