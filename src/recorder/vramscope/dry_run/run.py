"""One dry run: the recording, with everything around it that is answered here."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import torch

from vramscope.dry_run import made_up, notebook, world
from vramscope.dry_run.batches import Loaders
from vramscope.dry_run.children import Children
from vramscope.dry_run.commands import Program
from vramscope.dry_run.hub import Hub
from vramscope.dry_run.made_up import MadeUp
from vramscope.dry_run.notes import Notes
from vramscope.dry_run.packages import Doors, of_file
from vramscope.dry_run.untouched import Untouched
from vramscope.record import collectives
from vramscope.record.errors import Finished, RecordingError
from vramscope.record.imports import OnImport
from vramscope.record.session import recording

# Steps of a run whose loader is not walked ahead: the second has the optimizer's states from its beginning.
STEPS = 2
# Micro-batches that a loader is walked ahead where nobody says how many.
BATCHES = 200


def run(program: Program, options: argparse.Namespace, cards: int, notes: Notes, screen: Any) -> int:
    """Records the program; returns the status to end with."""
    notebook.NOTES = notes
    said = texts(program)
    words = " ".join([program.target, *program.args, *said])
    doors = Doors(of_file(options.packages) if options.packages else None, words)
    trackers = world.Trackers(notes, [program.target, *program.args, *said])
    hub = Hub(notes, options.offline)
    data = MadeUp(options.data, program, made_up.texts_of(program, said), notes) if options.data else None
    if data is not None and data.data.is_uniform and options.batches is None:
        # One batch is like another.
        options.batches = 2
    untouched = Untouched(notes, options.out)
    if options.world > 1:
        os.environ.update(collectives.variables(options.world, options.rank))
    session = recording(
        options.out,
        gpu=options.gpu,
        steps=options.steps or STEPS,
        command=program.shown,
        progress=screen.step,
    )
    left: BaseException | None = None
    failed: BaseException | None = None
    status = 0
    try:
        with session, screen.watching():
            children = Children(session, notes, options.rank, cards)
            watchers = [children.install(session.patches)]
            world.cut(session.patches, notes)
            untouched.install(session.patches)
            several(session, children)
            loaders = Loaders(session.patches, options.batches or BATCHES, lambda: session.writer.ops)
            watchers.append(OnImport(hub.actions(session.patches)))
            if data is not None:
                watchers.append(OnImport(data.actions(session.patches)))
            watchers.append(
                OnImport(
                    {
                        "transformers.trainer": loaders.trainer,
                        "transformers.integrations.integration_utils": lambda module: world.reports(
                            module, session.patches, notes
                        ),
                    }
                )
            )
            follow(session, loaders, options.steps)
            screen.where = lambda: where(session, loaders)
            try:
                status = children.run(program, None)
            except Finished:
                pass
            except Exception as e:
                if within(e, KeyboardInterrupt):
                    # What a tool does at its end, Ctrl-C's too, may fail in turn.
                    raise KeyboardInterrupt from e
                if within(e, Finished):
                    # What a tool does at its end, such as drawing its curves, is none of the run's steps.
                    notes.tell(f"{type(e).__name__}: {e}"[:200], "raised after the last recorded step, and left out")
                elif not options.keep_going or session.phases.done == 0:
                    failed = origin(e) if session.phases.step else e
                else:
                    left = e
            finally:
                for watcher in watchers:
                    watcher.remove()
                doors.tell(notes)
                untouched.undo()
                tell(session, loaders, notes, doors)
            if failed is not None:
                # Raised here, an error has no other around it but what it came of.
                why = explained(failed, hub, data)
                if why is not None:
                    raise why from failed
                raise failed
    finally:
        untouched.undo() if untouched.active else None
        doors.remove()
        trackers.remove()
        hub.remove()
        if data is not None:
            data.remove()
        if session.done == 0 and os.path.exists(options.out):
            os.remove(options.out)
    if session.done == 0:
        raise RecordingError(never_stepped(status))
    if left is not None:
        screen.say(
            f"the command failed after {session.done} steps; what was recorded is shown ({type(left).__name__}: {left})"
        )
    return 0


def explained(error: BaseException, hub: Hub, data: MadeUp | None) -> RecordingError | None:
    """What is missing where a command fails for want of a model or of data; None for other errors."""
    seen: BaseException | None = error
    while seen is not None:
        why = hub.explain(seen) or (data.explain(seen) if data is not None else made_up.absent(seen))
        if why is not None:
            return why
        seen = seen.__cause__ or seen.__context__
    return None


def origin(error: BaseException) -> BaseException:
    """The error of a step that failed, where what the tool does at its end fails in turn for want of a package."""
    while isinstance(error, ModuleNotFoundError) and error.__context__ is not None:
        if isinstance(error.__context__, ImportError):
            break  # one way to import it after another
        error = error.__context__
    return error


def within(error: BaseException, kind: type[BaseException]) -> bool:
    """True for an error that was raised while one of this kind passed through the command."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def never_stepped(status: int) -> str:
    """Why there is nothing to show."""
    if status:
        return (
            f"The command left with status {status} before it took an optimizer step; see what it said with --verbose."
        )
    return (
        "The command ended without an optimizer step, so there is no step to show. Is it the one that trains, and has "
        "it data to train on? See what it said with --verbose."
    )


