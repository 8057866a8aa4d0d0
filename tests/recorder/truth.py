"""Rows of `tests/data/truth/training_steps.jsonl`, recorded and compared: python3 truth.py ROW... [--out FILE]"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "src", "recorder"), os.path.join(ROOT, "tests", "data", "truth"), HERE]

MARKS = ["before_forward", "after_forward", "peak_forward", "after_backward", "peak_backward", "peak_optimizer", "end"]


def record(case: dict[str, Any], path: str) -> dict[str, Any]:
    """Records a case as `measure.py` runs it; answers carry their questions."""
    import vramscope

    with vramscope.recording(path, gpu="h200"):
        import measure

        return measure.run({**case, "timed": 0})


def answered(value: Any, answers: list[int]) -> Any:
    """A result with the replay's answers in place of the recorder's."""
    if isinstance(value, dict):
        return {k: answered(v, answers) for k, v in value.items()}
    return answers[value.question] if hasattr(value, "question") else value


def main() -> None:
    """Prints one line for each row."""
    from replay import Replay

    keep = os.environ.get("KEEP")
    with open(os.path.join(ROOT, "tests/data/truth/training_steps.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if "case" in row]
    for number in map(int, sys.argv[1:]):
        row = rows[number]
        began = time.monotonic()
        path = keep or os.path.join(tempfile.gettempdir(), f"row{number}.vram.gz")
        result: dict[str, Any] = dict(row=number, model=row["case"]["model"])
        try:
            ours = record(row["case"], path)
        except Exception as e:
            if "error" in row:
                print(json.dumps({**result, "error": str(e)[:100], "truth": row["error"][:60]}), flush=True)
                continue
            if os.environ.get("RAISE"):
                raise
            print(json.dumps({**result, "error": repr(e)[:300]}), flush=True)
            continue
        seconds = time.monotonic() - began
        replay = Replay(path)
        ours = answered(ours, replay.answers)
        peak = max(ours["steady"][k] for k in MARKS if k.startswith("peak"))
        off = {k: round(100 * (ours["steady"][k] / row["steady"][k] - 1), 4) for k in MARKS}
        result |= dict(
            peak=round(100 * (peak / row["peak_steady"] - 1), 4),
            reserved=round(100 * (ours["reserved_peak"] / row["reserved_peak"] - 1), 3),
            model_bytes=ours["after_model"] - row["after_model"],
            **off,
            seconds=round(seconds, 1),
            rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            ops=replay.end["ops"],
            kb=os.path.getsize(path) >> 10,
            assumed=[f"{a['what']}: {a['how']} x{a['count']}" for a in replay.assumed][:4],
        )
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
