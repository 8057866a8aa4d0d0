"""Every image-text family of transformers recorded, beside what an H100 took.

python3 zoo.py ZOO OUT.jsonl FAMILY,... where ZOO is a folder with `zoo.py` (builds and trains the families) and
`h100.jsonl` (measured); `all` records every family, `measured` those that were measured.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
import traceback
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder"), HERE]

DEADLINE_SECONDS = 240


def repairs() -> dict[str, Any]:
    """Changes to default configurations that transformers can't build or run, on a GPU either."""

    def chameleon(c: Any) -> None:
        c.image_token_id = 8711

    def emu3(c: Any) -> None:
        c.image_token_id = 6

    def step3p7(c: Any) -> None:
        c.get_text_config().sliding_window = 128

    def gemma3n(c: Any) -> None:
        c.text_config.num_kv_shared_layers = 0

    def cohere_compass(c: Any) -> None:
        t = c.get_text_config()
        rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 24, 24]}
        t.rope_parameters = {kind: dict(rope) for kind in set(t.layer_types)}

    def diffusion_gemma(c: Any) -> None:
        t = c.get_text_config()
        t.num_experts, t.top_k_experts = 8, 2

    def granite4_vision(c: Any) -> None:
        c.deepstack_layer_map = [[-1, 0]]

    return {
        f.__name__: f for f in (chameleon, emu3, step3p7, gemma3n, cohere_compass, diffusion_gemma, granite4_vision)
    }


def measured(folder: str) -> dict[str, Any]:
    """Rows of `h100.jsonl` by family."""
    with open(os.path.join(folder, "h100.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["k"]: row for row in rows if row.get("ok")}


def record(family: str, truth: dict[str, Any] | None) -> dict[str, Any]:
    """One family recorded, and its distance from the truth in percent."""
    import vramscope

    import zoo as families
    from replay import Replay
    from truth import answered

    for name, repair in repairs().items():
        before = families.FIX.get(name, lambda c: None)
        families.FIX[name] = lambda c, before=before, repair=repair: (before(c), repair(c))
    path = os.path.join(tempfile.gettempdir(), f"zoo-{family}.vram.gz")
    began = time.monotonic()
    with vramscope.recording(path, gpu="h100"):
        ours = families.run(family)
    seconds = time.monotonic() - began
    replay = Replay(path)
    steady = answered(ours["steady"], replay.answers)
    peaks = ("peak_forward", "peak_backward", "peak_optimizer")
    found = {
        "family": family,
        "seconds": round(seconds, 1),
        "host_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "operations": replay.end["ops"],
        "file_kib": os.path.getsize(path) >> 10,
        "steady": steady,
        "peak": max(steady[m] for m in peaks),
        "reserved_peak": answered(ours["reserved_peak"], replay.answers),
        "assumed": [f"{a['what']}: {a['how']} ({a['count']})" for a in replay.assumed],
    }
    if truth is not None:
        off = {m: round(100 * (steady[m] / truth["steady"][m] - 1), 4) for m in steady}
        found["peak_off"] = round(100 * (found["peak"] / truth["peak"] - 1), 4)
        found["reserved_off"] = round(100 * (found["reserved_peak"] / truth["reserved_peak"] - 1), 3)
        found["marks_off"] = off
    return found


def child(family: str, truth: dict[str, Any] | None, queue: Any) -> None:
    """Records in a process of its own and hands over what came out, or why nothing did."""
    try:
        queue.put(record(family, truth))
    except BaseException as e:
        queue.put({"family": family, "error": repr(e)[:300], "trace": traceback.format_exc()[-1500:]})


def main() -> None:
    """Records families one by one and sums up."""
    folder, out, wanted = sys.argv[1:4]
    sys.path.remove(HERE)
    sys.path[:0] = [folder]
    import transformers

    import zoo as families

    sys.path[1:1] = [HERE]
    truths = measured(folder)
    names = {"all": list(families.M), "measured": list(truths)}.get(wanted, wanted.split(","))
    context = multiprocessing.get_context("fork")
    rows: list[dict[str, Any]] = []
    with open(out, "a", encoding="utf-8") as file:
        for name in names:
            queue = context.Queue()
            process = context.Process(target=child, args=(name, truths.get(name), queue))
            process.start()
            try:
                row = queue.get(timeout=DEADLINE_SECONDS)
            except Exception:
                row = {"family": name, "error": f"not done after {DEADLINE_SECONDS} s"}
            process.kill()
            process.join()
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(name, row.get("peak_off", ""), row.get("reserved_off", ""), row.get("error", "")[:160], flush=True)
    off = [abs(row["peak_off"]) for row in rows if "peak_off" in row]
    done = sum("error" not in row for row in rows)
    print(f"{done} of {len(rows)} recorded with transformers {transformers.__version__}")
    if off:
        within = sum(x <= 1 for x in off)
        print(f"peak off by {statistics.median(off)}% in the median of {len(off)}, {within} within 1%")


if __name__ == "__main__":
    main()
