"""Records models of the gallery one by one: `record.py OUT ID…`, or all that OUT has not.

Each runs in a process of its own that begins with the libraries loaded; what is written is what
`python -m vramscope.record --steps 2 -o OUT/ID.vram.gz src/gallery/step.py ID` writes.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback

STEPS = 2
DEADLINE_SECONDS = 300


def record(name: str, out: str) -> None:
    """Records one model, as the command line does."""
    from vramscope.record import script

    script.run(["src/gallery/step.py", name], out, "h100", STEPS)


def child(name: str, out: str) -> None:
    """Records, and leaves with status 1 and no file where that fails."""
    try:
        record(name, out)
    except BaseException as e:
        print("".join(traceback.format_exception(e)[-4:])[-1200:], file=sys.stderr, flush=True)
        if os.path.exists(out):
            os.remove(out)
        os._exit(1)
    os._exit(0)


def main() -> int:
    """Records what is asked for; returns how many failed."""
    import torch
    import torchvision  # noqa: F401
    import transformers  # noqa: F401
    from step import entries

    torch.set_num_threads(1)
    out, wanted = sys.argv[1], sys.argv[2:]
    known = [entry["id"] for entry in entries()]
    missing = [name for name in known if not os.path.exists(f"{out}/{name}.vram.gz")]
    context, failed = multiprocessing.get_context("fork"), 0
    for name in wanted or missing:
        began, path = time.monotonic(), f"{out}/{name}.vram.gz"
        process = context.Process(target=child, args=(name, path))
        process.start()
        process.join(DEADLINE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            if os.path.exists(path):
                os.remove(path)
        done = process.exitcode == 0
        failed += not done
        size = os.path.getsize(path) if done else 0
        print(f"{name}: {'recorded' if done else 'failed'}, {time.monotonic() - began:.0f} s, {size} bytes", flush=True)
    return failed


if __name__ == "__main__":
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
    sys.exit(main())
