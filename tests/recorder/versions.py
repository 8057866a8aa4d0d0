"""The recorder's tests in other versions: python3 versions.py FOLDER [TORCH:TRANSFORMERS,...]

Makes an environment for each pair in FOLDER, one after another, runs the tests and the usual step of a few families
there, and removes it again. PyPI's wheels of PyTorch link NVIDIA's libraries; `tests/exports/stand_ins.py` stands
in for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Minor versions of PyTorch from the oldest that is supported with a new transformers, and 2.11 with older ones.
PAIRS = [
    ("2.8.0", "5.24.0"),
    ("2.9.1", "5.24.0"),
    ("2.10.0", "5.24.0"),
    ("2.11.0", "4.57.6"),
    ("2.11.0", "5.0.0"),
    ("2.11.0", "5.8.0"),
    ("2.11.0", "5.17.0"),
    ("2.11.0", "5.24.0"),
]

# What importing PyTorch, peft and accelerate needs beside what transformers brings.
BARE = "typing_extensions sympy mpmath networkx Jinja2 MarkupSafe fsspec filelock psutil pillow".split()

# Small models of both kinds, for `--model`.
FAMILIES = {
    "gpt2": dict(n_embd=64, n_layer=2, n_head=2, vocab_size=512),
    "llama": dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=512),
    "qwen2_vl": dict(
        text_config=dict(
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=512,
            rope_scaling={"type": "mrope", "mrope_section": [2, 3, 3]},
        ),
        vision_config=dict(depth=2, embed_dim=64, hidden_size=64, num_heads=4),
        image_token_id=500,
        video_token_id=501,
        vision_start_token_id=502,
        vision_end_token_id=503,
    ),
}


def run(*words: str, **options: object) -> bool:
    """True if a program ends well."""
    return subprocess.run(words, check=False, **options).returncode == 0


def made(folder: str, torch: str, transformers: str) -> str:
    """An environment's interpreter; raises if a package can't be had."""
    if not run(sys.executable, "-m", "venv", "--clear", folder):
        raise RuntimeError(f"{folder} could not be made")
    python = os.path.join(folder, "bin", "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--no-cache-dir"]
    if not run(*pip, f"transformers=={transformers}", "numpy", "safetensors"):
        raise RuntimeError(f"transformers {transformers} could not be installed")
    if not run(*pip, "--no-deps", f"torch=={torch}", "peft", "accelerate", *BARE):
        raise RuntimeError(f"torch {torch} could not be installed")
    where = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    if not run(sys.executable, os.path.join(ROOT, "tests", "exports", "stand_ins.py"), os.path.join(found, "lib")):
        raise RuntimeError("NVIDIA's libraries could not be stood in for")
    return python


def tried(python: str, folder: str) -> list[str]:
    """What failed there."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.path.join(ROOT, "src", "recorder")}
    failed = []
    if not run(python, "-m", "unittest", "discover", "-s", "tests/recorder", "-t", ".", cwd=ROOT, env=env):
        failed.append("tests")
    for family, sizes in FAMILIES.items():
        path = os.path.join(folder, f"{family}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"model_type": family, **sizes}, file)
        words = ["--model", path, "--seq", "512", "--image", "112", "--steps", "2", "-o", path + ".vram.gz"]
        if not run(python, "-m", "vramscope.record", *words, env=env, stderr=sys.stdout):
            failed.append(family)
    return failed


def main() -> int:
    """Tries each pair; returns how many failed."""
    folder = os.path.abspath(sys.argv[1])
    wanted = [tuple(w.split(":")) for w in sys.argv[2].split(",")] if len(sys.argv) > 2 else PAIRS
    bad = 0
    for torch, transformers in wanted:
        place = os.path.join(folder, f"{torch}-{transformers}")
        try:
            failed = tried(made(place, torch, transformers), place)
        except (RuntimeError, subprocess.CalledProcessError) as e:
            failed = [str(e)]
        shutil.rmtree(place, ignore_errors=True)
        bad += bool(failed)
        print(f"PyTorch {torch}, transformers {transformers}: {', '.join(failed) or 'all passed'}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
