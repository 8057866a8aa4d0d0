"""The row of a decoder that transformers knows and the engine does not, found from a recording made without a GPU.

python3 decoder_row.py CONFIG.json OUT [MODULE...]: records two steps of a decoder of this configuration (small widths, few layers) with
the transformers that is installed, writes OUT.vram and OUT.json, and runs the program that `FIND_ROW` names on them
(`cargo build -p vramscope-engine --example find_row`). The configuration is written whole, since rows have other defaults.
Tensors of the modules are left out: with transformers 5.18 and later those of `rotary_emb`, which it computes otherwise.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import player  # noqa: F401  (finds the recorder)

CASE = {
    "batch": 1,
    "seq": 64,
    "precision": "bf16",
    "optim": "sgd",
    "ckpt": "none",
    "attn": "sdpa",
    "accum": 1,
    "timed": 0,
}


def record(given: dict[str, Any], out: str) -> None:
    """Two steps of a configuration, as `measure.py` trains them."""
    import configurations
    import transformers
    import vramscope

    kind = given["model_type"]
    whole = transformers.AutoConfig.for_model(
        kind, **{key: value for key, value in given.items() if key != "model_type"}
    )
    case = {"model": kind, **CASE}
    # The maker makes language models of the types that it draws.
    configurations.TEXT.setdefault(kind, None)
    with vramscope.recording(out + ".vram.gz", gpu="h200", steps=2):
        import measure

        measure.build = configurations.maker({"config": given, "case": case, "inputs": {}})
        measure.run(dict(case))
    with gzip.open(out + ".vram.gz") as packed, open(out + ".vram", "wb") as file:
        shutil.copyfileobj(packed, file)
    with open(out + ".json", "w", encoding="utf-8") as file:
        json.dump(
            {"config": {**json.loads(whole.to_json_string(use_diff=False)), "use_cache": False}, "case": case}, file
        )


def main() -> int:
    """Records, and finds the row."""
    with open(sys.argv[1], encoding="utf-8") as file:
        record(json.load(file), sys.argv[2])
    program = os.environ.get("FIND_ROW")
    if program is None:
        return 0
    recorded = [sys.argv[2] + ".vram", sys.argv[2] + ".json"]
    return subprocess.run([program, *recorded, *sys.argv[3:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
