"""Collectives and copies between two cards by `vramscope bench` and by PyTorch, in turns; ratios of medians.

usage: collectives.py VRAMSCOPE OUT.md OUT.json [ROUNDS]

PyTorch runs one process a card, as training does, through torch.distributed and NCCL; bench runs all cards from
one process. Both time with CUDA events on each card and take the slowest card; samples hold as many calls as
last 0.2 ms. The last record of bench is left in OUT.json.
"""
import json, math, os, subprocess, sys, tempfile, time
import torch, torch.distributed as dist, torch.multiprocessing as mp

CLASSES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_receive"]
LOGS = [10, 14, 16, 18, 20, 22, 24, 26, 28, 30]
DTYPE = torch.bfloat16


def sampled(run, seconds=0.15):
    """Nanoseconds of one call: median of samples."""
    def once(n):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(n):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e6

    once(1), once(1)
    # All processes must call as often as each other: what each needs is settled among them.
    n = torch.tensor([max(1, min(1000, math.ceil(200_000 / max(1, once(1)))))], device="cuda")
    if dist.is_initialized():
        dist.all_reduce(n, op=dist.ReduceOp.MAX)
    n = int(n)
    rounds = torch.tensor([max(7, min(40, math.ceil(seconds * 1e9 / max(1, once(n)))))], device="cuda")
    if dist.is_initialized():
        dist.all_reduce(rounds, op=dist.ReduceOp.MAX)
    samples = sorted(once(n) / n for _ in range(int(rounds)))
    return samples[len(samples) // 2]


def collective(name, size, rank, world):
    elements = size // 2
    x = torch.ones(elements, device="cuda", dtype=DTYPE)
    part = torch.ones(elements // world, device="cuda", dtype=DTYPE)
    if name == "all_reduce":
        return lambda: dist.all_reduce(x)
    if name == "all_gather":
        return lambda: dist.all_gather_into_tensor(x, part)
    if name == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(part, x)
    if name == "broadcast":
        return lambda: dist.broadcast(x, 0)
    y = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, (rank + 1) % world), dist.P2POp(dist.irecv, y, (rank - 1) % world)]

    def exchange():
        for work in dist.batch_isend_irecv(ops):
            work.wait()
    return exchange


def process(rank, world, port, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    times = {}
    for name in CLASSES:
        for log in LOGS:
            ns = torch.tensor([sampled(collective(name, 1 << log, rank, world))], device="cuda")
            dist.all_reduce(ns, op=dist.ReduceOp.MAX)
            times[f"{name} {1 << log}"] = float(ns)
    dist.destroy_process_group()
    if rank == 0:
        json.dump(times, open(path, "w"))


def theirs(world, port):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "times.json")
        mp.spawn(process, args=(world, port, path), nprocs=world)
        times = json.load(open(path))
    for log in (20, 24, 28, 30):
        x = torch.ones((1 << log) // 4, device="cuda:0")
        y = torch.empty_like(x, device="cuda:1")
        with torch.cuda.device(0):
            times[f"peer_copy {1 << log}"] = sampled(lambda: y.copy_(x, non_blocking=True))
    return times


def ours(binary, path):
    if os.path.exists(path):
        os.remove(path)
    words = ["device_copy", "host_to_device", "device_to_host", "peer_copy", *CLASSES]
    done = subprocess.run([binary, "bench", *words, "--output", path, "--format", "csv"], capture_output=True, text=True)
    print(done.stderr.strip()[-2000:], flush=True)
    times, ran = {}, {}
    for result in json.load(open(path))["results"]:
        kernel, shape = result["kernel"], result["kernel"]["shape"]
        name = kernel["class"]
        wanted = kernel.get("precision") == "bf16" if name in CLASSES else (
            name == "peer_copy" and kernel["direction"] == "forth" and kernel["peer_access"])
        if wanted and "measured" in result["outcome"]:
            key = f"{name} {shape['bytes']}"
            times[key] = result["outcome"]["measured"]["summary"]["median_ns"]
            ran[key] = f"{result['implementation']['library']} {result['implementation'].get('version', '')}"
        elif "measured" not in result["outcome"]:
            print(name, shape, json.dumps(result["outcome"])[:300], flush=True)
    return times, ran


def main():
    binary, table, record = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 2
    world = torch.cuda.device_count()
    our, their, ran = {}, {}, {}
    for turn in range(rounds):
        begin = time.time()
        mine, ran = ours(binary, record)
        middle = time.time()
        yours = theirs(world, 29500 + turn)
        print(f"round {turn}: bench {middle - begin:.0f} s, PyTorch {time.time() - middle:.0f} s", flush=True)
        for total, new in ((our, mine), (their, yours)):
            for key, ns in new.items():
                total.setdefault(key, []).append(ns)
    median = lambda values: sorted(values)[len(values) // 2]
    share = {"all_reduce": 2 * (world - 1) / world, "all_gather": (world - 1) / world, "reduce_scatter": (world - 1) / world}
    with open(table, "w") as out:
        out.write(f"# Between cards: `vramscope bench` beside PyTorch {torch.__version__} on {world} × {torch.cuda.get_device_name()}\n\n")
        out.write(f"The same collective or copy in turns, bf16, {rounds} rounds; medians. A ratio below 1 means that bench is the faster. Algorithm bandwidth is size over time; bus bandwidth is what passes each card's link in one direction (2·(n − 1)/n of it for all-reduce, (n − 1)/n for all-gather and reduce-scatter, all of it otherwise). bench drives all cards from one process, so it launches one card after the other; PyTorch has a process for each. Made by `tests/pairs/collectives.py`.\n\n")
        out.write("| what | size, bytes | bench, us | PyTorch, us | ratio | algorithm GB/s, bench | bus GB/s, bench | bus GB/s, PyTorch | what bench ran |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
        for key, values in their.items():
            name, size = key.split()
            if key not in our:
                continue
            a, b, bus = median(our[key]), median(values), share.get(name, 1.0)
            row = f"| {name} | {size} | {a / 1e3:.1f} | {b / 1e3:.1f} | {a / b:.3f} | {int(size) / a:.1f} | {int(size) / a * bus:.1f} | {int(size) / b * bus:.1f} | {ran[key]} |"
            out.write(row + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
