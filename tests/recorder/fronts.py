"""Trainer, TRL's SFT and DPO, and eight families at five sizes: recorded without a GPU beside what an H100 took.

python3 fronts.py VRAMSCOPE FOLDER CASE,... records cases of `tests/data/truth/fronts_h100.jsonl` (numbers, or `all`) as
`fronts.py` beside it runs them, keeps the recordings in FOLDER, has the binary VRAMSCOPE play them, and writes what
came out to `tests/data/fronts_recorded.jsonl`. Needs the packages that the file's first line names.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
import traceback
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TRUTH = os.path.join(ROOT, "tests", "data", "truth", "fronts_h100.jsonl")
RECORDED = os.path.join(ROOT, "tests", "data", "fronts_recorded.jsonl")
sys.path[:0] = [os.path.join(ROOT, "src", "recorder"), os.path.join(ROOT, "tests", "data", "truth"), HERE]

DEADLINE_SECONDS = 600
RUNS = {"trainer": "run_trainer", "trl_sft": "run_trl", "trl_dpo": "run_trl", "loop": "run_loop"}


def truths() -> dict[int, dict[str, Any]]:
    """What was measured, by the number of its case."""
    with open(TRUTH, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["i"]: row for row in rows if "case" in row}


def record(case: dict[str, Any], path: str) -> dict[str, Any]:
    """Records a case as `fronts.py` runs it; returns what the recording cost."""
    import vramscope

    began = time.monotonic()
    with vramscope.recording(path, gpu="h100"):
        getattr(truth_module(), RUNS[case["front"]])(case)
    return dict(
        seconds=round(time.monotonic() - began, 1),
        host_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        file_kib=os.path.getsize(path) >> 10,
    )


def play(binary: str, path: str) -> dict[str, Any]:
    """What the engine says of a recording."""
    words = [binary, "estimate", "--recording", path, "--format", "json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def compare(played: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    """The marks that both know, in bytes: recorded, measured."""
    ours, theirs = played["steady"], truth["steady"]
    peaks = ("peak_forward", "peak_backward", "peak_optimizer")
    pairs = {
        "peak": [max(ours[p] for p in peaks), truth["peak_steady"]],
        "end": [ours["end"], theirs["end"]],
        "reserved": [played["peak_reserved"], truth["reserved_peak"]],
    }
    if truth["case"]["front"] == "loop":
        pairs |= {mark: [ours[mark], theirs[mark]] for mark in ("after_forward", "after_backward", *peaks)}
    return pairs


def child(number: int, truth: dict[str, Any], path: str, binary: str, queue: Any) -> None:
    """Records and plays one case in a process of its own."""
    case = truth["case"]
    row: dict[str, Any] = dict(i=number, front=case["front"], model=case["model"])
    try:
        cost = record(case, path)
        queue.put({**row, **compare(play(binary, path), truth), **cost})
    except BaseException as e:
        said = e.stderr if isinstance(e, subprocess.CalledProcessError) else traceback.format_exc()
        queue.put({**row, "error": f"{e!r}"[:300], "trace": said[-3000:]})


def truth_module() -> Any:
    """The module that measured, whose name this file has too."""
    path = os.path.join(ROOT, "tests", "data", "truth", "fronts.py")
    spec = importlib.util.spec_from_file_location("fronts_truth", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def warm_up() -> None:
    """Imports what all cases need, so that their processes begin with it."""
    import datasets  # noqa: F401
    import peft  # noqa: F401
    import transformers.models.auto.modeling_auto
    import transformers.trainer  # noqa: F401
    import trl  # noqa: F401
    import vramscope  # noqa: F401


def merge(rows: list[dict[str, Any]]) -> None:
    """Puts rows in the place of those of the same cases."""
    kept: dict[int, dict[str, Any]] = {}
    if os.path.exists(RECORDED):
        with open(RECORDED, encoding="utf-8") as file:
            kept = {row["i"]: row for row in map(json.loads, file)}
    for row in rows:
        kept[row["i"]] = {k: v for k, v in row.items() if k not in ("trace", "seconds", "host_mib")}
    with open(RECORDED, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(kept[i]) + "\n" for i in sorted(kept))


def main() -> None:
    """Records the cases one by one."""
    binary, folder, wanted = sys.argv[1:4]
    os.makedirs(folder, exist_ok=True)
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    os.environ["TMPDIR"] = os.path.abspath(folder)
    warm_up()
    known = truths()
    context = multiprocessing.get_context("fork")
    for number in known if wanted == "all" else map(int, wanted.split(",")):
        queue = context.Queue()
        path = os.path.join(folder, f"{number}.vram.gz")
        process = context.Process(target=child, args=(number, known[number], path, binary, queue))
        process.start()
        try:
            row = queue.get(timeout=DEADLINE_SECONDS)
        except Exception:
            row = dict(i=number, error=f"not done after {DEADLINE_SECONDS} s")
        process.kill()
        process.join()
        merge([row])
        off = {k: round(100 * (v[0] / v[1] - 1), 4) for k, v in row.items() if isinstance(v, list)}
        print(number, row.get("front"), row.get("model"), off, row.get("seconds"), row.get("host_mib"), flush=True)
        if "error" in row:
            print(row["error"], row.get("trace", ""), flush=True)


if __name__ == "__main__":
    main()
