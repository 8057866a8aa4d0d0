"""What one training step holds, asked of the program `vramscope`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, TypeAlias

from vramscope.flags import Flag, words_of
from vramscope.programs import program

PathOrName: TypeAlias = "str | os.PathLike[str]"


class EstimateError(ValueError):
    """A question that has no answer; its words are the program's."""


def estimate(
    model: str | None = None,
    *,
    config: PathOrName | dict[str, Any] | None = None,
    recording: PathOrName | None = None,
    **flags: Flag,
) -> dict[str, Any]:
    """What `vramscope estimate` answers, as the object that `--format json` prints.

    One of `model` (a name of the catalogue), `config` (a path of a `config.json`, or what one holds) or `recording`
    (a file that `record` wrote). `flags` are the command's, with `_` for `-`: `estimate("gpt2", batch=8, gpu="H100")`;
    True gives a flag without a value, False and None leave it out. Bytes are integers. Raises EstimateError if the
    program refuses the question.
    """
    given = [x for x in (model, config, recording) if x is not None]
    if len(given) != 1:
        raise TypeError(f"estimate takes one of model, config and recording; {len(given)} were given")
    words = ["estimate", *([model] if model is not None else [])]
    read = None
    if recording is not None:
        words += ["--recording", os.fspath(recording)]
    if isinstance(config, dict):
        words += ["--config", "-"]
        read = json.dumps(config)
    elif config is not None:
        words += ["--config", os.fspath(config)]
    words += words_of(flags)
    done = subprocess.run(
        [program(), "--color", "never", *words, "--format", "json"],
        input=read,
        stdin=subprocess.DEVNULL if read is None else None,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise EstimateError(done.stderr.strip().removeprefix("error: "))
    return json.loads(done.stdout)
