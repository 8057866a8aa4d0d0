"""Measure what cuDNN's convolutions allocate: any kernel, stride, padding, groups and layout, as the gallery's models have them.

usage: any_convolutions.py OUT.jsonl.gz [deadline_s]     on a GPU; the default deadline is 220 s
       any_convolutions.py OUT.jsonl.gz DEADLINE_S f32,f16 r3d-18,mc3-18    the calls of some recordings in other types
       any_convolutions.py --count                       how many calls there are to measure; needs no GPU

Calls are those in src/gallery/recordings, then the same with other batches, in an order that any deadline samples evenly.
Each line holds a call and `events`: bytes of each allocation, and negative those of each free, in order, as the allocator's
history tells them. What a call returns is allocated and not freed; everything else is a workspace or a copy. `first` is there
if the first call of this kind in the process did otherwise. TF32 is as PyTorch has it: on for convolutions.
"""
import glob, gzip, json, os, random, re, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
OPS = ("aten.convolution.default", "aten.convolution_backward.default")
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MOST_ELEMENTS = 1 << 28
MARKER = 777_777  # Bytes that no call allocates: where the trace of a measured call begins.

def calls(names="*"):
    """Every call in the gallery's recordings of these names, once: operation, tensors as [dtype, shape, strides or None], and the other arguments."""
    found = {}
    for path in sorted(path for name in names.split(",") for path in glob.glob(os.path.join(ROOT, f"src/gallery/recordings/{name}.vram"))):
        names, metas = {}, {}
        with gzip.open(path, "rt") as lines:
            for line in lines:
                if line.startswith(('{"t":"fn"', '{"t":"meta"')):
                    x = json.loads(line)
                    (names if x["t"] == "fn" else metas)[x["id"]] = x
                elif (match := re.match(r'\{"t":"op","f":(\d+)', line)) and names[int(match[1])]["name"] in OPS:
                    arguments = [tensor(a, metas) for a in json.loads(line)["a"]]
                    call = dict(op=OPS.index(names[int(match[1])]["name"]), a=arguments)
                    found[json.dumps(call)] = call
    return list(found.values())

def tensor(argument, metas):
    if not (isinstance(argument, str) and argument.startswith("#")): return argument
    meta = metas[int(argument.split(":")[1])]
    return [meta["dtype"], meta["shape"], meta.get("strides")]

def is_tensor(argument): return isinstance(argument, list) and argument and isinstance(argument[0], str)

def with_batch(call, batch):
    """The call for another batch; None if it becomes too large, or if the batch is not the outermost dimension in memory: then a
    larger batch would need other strides."""
    at = [0] if call["op"] == 0 else [0, 1]
    changed = [list(a) if is_tensor(a) else a for a in call["a"]]
    for i in at:
        dtype, shape, strides = changed[i]
        if strides is not None and strides[0] != max(s * d for s, d in zip(strides[1:], shape[1:])): return None
        changed[i] = [dtype, [batch, *shape[1:]], strides]
        elements = batch
        for extent in shape[1:]: elements *= extent
        if elements > MOST_ELEMENTS: return None
    return dict(op=call["op"], a=changed)

def wanted(names="*"):
    """The gallery's calls, then those of other batches in an order drawn by chance."""
    own = calls(names)
    known = {json.dumps(call) for call in own}
    others = {}
    for call in own:
        for batch in BATCHES:
            other = with_batch(call, batch)
            if other is not None and json.dumps(other) not in known: others[json.dumps(other)] = other
    others = list(others.values())
    random.Random(1).shuffle(others)
    return own, others

def measure(torch, call):
    types = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)
    def made(argument):
        if not is_tensor(argument): return argument
        dtype, shape, strides = argument
        if strides is None: return torch.empty(shape, dtype=types[dtype], device="cuda")
        return torch.empty_strided(shape, strides, dtype=types[dtype], device="cuda")
    arguments = [made(a) for a in call["a"]]
    op = (torch.ops.aten.convolution, torch.ops.aten.convolution_backward)[call["op"]].default
    def events():
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=100)
        marker = torch.empty(MARKER, dtype=torch.uint8, device="cuda")
        out = op(*arguments)
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        begin = max(i for i, t in enumerate(trace) if t["action"] == "alloc" and t["size"] == MARKER) + 1
        signs = dict(alloc=1, free_completed=-1)
        del out, marker
        return [signs[t["action"]] * t["size"] for t in trace[begin:] if t["action"] in signs]
    first, again = events(), events()
    return dict(call, events=again) | (dict(first=first) if first != again else {})

def main():
    own, others = wanted()
    if sys.argv[1] == "--count":
        print(len(own), "calls of the gallery,", len(others), "with other batches")
        return
    if len(sys.argv) > 3:
        own, others = wanted(sys.argv[4])
        typed = lambda call, t: dict(call, a=[[t, *a[1:]] if is_tensor(a) else a for a in call["a"]])
        own, others = [[typed(call, t) for call in some for t in sys.argv[3].split(",")] for some in (own, others)]
    import torch
    torch.set_grad_enabled(False)
    deadline = time.time() + float(sys.argv[2] if len(sys.argv) > 2 else 220)
    with gzip.open(sys.argv[1], "wt") as out:
        env = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, cudnn=torch.backends.cudnn.version())
        out.write(json.dumps(dict(env=env)) + "\n")
        for i, call in enumerate(own + others):
            if time.time() > deadline: print("deadline at", i, len(own) + len(others)); break
            try: found = measure(torch, call)
            except RuntimeError as e: found = dict(call, error=str(e)[:200])
            out.write(json.dumps(found) + "\n")
            if i % 200 == 0: torch.cuda.empty_cache(); print(i, len(own), len(others), flush=True)

if __name__ == "__main__": main()
