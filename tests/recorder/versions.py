"""The recorder in other versions: python3 versions.py FOLDER [--pairs TORCH:TRANSFORMERS,...] [--keep]

Makes an environment for each pair in FOLDER, one after another, runs the tests, the usual step of a few models and
twenty small families there, and removes it again unless `--keep` is given. Results are added to FOLDER/results.jsonl,
from which the table of README.md is printed. PyPI's wheels of PyTorch link NVIDIA's libraries;
`tests/exports/stand_ins.py` stands in for them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# The pair that the kept figures are of, then each minor version of PyTorch with the newest transformers, and PyTorch
# 2.11 with others.
REFERENCE = ("2.11.0", "5.17.0")
PAIRS = [
    REFERENCE,
    ("2.8.0", "5.24.0"),
    ("2.9.1", "5.24.0"),
    ("2.10.0", "5.24.0"),
    ("2.11.0", "5.24.0"),
    ("2.12.1", "5.24.0"),
    ("2.13.0", "5.24.0"),
    ("2.14.1", "5.24.0"),
    ("2.15.0", "5.24.0"),
    ("2.11.0", "4.57.6"),
    ("2.11.0", "5.0.0"),
    ("2.11.0", "5.4.0"),
    ("2.11.0", "5.8.1"),
    ("2.11.0", "5.12.1"),
]

# torchvision is built for one version of PyTorch; there is none for 2.15 yet.
VISION = {"2.8": "0.23.0", "2.9": "0.24.1", "2.10": "0.25.0", "2.11": "0.26.0"}
VISION |= {"2.12": "0.27.1", "2.13": "0.28.0", "2.14": "0.29.2"}

# What importing PyTorch, peft, timm and accelerate needs beside what transformers brings.
BARE = "typing_extensions sympy mpmath networkx Jinja2 MarkupSafe fsspec filelock psutil pillow setuptools".split()

# Small models of both kinds, for `--model`.
MODELS = {
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


def run(*words: str, **options: Any) -> bool:
    """True if a program ends well."""
    return subprocess.run(words, check=False, **options).returncode == 0


def made(folder: str, torch: str, transformers: str) -> str:
    """An environment's interpreter; raises if a package can't be had."""
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, "complete")
    if os.path.exists(done):
        return python
    if not run(sys.executable, "-m", "venv", "--clear", folder):
        raise RuntimeError(f"{folder} could not be made")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--no-cache-dir"]
    if not run(*pip, f"transformers=={transformers}", "numpy", "safetensors"):
        raise RuntimeError(f"transformers {transformers} could not be installed")
    vision = VISION.get(".".join(torch.split(".")[:2]))
    packages = [f"torch=={torch}", "timm", "peft", "accelerate", *BARE]
    if not run(*pip, "--no-deps", *packages, *([f"torchvision=={vision}"] if vision else [])):
        raise RuntimeError(f"torch {torch} could not be installed")
    where = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    if not run(sys.executable, os.path.join(ROOT, "tests", "exports", "stand_ins.py"), os.path.join(found, "lib")):
        raise RuntimeError("NVIDIA's libraries could not be stood in for")
    open(done, "w").close()
    return python


def tried(python: str, folder: str) -> dict[str, Any]:
    """Which tests and models failed there, and what each family took."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.path.join(ROOT, "src", "recorder")}
    tests = ("test_record", "test_reach", "test_libraries")
    failed = [t for t in tests if not run(python, "-m", "unittest", f"tests.recorder.{t}", cwd=ROOT, env=env)]
    for model, sizes in MODELS.items():
        path = os.path.join(folder, f"{model}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"model_type": model, **sizes}, file)
        words = ["--model", path, "--seq", "512", "--image", "112", "--steps", "2", "-o", path + ".vram.gz"]
        if not run(python, "-m", "vramscope.record", *words, env=env, stderr=sys.stdout):
            failed.append(model)
    said = subprocess.run(
        [python, os.path.abspath(__file__), "families"], env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    return dict(failed=failed, families=json.loads(said.stdout.splitlines()[-1]) if said.returncode == 0 else {})


def families(wanted: list[str]) -> dict[str, Any]:
    """Operations and highest bytes of twenty small families, or those wanted, or why one can't be recorded."""
    sys.path.insert(0, HERE)
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import vramscope  # noqa: F401

    import families  # noqa: F401
    from player import apart
    from test_families import NAMES

    return {name: apart(_family, name, deadline=300) for name in wanted or NAMES}


def _family(name: str) -> dict[str, Any]:
    import vramscope

    import families

    if name not in families.CLASSES:
        return {"absent": True}
    with vramscope.recording(os.devnull) as session:
        params = families.train(name)["params"]
    return dict(operations=session.writer.ops, bytes=session.recorder.cached_peak, params=params)


def table(rows: list[dict[str, Any]]) -> str:
    """Results as README.md has them."""
    known = {(r["torch"], r["transformers"]): r for r in rows}
    first = known[REFERENCE]["families"]
    said = [
        "| PyTorch | transformers | tests and `--model` | families recorded | other peaks | other parameters |",
        "| --- " * 6 + "|",
    ]
    for pair in PAIRS:
        if pair not in known:
            continue
        row = known[pair]
        found = row["families"]
        there = {n: f for n, f in found.items() if "absent" not in f}
        done = {n: f for n, f in there.items() if "bytes" in f}
        resized = [n for n, f in done.items() if f.get("params", first[n]["params"]) != first[n]["params"]]
        apart = {n: 100 * (f["bytes"] / first[n]["bytes"] - 1) for n, f in done.items() if n not in resized}
        differ = ", ".join(f"{n} {p:+.2f}%" for n, p in sorted(apart.items()) if abs(p) >= 0.01)
        failed = ", ".join(n for n in there if n not in done)
        count = f"{len(done)} of {len(there)}" + (f" (not {failed})" if failed else "")
        passed = ", ".join(row["failed"]) or "pass" if "failed" in row else "not run"
        said.append(f"| {' | '.join((*pair, passed, count, differ or 'none', ', '.join(resized) or 'none'))} |")
    return "\n".join(said)


def main() -> int:
    """Tries each pair; returns how many failed."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder")
    words.add_argument("--pairs", help="TORCH:TRANSFORMERS,... (default: all)")
    words.add_argument("--keep", action="store_true", help="leave environments, and use those that are there")
    given = words.parse_args()
    folder = os.path.abspath(given.folder)
    os.makedirs(folder, exist_ok=True)
    wanted = [tuple(w.split(":")) for w in given.pairs.split(",")] if given.pairs else PAIRS
    results = os.path.join(folder, "results.jsonl")
    bad = 0
    for torch, transformers in wanted:
        place = os.path.join(folder, f"{torch}-{transformers}")
        try:
            found = tried(made(place, torch, transformers), place)
        except (RuntimeError, subprocess.CalledProcessError) as e:
            found = dict(failed=[str(e)], families={})
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
        bad += bool(found["failed"])
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(dict(torch=torch, transformers=transformers, **found)) + "\n")
        print(f"PyTorch {torch}, transformers {transformers}: {found['failed'] or 'all passed'}", flush=True)
    with open(results, encoding="utf-8") as file:
        print(table([json.loads(line) for line in file]))
    return bad


if __name__ == "__main__":
    if sys.argv[1:2] == ["families"]:
        print(json.dumps(families(sys.argv[2:])))
        sys.exit(0)
    sys.exit(main())
