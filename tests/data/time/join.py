"""One file of measured kernels and a host's pace, as `vramscope estimate --kernels` reads it.

usage: join.py KERNELS.jsonl HOST.json [ALONE.json] > CARD.json"""
import json
import sys

UNUSED = {"neg", "mul", "add_", "pow2", "pow3", "rsqrt", "clone", "norm", "half_neg", "slice_bw", "add_layouts",
          "transpose_back", "row_mul", "col_mul", "masked_fill", "index_rows", "index_select"}
LEFT_OUT = {"begin and end", "slice", "node", "copy into a part", "check: standard forward", "check: standard training"}


def main():
    kernels = {}
    for line in open(sys.argv[1]):
        point = json.loads(line)
        kind, dtype = point["c"], point["t"]
        if kind in UNUSED or (kind == "cast" and dtype != "bf16"):
            continue
        kernels.setdefault(f"{kind} {dtype}", []).append(point["d"] + [float("%.4g" % point["us"])])
    host = json.load(open(sys.argv[2]))
    # backward's operations are issued by the same C++ alone as in a model: the difference is in Python
    alone = json.load(open(sys.argv[3]))["alone"] if len(sys.argv) > 3 else {}
    alone = {name: us for name, us in alone.items() if name not in LEFT_OUT and not name.endswith("gradient")}
    print(json.dumps({"card": host["card"], "software": host["software"], "host": host["host"],
                      "launch_latency_us": host["launch_latency_us"], "host_us": host["pace"],
                      "host_alone_us": dict(alone, forward=0),
                      "kernels_us": kernels}))


if __name__ == "__main__":
    main()