def texts(program: Program) -> list[str]:
    """What configuration files among the words say, for the names of trackers."""
    found = []
    for word in [program.target, *program.args]:
        path = word.rpartition("=")[2]
        if path.endswith((".yaml", ".yml", ".json", ".py", ".ipynb")) and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read(1 << 20))
    return found


def follow(session: recording, loaders: Loaders, asked: int | None) -> None:
    """Lets the recording end once each chosen batch was trained on."""
    end = session.phases.end_step

    def end_step() -> None:
        if asked is None and loaders.ahead.planned:
            session.phases.last_step = loaders.ahead.planned
        end()

    session.phases.end_step = end_step  # type: ignore[method-assign]


def where(session: recording, loaders: Loaders) -> str:
    """Which micro-batch of which step runs, where a step has several: one of 32 takes minutes."""
    phases, each = session.phases, loaders.ahead.accumulated
    if each < 2 or not phases.open or phases.passed >= each:
        return ""
    return f"step {phases.step}, micro-batch {phases.passed + 1} of {each}, "


def several(session: recording, children: Children) -> None:
    """Refuses one process with several cards, by the name of what it would do."""

    def refuse(what: str) -> None:
        raise RecordingError(
            f"One process with {children.cards} cards: the command {what}, which is not emulated yet. Give it one "
            "card (CUDA_VISIBLE_DEVICES=0), or a process for each (torchrun --nproc_per_node N, NPROC_PER_NODE=N, "
            "accelerate launch --num_processes N); a dry run of those records the first."
        )

    if children.cards < 2:
        return
    begin = session.phases.begin_step

    def begin_step() -> None:
        if not children.ranks and int(os.environ.get("WORLD_SIZE", 1)) < 2:
            refuse("would split or copy the model over them")
        begin()

    session.phases.begin_step = begin_step  # type: ignore[method-assign]

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse("copies the model to each (nn.DataParallel)")

    session.patches.set(torch.nn.DataParallel, "__init__", init)


def tell(session: recording, loaders: Loaders, notes: Notes, doors: Doors) -> None:
    """Writes what the recording alone does not say."""
    for line in notes.lines():
        session.writer.write("stand_in", **line)
    missing = doors.missing()
    if missing:
        session.writer.write("missing", packages=missing, python=sys.executable)
    ahead = loaders.ahead
    if ahead.steps:
        steps = ahead.steps[: session.phases.step]
        session.writer.write("batches", walked=ahead.number, total=ahead.total, each=ahead.accumulated, steps=steps)
