"""How far predictions are from rows that were measured.

usage: score_rows.py ROWS.jsonl PREDICTED.jsonl [PERCENT]
PREDICTED is what the engine's example `predict_rows` printed of ROWS. Prints rows whose peak is off by more than PERCENT
(0.25 if absent) or whose reserved bytes are off by more than 10%, the worst first, with the marks that differ.
"""
import json, sys

PEAKS = ("peak_forward", "peak_backward", "peak_optimizer")
SHOWN = ("precision", "freeze", "ckpt", "attn", "accum", "optim", "trainer", "strategy", "batch", "seq", "images")

def compared(row, predicted):
    """Errors in percent of peak and reserved bytes, and bytes by which marks differ."""
    ours, theirs = predicted["steady"], row["steady"]
    peak = max(ours[mark] for mark in PEAKS)
    both = dict(ours, before=ours["before_forward"], peak_fb=max(ours["peak_forward"], ours["peak_backward"]), peak_opt=ours["peak_optimizer"])
    return 100 * (peak / row["peak_steady"] - 1), 100 * (predicted["peak_reserved"] / row["reserved_peak"] - 1), {mark: both[mark] - theirs[mark] for mark in theirs if mark in both and both[mark] != theirs[mark]}

def main():
    rows = [row for row in map(json.loads, open(sys.argv[1])) if "case" in row]
    predictions = [json.loads(line) for line in open(sys.argv[2])]
    most = float(sys.argv[3]) if len(sys.argv) > 3 else 0.25
    assert len(rows) == len(predictions), (len(rows), len(predictions))
    found = []
    for number, (row, predicted) in enumerate(zip(rows, predictions)):
        case = row["case"]
        if "error" in predicted: print(number, case["model"], "refused:", predicted["error"][:160]); continue
        if "steady" not in row: print(number, case["model"], "not measured:", row.get("error", "out of memory")[:120]); continue
        found.append((*compared(row, predicted), predicted["params"] - row.get("params", predicted["params"]), number, case))
    for peak, reserved, marks, params, number, case in sorted(found, key=lambda x: -abs(x[0])):
        if abs(peak) > most or abs(reserved) > 10 or params:
            print(f"{number} {case['model']} peak {peak:+.4f}% reserved {reserved:+.2f}%", f"params {params:+}" if params else "", {key: case[key] for key in SHOWN if key in case}, marks)
    within = lambda percent: sum(abs(x[0]) <= percent for x in found)
    print(f"{len(found)} of {len(rows)}: peak exact {within(0)}, within 0.05% {within(.05)}, 0.25% {within(.25)}, 0.5% {within(.5)}, 2% {within(2)}; reserved within 10% {sum(abs(x[1]) <= 10 for x in found)}")

if __name__ == "__main__": main()
