"""Running a user's script, unchanged, within a recording."""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable
from types import TracebackType

from vramscope.record.errors import Finished, RecordingError
from vramscope.record.session import recording


def progress(steps: int | None) -> Callable[[int, int], None]:
    """A function that tells each recorded step on standard error."""
    began = time.monotonic()

    def tell(step: int, operations: int) -> None:
        of = f" of {steps}" if steps else ""
        seconds = time.monotonic() - began
        print(
            f"vramscope record: step {step}{of}, {operations:,} operations, {seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    return tell


def run(argv: list[str], out: str, gpu: str, steps: int | None) -> int:
    """Runs the script `argv[0]`, or the module after `-m`, with the arguments that follow; returns the exit status."""
    as_module = argv[0] == "-m"
    if as_module and len(argv) < 2:
        raise RecordingError("-m needs the name of a module to run.")
    target, rest = (argv[1], argv[2:]) if as_module else (argv[0], argv[1:])
    if not as_module and not os.path.isfile(target):
        raise RecordingError(f'There is no script at "{target}". Give the path of a Python file, or -m and a module.')
    before_argv, before_path = sys.argv, list(sys.path)
    sys.argv = [target, *rest]
    if as_module:
        sys.path.insert(0, os.getcwd())
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
    session = recording(out, gpu=gpu, steps=steps, command=argv, progress=progress(steps))
    status = 0
    try:
        with session:
            try:
                if as_module:
                    runpy.run_module(target, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(target, run_name="__main__")
            except Finished:
                pass
            except SystemExit as e:
                status = e.code if isinstance(e.code, int) else 1 if e.code else 0
    finally:
        sys.argv, sys.path[:] = before_argv, before_path
    if session.done == 0:
        raise RecordingError(
            "The script ended without an optimizer step, so there is no step to show."
            if status == 0
            else f"The script left with status {status} before it took an optimizer step."
        )
    return 0


def complaint(error: BaseException, trace: TracebackType | None) -> str:
    """What a script raised and where, in its own lines."""
    from vramscope.record.place import TORCH, short

    lines: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(TORCH) and "<frozen" not in code.co_filename:
            lines.append(f"  {short(code.co_filename)}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    lines = [line for line in lines if "vramscope/record/" not in line]
    return f"{type(error).__name__}: {error}\n" + "\n".join(lines[-8:])
