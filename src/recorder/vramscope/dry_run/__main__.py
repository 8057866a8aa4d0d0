"""Command line of dry runs: `vramscope dry-run [flags] COMMAND…`, which calls this and plays what it records."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from vramscope.record import cards
from vramscope.record.__main__ import environment
from vramscope.record.errors import RecordingError

# Lines of what a command said that are shown when it fails.
SHOWN = 15
# Seconds without a word after which a person is told what is being done.
QUIET = 10.0


def parser() -> argparse.ArgumentParser:
    """Flags, which `vramscope dry-run` checks and gives in full, then the command."""
    p = argparse.ArgumentParser(prog="vramscope dry-run", add_help=False)
    p.add_argument("--out", required=True)
    p.add_argument("--gpu", default="h100")
    p.add_argument("--steps", type=int)
    p.add_argument("--batches", type=int)
    p.add_argument("--world", type=int, default=1)
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--cards", type=int)
    p.add_argument("--run", type=int)
    p.add_argument("--set", action="append", default=[], dest="changes")
    p.add_argument("--packages")
    p.add_argument("--data")
    p.add_argument("--offline", action="store_true")
    p.add_argument("--keep-going", action="store_true")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("words", nargs=argparse.REMAINDER)
    return p


def main(argv: Sequence[str]) -> int:
    """Records the command; returns 2 for bad input and 1 for a command that fails."""
    options = parser().parse_args(list(argv))
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    screen = Screen(options.verbose)
    # As Ctrl-C: what was made is taken away.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        environment()
        cards.find(options.gpu)
        return record(options, words, screen)
    except RecordingError as e:
        screen.say(f"error: {e}")
        return 2
    except KeyboardInterrupt:
        screen.say("stopped; nothing was recorded.")
        return 130
    except MemoryError:
        screen.say("error: this machine has not enough memory for the dry run.")
        return 1
    except Exception as e:
        from vramscope.dry_run.world import explained
        from vramscope.record.script import complaint

        why = explained(e)
        if why is not None:
            screen.say(f"error: {why}")
            return 2
        screen.say(f"error: the command failed.\n{complaint(e, e.__traceback__)}")
        screen.tail()
        return 1
    finally:
        screen.close()


class Screen:
    """What a person sees: our own lines; what the command says goes to a file, and is shown if it fails."""

    def __init__(self, verbose: bool) -> None:
        """Lets all that is printed go to a file, unless `verbose`."""
        self.began = time.monotonic()
        self.last = self.began
        self.where: Callable[[], str] = lambda: ""  # in the run, if that is known
        self.log: TextIO | None = None
        self.own = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace", buffering=1)
        if verbose:
            os.dup2(2, 1)
            return
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self.log.fileno(), 1)
        os.dup2(self.log.fileno(), 2)

    def say(self, text: str) -> None:
        """A line of our own."""
        self.last = time.monotonic()
        with contextlib.suppress(ValueError):
            self.own.write(f"vramscope dry-run: {text}\n")

    def step(self, step: int, operations: int) -> None:
        """Tells a recorded step."""
        self.say(f"step {step}, {operations:,} operations, {time.monotonic() - self.began:.0f} s")

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Says what is being done, while nothing else is said."""
        main, stop = threading.main_thread().ident, threading.Event()

        def watch() -> None:
            while not stop.wait(1.0):
                if time.monotonic() - self.last > QUIET:
                    place = doing(sys._current_frames().get(main or 0))
                    self.say(f"{time.monotonic() - self.began:.0f} s, {self.where()}{place}")

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def tail(self) -> None:
        """The last lines that the command said."""
        if self.log is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self.log.seek(0)
        lines = [line.rstrip() for line in self.log.read().splitlines() if line.strip()]
        if lines:
            self.own.write("what it said last (all of it with --verbose):\n")
            self.own.writelines(f"  {line[:200]}\n" for line in lines[-SHOWN:])

    def close(self) -> None:
        """Ends our own lines.

        The streams stay where they are: bars of progress print once more when Python takes them down, after the result.
        """
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        self.own.close()


def doing(frame: Any) -> str:
    """What the main thread does: the innermost line that is neither the standard library's nor PyTorch's."""
    from vramscope.record.place import OWN, TORCH, short

    own = os.path.dirname(OWN.rstrip(os.sep)) + os.sep
    while frame is not None:
        name = frame.f_code.co_filename
        inside = "site-packages" in name or not name.startswith((sys.base_prefix, sys.prefix, "<"))
        if inside and not name.startswith((TORCH, own)):
            return f"in {short(name)}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return "working"


def visible(options: argparse.Namespace) -> int:
    """Cards that one process sees: as many as `--cards` or `CUDA_VISIBLE_DEVICES` names, else one."""
    if options.cards:
        return int(options.cards)
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip()
    if named in ("", "-1"):
        raise RecordingError(
            "CUDA_VISIBLE_DEVICES is empty, so the command would train without a GPU. Leave it out, or name a card."
        )
    return len([x for x in named.split(",") if x.strip()])


def record(options: argparse.Namespace, words: Sequence[str], screen: Screen) -> int:
    """Finds out what the command runs, runs it within a recording, and adds what was taken for granted."""
    from vramscope.dry_run import commands, made_up, world
    from vramscope.dry_run.notes import Notes

    if not words:
        raise RecordingError("Give the command that trains, or the file that starts it.")
    notes = Notes()
    program = commands.resolve(words)
    if program.kind == "shell":
        from vramscope.dry_run import shell

        program, folder = shell.training(program, notes, options.run, int(options.cards or 1))
        os.chdir(folder)
    elif options.run is not None:
        raise RecordingError("--run chooses among the commands of a script; this is one command.")
    commands.refuse_others(program)
    for change in options.changes:
        commands.change(program, *change.split("=", 1))
    if options.data:
        options.data = made_up.read(options.data)
    os.environ.update(program.env)
    world.go_offline()
    count = visible(options)
    said = " ".join(program.shown)
    screen.say(f"{said if len(said) < 120 else said[:119] + '…'}, on {cards.find(options.gpu).name}")
    # PyTorch is imported from here on.
    from vramscope.dry_run import run

    return run.run(program, options, count, notes, screen)
