"""`vramscope record --model` over families of transformers, small ones of their default configurations.

python3 usual.py OUT.jsonl FAMILY,...|images|text|all: `images` are the image-text families, `text` the causal language
models. Families that OUT holds are not recorded again. `tests/data/usual_recorded.jsonl` holds all of them;
`python3 tests/recorder/test_tables.py tables` writes its table.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from typing import Any

from player import Results, apart

DEADLINE_SECONDS = 300
# Positions, image tokens included, and those of text alone: some models of state spaces step through them one by one.
POSITIONS = 1024
TEXT_POSITIONS = 256

# What default configurations of a few text models lack to be built or run on any device.
SETTINGS: dict[str, dict[str, Any]] = {
    "cohere_compass_text": dict(rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}),
    "deepseek_v2": dict(num_experts_per_tok=2, n_routed_experts=8, topk_method="greedy", moe_intermediate_size=1408),
    "dots1": dict(num_experts_per_tok=2, n_routed_experts=8, n_shared_experts=1),
    "gemma3n_text": dict(num_kv_shared_layers=0),
    "hunyuan_v1_dense": dict(head_dim=128),
    "hunyuan_v1_moe": dict(head_dim=128),
    "lfm2_moe": dict(layer_types=["conv", "full_attention"] * 2),
    "ministral": dict(head_dim=128),
    "nemotron": dict(head_dim=128, num_key_value_heads=48),
    "reformer": dict(is_decoder=True, axial_pos_shape=[16, 16]),
    "xmod": dict(default_language="en_XX"),
    "zamba": dict(layers_block_type=["mamba", "hybrid"] * 2),
}


def leave_layers(config: dict[str, Any], count: int) -> None:
    """Leaves out what a configuration says of layers that it no longer has."""
    layers = config.get("per_layer_config")
    if layers:
        config["per_layer_config"] = {i: settings for i, settings in layers.items() if int(i) < count}
    for part in config.values():
        if isinstance(part, dict):
            leave_layers(part, count)


def family(name: str, cls: Any, folder: str) -> dict[str, Any]:
    """Two steps of one family from its config.json, by the command line."""
    from vramscope.record.__main__ import main

    import families

    config = families.configuration(name)
    config.architectures = [cls if isinstance(cls, str) else cls[0]]
    path = os.path.join(folder, "config.json")
    config.to_json_file(path, use_diff=False)
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    leave_layers(known, families.LAYERS)
    known |= SETTINGS.get(name, {})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(known, file)
    out = os.path.join(folder, "run.vram.gz")
    words = ["--model", path, "--steps", "2", "-o", out]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main([*words, "--seq", str(POSITIONS if name in families.CLASSES else TEXT_POSITIONS)])
        needed = re.search(r"--seq (\d+) or", said.getvalue())
        if status and needed:
            said.truncate(said.seek(0))
            status = main([*words, "--seq", needed[1]])
    if status:
        return dict(error=said.getvalue().removeprefix("vramscope record: ").strip()[:1500])
    return dict(file_kib=os.path.getsize(out) >> 10)


def main() -> None:
    """Records families one by one and counts them."""
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import vramscope  # noqa: F401
    from transformers.models.auto import modeling_auto as auto

    import families  # noqa: F401

    out, wanted = sys.argv[1:3]
    images, text = auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    known = {**text, **images}
    sets = {"images": images, "text": [n for n in text if n not in images], "all": known}
    names = list(sets.get(wanted, wanted.split(",")))
    results = Results(out, "family")
    for name in names:
        if name in results.rows:
            continue
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            row = apart(family, name, known[name], folder, deadline=DEADLINE_SECONDS)
        results.add({"family": name} | row)
        print(f"{name}, {time.monotonic() - began:.0f} s", row.get("error", "")[:300], flush=True)
    failed = [n for n in names if "error" in results.rows[n]]
    print(f"{len(names) - len(failed)} of {len(names)} recorded; not {', '.join(failed) or 'one'}.")


if __name__ == "__main__":
    main()
