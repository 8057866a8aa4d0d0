"""Command line of the recorder: `python -m vramscope.record [flags] train.py --its args`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib import metadata

from vramscope.record import cards
from vramscope.record.errors import RecordingError

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 8)

EPILOG = """examples:
  vramscope record train.py --lr 1e-5
  vramscope record --gpu a100 --steps 2 -o run.vram.gz -m trl.scripts.sft --model_name_or_path ./model
  vramscope record --model ./Qwen2-VL-7B/config.json --batch 1 --seq 2048 --images 2
  vramscope record --vary batch=--per_device_train_batch_size:1,2,4 train.py

`vramscope record --python PATH` runs in another Python; `python -m vramscope.record` is the same without the program.
"""


def parser() -> argparse.ArgumentParser:
    """The recorder's own flags; the first word that is none of them begins the script and its arguments."""
    p = argparse.ArgumentParser(
        prog="vramscope record",
        description="Records a training script on an emulated CUDA card: no GPU, no weights, no network.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("-o", "--out", help="file to write (default: the script's name with .vram.gz)")
    p.add_argument(
        "--gpu", default="h100", metavar="CARD", help=f"card to emulate: {', '.join(cards.CARDS)} (default: h100)"
    )
    p.add_argument("--steps", type=int, default=3, metavar="N", help="optimizer steps to record (default: 3)")
    p.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=ARG:A,B,C",
        help="records once for each value of an argument, such as batch=--batch-size:1,2,4; writes one file each",
    )
    p.add_argument(
        "--world",
        type=int,
        default=1,
        metavar="N",
        help="record the first of N ranks, as torchrun starts it; collectives take no time and change nothing",
    )
    p.add_argument("--model", metavar="ID|DIR|FILE", help="records the usual step of a model that transformers knows")
    usual = p.add_argument_group("with --model")
    usual.add_argument("--batch", type=int, default=1, metavar="N", help="samples (default: 1)")
    usual.add_argument(
        "--seq", type=int, default=1024, metavar="N", help="positions, image tokens included (default: 1024)"
    )
    usual.add_argument("--images", type=int, default=1, metavar="N", help="images of each sample (default: 1)")
    usual.add_argument("--image", default="", metavar="WxH", help="pixels of an image (default: the model's own size)")
    usual.add_argument("--precision", default="bf16", choices=("bf16", "bf16-amp", "fp32", "amp-bf16", "amp-fp16"))
    usual.add_argument("--optim", default="adamw_fused", choices=("adamw_fused", "adamw", "adamw_loop", "sgd", "sgdm"))
    usual.add_argument("--ckpt", action="store_true", help="gradient checkpointing, not reentrant")
    usual.add_argument("--attn", choices=("sdpa", "eager"), help="attention (default: sdpa where the model has it)")
    usual.add_argument(
        "--lora", type=int, default=0, metavar="RANK", help="low-rank adapters on all linear layers (peft)"
    )
    p.add_argument("script", nargs=argparse.REMAINDER, help="script and its arguments, or -m and a module")
    return p


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """Own flags, and the script with its arguments."""
    takes_value = {
        "-o",
        "--out",
        "--gpu",
        "--steps",
        "--vary",
        "--world",
        "--model",
        "--batch",
        "--seq",
        "--images",
        "--image",
    }
    takes_value |= {"--precision", "--optim", "--attn", "--lora"}
    i = 0
    while i < len(argv):
        word = argv[i]
        if word == "-m" or not word.startswith("-"):
            return argv[:i], argv[i:]
        i += 2 if word in takes_value else 1
    return argv, []


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns 2 for bad input and 1 for a script that fails."""
    own, script = split(list(sys.argv[1:] if argv is None else argv))
    p = parser()
    options = p.parse_args(own)
    if bool(script) == bool(options.model):
        p.error("give a script to record, or --model with a model of transformers")
    if options.steps < 1:
        p.error(f"--steps must be at least 1; {options.steps} was given")
    try:
        environment()
        return _record(options, script)
    except RecordingError as e:
        print(f"vramscope record: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vramscope record: stopped; nothing was recorded.", file=sys.stderr)
        return 130
    except MemoryError:
        print("vramscope record: this machine has not enough memory to record the script.", file=sys.stderr)
        return 1
    except Exception as e:
        from vramscope.record.script import complaint

        what = "script" if script else "model's step"
        print(f"vramscope record: the {what} failed.\n{complaint(e, e.__traceback__)}", file=sys.stderr)
        return 1


def environment() -> None:
    """Raises if this Python can't record: it is too old, or has no PyTorch or one that is too old."""
    if sys.version_info < OLDEST_PYTHON:
        raise RecordingError(
            f"Python {_words(OLDEST_PYTHON)} or newer is needed; {sys.executable} is {_words(sys.version_info[:2])}. "
            "Name another one with: vramscope record --python PATH"
        )
    try:
        found = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise RecordingError(
            f"{sys.executable} has no PyTorch. Activate the environment that your training runs in, or name its Python "
            "with: vramscope record --python PATH"
        ) from None
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        raise RecordingError(
            f"PyTorch {_words(OLDEST_TORCH)} or newer is needed; {sys.executable} has {found}. "
            f"Upgrade it there, or name another Python with: vramscope record --python PATH"
        )


def _words(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _record(options: argparse.Namespace, script: list[str]) -> int:
    from vramscope.record import script as scripts

    cards.find(options.gpu)
    if options.world > 1:
        from vramscope.record import collectives

        os.environ.update(collectives.variables(options.world))
    if options.vary:
        from vramscope.record import vary

        return vary.run(options, script)
    if options.model:
        from vramscope.record import model

        out = options.out or "model.vram.gz"
        model.run(options, out)
    else:
        named = script[1] if script[0] == "-m" else os.path.splitext(os.path.basename(script[0]))[0]
        out = options.out or f"{named}.vram.gz"
        scripts.run(script, out, options.gpu, options.steps)
    size = os.path.getsize(out)
    print(
        f"Recorded to {out} ({size / 1e6:.2f} MB). Show it with: vramscope estimate --recording {out}", file=sys.stderr
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
