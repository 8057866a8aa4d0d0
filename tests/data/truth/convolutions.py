"""Measure the workspaces of cuDNN's convolutions whose stride is their kernel, as patch embeddings are.

usage: convolutions.py OUT.jsonl.gz [deadline_s]
Each line: dtype, image and weight, and the bytes of the workspace of the convolution and of the gradient of its weight
(0: none), as the allocator's history tells them. TF32 is as PyTorch has it: on for convolutions.
"""
import gzip, json, random, sys, time
import torch

DT = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)
FEW = [*range(1, 9), 10, 12, 14, 16, 20, 24, 32, 40, 48, 49, 50, 51, 52, 60, 64, 65, 66, 68, 70, 72, 96, 128, 160, 192, 256]
MANY = [*range(1, 73), 80, 88, 96, 104, 112, 120, 128, 144, 160, 200, 256]
# side, patch and width of the towers of the catalogue, then others around them
TOWERS = [(224, 14, 1024), (336, 14, 1024), (448, 14, 1024), (224, 16, 1024), (384, 16, 1024), (224, 14, 1152), (384, 14, 1152),
    (448, 14, 1152), (896, 14, 1152), (512, 16, 768), (224, 16, 768), (224, 32, 768), (224, 14, 1408), (560, 14, 1280),
    (448, 14, 1280), (512, 16, 1152), (256, 16, 768), (224, 16, 192), (384, 32, 768), (336, 14, 768)]
OTHERS = [(518, 14, 384), (518, 14, 768), (518, 14, 1024), (518, 14, 1536), (448, 14, 3200), (364, 14, 1152), (378, 14, 1152),
    (392, 14, 1024), (392, 14, 1152), (400, 16, 1024), (416, 16, 1024), (420, 14, 1024), (420, 14, 1152), (476, 14, 1152),
    (504, 14, 1152), (532, 14, 1024), (672, 14, 1024), (980, 14, 1152), (1024, 16, 1024), (256, 14, 1152), (224, 14, 768),
    (256, 16, 1152), (384, 16, 768), (384, 16, 1152), (384, 14, 1024), (384, 16, 384), (224, 32, 1024), (768, 16, 768),
    (1024, 16, 768), (512, 16, 1024)] + [(224, p, w) for p in (14, 16) for w in (192, 384, 512, 640, 896, 1536, 1664, 1792, 3200)]
PATCHES = [*range(4, 64, 4), *range(64, 512, 16), *range(512, 2048, 64), *range(2048, 8192, 272), *range(8192, 20480, 1024),
    *range(20480, 81921, 4096)]

def shapes():
    for towers, counts in ((TOWERS, MANY), (OTHERS, FEW)):
        for side, patch, width in towers:
            for n in counts:
                if n * (side // patch) ** 2 <= 200_000:
                    for d in DT: yield d, (n, 3, side, side), (width, 3, patch, patch)
    for width in (384, 768, 1024, 1280):
        for frames in (2, 4, 8, 16, 32, 64):
            for side in (64, 96, 112, 128, 160, 192, 224, 256, 336):
                for n in (*range(1, 21), 24, 28, 32, 40, 48, 64):
                    if n * frames * side * side * 3 <= 150_000_000:
                        for d in DT: yield d, (n, 3, frames, side, side), (width, 3, 2, 16, 16)
    for width, patch in ((1280, 14), (1152, 14), (1024, 16), (1152, 16), (1280, 16)):
        for n in PATCHES:
            for d in DT: yield d, (n, 3, 2, patch, patch), (width, 3, 2, patch, patch)
    # volumes of 14 × 14 patches, number by number
    for width in (512, 768, 1408):
        for frames, side in ((16, 224), (8, 112), (16, 98), (8, 196), (16, 168)):
            for n in range(1, 51):
                for d in ("f32", "bf16"):
                    if n * frames * side * side * 3 <= 150_000_000: yield d, (n, 3, frames, side, side), (width, 3, 2, 14, 14)
    for n in range(1, 41): yield "bf16", (n, 3, 16, 112, 112), (1024, 3, 4, 14, 14)
    for width in (1152, 1280):
        for n in (*range(240, 264, 2), *range(420, 460, 2), *range(1200, 1420, 2), *range(2560, 2700, 2)): yield "f32", (n, 3, 2, 14, 14), (width, 3, 2, 14, 14)
    for n in range(60, 360, 4): yield "bf16", (n, 3, 2, 14, 14), (1280, 3, 2, 14, 14)

def allocated(run):
    """Bytes of each allocation of a call, and its result."""
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=40)
    out = run()
    return [t["size"] for t in torch.cuda.memory._snapshot()["device_traces"][0] if t["action"] == "alloc"], out

def measure(d, x, w):
    image = torch.randn(x, device="cuda", dtype=DT[d]); weight = torch.randn(w, device="cuda", dtype=DT[d], requires_grad=True)
    conv = torch.nn.functional.conv2d if len(x) == 4 else torch.nn.functional.conv3d
    size = lambda t: t.numel() * t.element_size()
    forward, out = allocated(lambda: conv(image, weight, stride=w[2:]))
    given = torch.randn_like(out)
    backward, _ = allocated(lambda: torch.autograd.grad(out, weight, given))
    # the history still holds what came before: a workspace is what follows the result
    forward = 0 if forward[-1] == size(out) and forward[-2:-1] in ([], [size(weight)]) else forward[-1]
    backward = 0 if backward[-2:] == [size(out), size(weight)] else backward[-1]
    return dict(dtype=d, x=x, w=w, forward=forward, gradient=backward)

def main():
    all = list(dict.fromkeys(shapes())); random.Random(1).shuffle(all)
    deadline = time.time() + float(sys.argv[2] if len(sys.argv) > 2 else 560)
    with gzip.open(sys.argv[1], "wt") as out:
        env = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, cudnn=torch.backends.cudnn.version())
        out.write(json.dumps(dict(env=env)) + "\n")
        for i, shape in enumerate(all):
            if time.time() > deadline: print("deadline at", i, len(all)); break
            out.write(json.dumps(measure(*shape)) + "\n")
            if i % 500 == 0: torch.cuda.empty_cache(); print(i, len(all), flush=True)

if __name__ == "__main__": main()
