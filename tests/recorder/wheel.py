"""Builds the wheel and uses it in a fresh environment: python3 wheel.py FOLDER [PYTORCH]

FOLDER takes the environments and the wheel. PYTORCH is a folder of packages with PyTorch (`site-packages` of another
environment); with it a script is recorded too. maturin comes from the package index.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Run in the fresh environment, in a folder of nothing.
USE = """
import json, subprocess, sys
import vramscope

answer = vramscope.estimate("gpt2", batch=2, seq=256, gpu="H100")
assert answer["peak_allocated"] > 500 << 20 and answer["target"]["verdict"] == "fits", answer
assert vramscope.estimate("gpt2", batch=4, seq=256)["peak_allocated"] > answer["peak_allocated"]
program = sys.prefix + "/bin/vramscope"
config = json.loads(subprocess.run([program, "models", "gpt2"], capture_output=True, check=True).stdout)
assert vramscope.estimate(config=config, batch=2, seq=256)["peak_allocated"] == answer["peak_allocated"]
try:
    vramscope.estimate("gpt-2-huge")
    raise AssertionError("a model that is not there was answered")
except ValueError as e:
    assert "gpt-2-huge" in str(e), e
"""

# Without PyTorch.
REFUSED = """
import vramscope

try:
    vramscope.record("train.py")
    raise AssertionError("recorded without PyTorch")
except Exception as e:
    assert "has no PyTorch" in str(e), e
"""

# With PyTorch: a script, then what a notebook's cells would do.
RECORDED = """
import vramscope

path = vramscope.record("train.py", ["--width", 64], gpu="a100", steps=2, out="run.vram.gz")
played = vramscope.estimate(recording=path)
parameters = 4 * (64 * 64 + 64)
assert played["steady"]["end"] >= 3 * parameters, played["steady"]
try:
    vramscope.record("train.py", ["--width", 0])
    raise AssertionError("a script that fails was recorded")
except Exception as e:
    assert "width" in str(e), e

import torch

with vramscope.recording("cell.vram.gz", gpu="a100"):
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(8, 64, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
assert vramscope.estimate(recording="cell.vram.gz")["steady"]["end"] >= 3 * parameters
"""

TRAIN = """
import argparse, torch

words = argparse.ArgumentParser()
words.add_argument("--width", type=int)
width = words.parse_args().width
if width < 1:
    raise ValueError("the width must be positive")
model = torch.nn.Linear(width, width).cuda()
optimizer = torch.optim.AdamW(model.parameters())
while True:
    model(torch.randn(8, width).cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def run(*words: str, **options: object) -> None:
    """Runs a program; ends this one if it fails."""
    done = subprocess.run(words, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])} ended with {done.returncode}")


def environment(folder: str) -> str:
    """A fresh virtual environment's interpreter."""
    run(sys.executable, "-m", "venv", "--clear", folder)
    return os.path.join(folder, "bin", "python")


def build(folder: str) -> str:
    """The wheel, as maturin builds it from the repository; unoptimized, so that it shares what tests compile."""
    tools = os.path.join(folder, "tools")
    maturin = os.path.join(tools, "bin", "maturin")
    if not os.path.exists(maturin):
        run(environment(tools), "-m", "pip", "install", "-q", "--disable-pip-version-check", "maturin>=1.9,<2")
    wheels = os.path.join(folder, "wheels")
    for old in glob.glob(os.path.join(wheels, "*.whl")):
        os.remove(old)
    words = [maturin, "build", "--quiet", "--profile", "dev", "--out", wheels, *os.environ.get("MATURIN", "").split()]
    run(*words, cwd=ROOT)
    return glob.glob(os.path.join(wheels, "vramscope-*.whl"))[0]


def main() -> None:
    """Builds, installs, uses."""
    folder = os.path.abspath(sys.argv[1])
    wheel = build(folder)
    python = environment(os.path.join(folder, "fresh"))
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", wheel)
    place = os.path.join(folder, "empty")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "train.py"), "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(TRAIN))
    # Nothing of the caller's environment shows.
    bare = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")}
    program = os.path.join(folder, "fresh", "bin", "vramscope")
    run(program, "--version", cwd=place, env=bare)
    run(python, "-c", USE, cwd=place, env=bare)
    run(python, "-c", REFUSED, cwd=place, env=bare)
    if len(sys.argv) > 2:
        with_torch = {**bare, "PYTHONPATH": os.path.abspath(sys.argv[2])}
        run(python, "-c", RECORDED, cwd=place, env=with_torch)
        # The program itself finds the Python of the environment that it lies in.
        run(program, "record", "-o", "own.vram.gz", "train.py", "--width", "8", cwd=place, env=with_torch)
        run(program, "estimate", "--recording", "own.vram.gz", cwd=place, env=bare, stdout=subprocess.DEVNULL)
    print(f"{os.path.basename(wheel)} ({os.path.getsize(wheel) / 1e6:.1f} MB) installs and works")


if __name__ == "__main__":
    main()
