"""Writes a large file for the readers of `diagnose`: what a long run leaves behind.

    python3 tests/measure/large.py KIND MB OUT

KIND is `snapshot` (a memory snapshot as torch.cuda.memory._dump_snapshot pickles it: two events of three free what
was allocated, stacks of 8 to 30 frames, most of them shared), `trace` (a Chrome trace of torch.profiler), or `log`
(a training log with memory). MB is its size in millions of bytes, within a few per cent. The same arguments give the
same file. Times of the command line and of the page with it:

    /usr/bin/time -v vramscope diagnose OUT
    cargo run -p vramscope-tests --example measure -- OUT
"""

import json
import pickle
import random
import sys

EVENT_BYTES = 93  # of a pickled event, with its share of the stacks
SIZES = [512, 4096, 1 << 20, 6 << 20, 37 << 20]


def snapshot(count):
    frames = [
        {
            "name": f"forward_{i}" if i % 3 else "forward",
            "filename": f"/usr/lib/python3.12/site-packages/torch/nn/modules/m{i % 40}.py"
            if i % 2
            else f"/home/me/project/model_{i % 25}.py",
            "line": i,
        }
        for i in range(2000)
    ]
    stacks = [[random.choice(frames) for _ in range(random.randrange(8, 30))] for _ in range(3000)]
    events, live, address = [], [], 0x7F0000000000

    def event(action, address, size, stack):
        events.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": 0,
                "time_us": 1795161818450031 + len(events),
                "compile_context": "N/A",
                "user_metadata": "",
                "frames": stack,
            }
        )

    while len(events) < count:
        # Half the time as full as an 80 GB card allows, and emptied again.
        if live and random.random() < (0.45 if len(events) // 20000 % 2 else 0.55):
            freed, size = live.pop(random.randrange(len(live)))
            event("free_requested", freed, size, [])
            event("free_completed", freed, size, [])
        else:
            size = random.choice(SIZES) + random.randrange(500)
            address += 64 << 20
            live.append((address, size))
            stack = random.choice(stacks)
            event("alloc", address, size, list(stack) if len(events) % 2 else stack)
    segments = [
        {
            "device": 0,
            "address": address,
            "total_size": 64 << 20,
            "allocated_size": size,
            "stream": 0,
            "segment_type": "large",
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {"address": address, "size": size, "state": "active_allocated", "frames": []},
                {"address": address + size, "size": (64 << 20) - size, "state": "inactive", "frames": []},
            ],
        }
        for address, size in live
    ]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}
    return {"segments": segments, "device_traces": [events], "allocator_settings": settings}


def trace(out, size):
    out.write('{"schemaVersion": 1, "traceEvents": [\n')
    time, i = 0.0, 0
    while out.tell() < size:
        time += random.random() * 20
        i += 1
        args = {"External id": i, "device": 0, "stream": 7, "correlation": i, "grid": [1, 2, 3], "block": [128, 1, 1]}
        name = f"void at::native::vectorized_elementwise_kernel<{i % 200}>"
        begin = round(time, 3)
        kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": begin, "dur": 9.5, "args": args}
        host = {"ph": "X", "cat": "cpu_op", "name": f"aten::op_{i % 300}", "pid": 1, "tid": 2, "ts": begin, "dur": 3.25}
        out.write(json.dumps(kernel) + ",\n" + json.dumps(host) + ",\n")
        if i % 5 == 0:
            memory = {"Total Allocated": random.randrange(8 << 30), "Bytes": -512, "Device Id": 0, "Device Type": 1}
            seen = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": begin, "args": memory}
            out.write(json.dumps(seen) + ",\n")
    out.write('{"ph": "M"}]}')


def log(out, size):
    i = 0
    while out.tell() < size:
        i += 1
        out.write(f"2024-01-01 00:00:00 INFO step {i}/100000 | loss 2.31 | lr 1.0e-5 | mem {18 + i % 3}.2 GB\n")


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("snapshot", "trace", "log") or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    kind, size, out = sys.argv[1], int(sys.argv[2]) * 1_000_000, sys.argv[3]
    random.seed(0)
    if kind == "snapshot":
        with open(out, "wb") as file:
            pickle.dump(snapshot(size // EVENT_BYTES), file)
    else:
        with open(out, "w") as file:
            (trace if kind == "trace" else log)(file, size)


if __name__ == "__main__":
    main()
