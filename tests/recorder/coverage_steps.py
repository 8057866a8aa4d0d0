"""Default configurations of every family, recorded without a GPU and compared with what is simulated, event by event.

python3 coverage_steps.py PROGRAM OUT [itt|lm [FAMILY,...]]: two steps of each default of `tests/data/coverage`, of a
sample with one image where it takes one and of text alone otherwise, are recorded as `random_configurations.py`
records them, and PROGRAM (`compare_events`) sets them beside the simulation. Prints a line for each default: `exact`,
`refused` with transformers' own error beside ours, `answered` with that error if we have none, `differs` with the first
event that does, `not recorded` where no batch of it can be made here, or `unknown`. Tokens of images get the ids that drawn configurations have, unless theirs are outside
the vocabulary. A recording takes as long as a model has layers: both sides have the first eight, unless the
configuration names layers by their numbers.
"""

from __future__ import annotations

import collections
import copy
import gzip
import json
import math
import os
import sys
from typing import Any

import random_configurations

# Layers that are kept, enough for each kind, and keys that count them.
CUT = 8
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers", "layers")
LAYERS += ("depth",)
TOKENS = dict.fromkeys(("image_token_id", "image_token_index"), 32000)
TOKENS |= dict.fromkeys(("video_token_id", "video_token_index"), 32001)
TOKENS |= {"vision_start_token_id": 32002, "vision_end_token_id": 32003}
TOKENS |= {"image_start_token_id": 32002, "image_end_token_id": 32003}
GRID = [16, 16]
# Families whose batch takes a grid of patches, and those of whom nothing in a row of tokens stands for an image.
GRIDS = ("cosmos3_", "ernie4_5_vl_moe", "exaone4_5", "glm", "kimi_k25", "minicpmv4_6", "minimax_m3_vl", "muse_glimmer")
GRIDS += ("paddleocr_vl", "qwen", "video_llama_3")
NO_TOKENS = ("blip", "git", "idefics", "mllama", "pix2struct", "pp_formulanet", "udop", "t5gemma2", "florence2")


def first(value: Any) -> Any:
    """A size, of which some classes hold one for each side."""
    return value[0] if isinstance(value, list) else value


def grid_inputs(family: str, vision: dict[str, Any]) -> dict[str, Any]:
    """What a batch of a grid of patches is made from."""
    patch = first(vision["patch_size"])
    merge = first(vision.get("spatial_merge_size") or vision.get("merge_size") or vision.get("merge_kernel_size") or 2)
    if family == "minicpmv4_6":
        merge = 4
    if family == "video_llama_3":
        merge = 1
    if family in ("kimi_k25", "minicpmv4_6", "paddleocr_vl"):
        elements = patch
    else:
        flat = family in ("cosmos3_edge", "ernie4_5_vl_moe", "video_llama_3")
        elements = 3 * patch * patch * (1 if flat else vision.get("temporal_patch_size", 2))
    return {"per": GRID[0] * GRID[1] // merge**2, "patch": elements, "grid": GRID}


def square_inputs(family: str, config: dict[str, Any], vision: dict[str, Any]) -> dict[str, Any]:
    """What a batch of a square image is made from, and the tokens that the image takes."""
    vision = vision or (config.get("encoder") or {}).get("vision_config") or config
    image, patch = first(vision.get("image_size") or 224), first(vision.get("patch_size"))
    if family in ("lighton_ocr", "mistral3"):
        side = 448 // patch // config.get("spatial_merge_size", 2)
        return {"per": side * side, "pixels": 448}
    if family == "lfm2_vl":
        side = 512 // patch
        return {"per": (side // config["downsample_factor"]) ** 2, "side": side, "patch": 3 * patch * patch}
    if family == "fuyu":
        side = config["image_size"] // config["patch_size"]
        return {"per": side * side, "patch": 3 * config["patch_size"] ** 2, "image": config["image_size"]}
    if family == "kosmos-2.5":
        return {"per": config["latent_query_num"]}
    if family == "pix2struct":
        return {"patch": vision["patch_embed_hidden_size"]}
    given: dict[str, Any] = {"image": image}
    if family == "mllama":
        given |= {"tiles": vision["max_num_tiles"], "ratio": 6}
    if family == "deepseek_vl_hybrid":
        given |= {"high": config["high_res_vision_config"]["image_size"]}
    side = image // patch if isinstance(patch, int) and image else 0
    tokens = {
        "blip-2": config.get("num_query_tokens"),
        "instructblip": config.get("num_query_tokens"),
        "instructblipvideo": 4 * (config.get("num_query_tokens") or 0),
        "gemma3": config.get("mm_tokens_per_image"),
        "shieldgemma2": config.get("mm_tokens_per_image"),
        "kosmos-2": config.get("latent_query_num"),
        "idefics2": (config.get("perceiver_config") or {}).get("resampler_n_latents"),
        "aria": 128,
        "got_ocr2": (side // 4) ** 2,
        "pp_chart2table": (side // 4) ** 2,
        "internvl": config.get("image_seq_length"),
        "qianfan_ocr": config.get("image_seq_length"),
        "llama4": (side // 2) ** 2,
        "cohere2_vision": (side // config.get("downsample_factor", 1)) ** 2,
        "ovis2": (side // vision.get("hidden_stride", 1)) ** 2,
        "janus": side**2 * vision.get("projection_dim", 1) // (config.get("text_config") or {}).get("hidden_size", 1),
    }
    if family in ("llava_next", "llava_next_video", "llava_onevision"):
        # An image of the tower's size covers the middle of the first tiling of least area.
        width, height = min(config["image_grid_pinpoints"], key=math.prod)
        return {
            "per": side**2 + side * (side + 1),
            "image": image,
            "pixels": image,
            "tiles": width * height // image**2 + 1,
        }
    if family not in NO_TOKENS:
        given["per"] = tokens.get(family, side**2)
    return given


def cut(section: dict[str, Any]) -> None:
    """Keeps the first layers of a section and of those within, unless something names layers by their numbers; no step
    keeps keys and values for the next token."""
    if "use_cache" in section:
        section["use_cache"] = False
    lists = {key: value for key, value in section.items() if isinstance(value, list)}
    for key in LAYERS:
        count = section.get(key)
        if not isinstance(count, int) or count <= CUT or "per_layer_config" in section:
            continue
        per_layer = [name for name, value in lists.items() if len(value) == count]
        others = [value for name, value in lists.items() if name not in per_layer]
        if not any(isinstance(each, int) and each >= CUT for value in others for each in value):
            section[key] = CUT
            section.update({name: lists[name][:CUT] for name in per_layer})
    for name, value in section.items():
        # VipLLaVA takes hidden states of the tower by their numbers.
        if isinstance(value, dict) and not (name == "vision_config" and "vision_feature_layers" in section):
            cut(value)


def line_of(row: dict[str, Any], has_image: bool) -> dict[str, Any]:
    """A line as `configurations.py` draws them."""
    import configurations

    family, config = row["type"], copy.deepcopy(row["config"])
    cut(config)
    vision = config.get("vision_config") or {}
    text = config.get("text_config") or config
    vocab = text.get("vocab_size") or config.get("vocab_size") or text.get("n_vocab") or 32064
    longest = min(
        size
        for size in (text.get("max_position_embeddings"), text.get("n_positions"), 4096)
        if isinstance(size, int) and size > 0
    )
    given: dict[str, Any] = {"n": 0, "kind": row["kind"], "vocab": vocab, "token": TOKENS["image_token_id"]}
    case: dict[str, Any] = {"model": family, "batch": 1, "images": 0, "seq": min(64, longest)}
    if has_image:
        token = config.get("image_token_id") or config.get("image_token_index")
        if vocab > 32003 and (token is None or token < vocab):
            config |= {key: TOKENS[key] for key in TOKENS.keys() & config.keys() if config[key] is not None}
        elif token is not None:
            given["token"] = token
        if family in ("blip-2", "instructblip", "instructblipvideo"):
            given["token"] = 50265
            config["video_token_index" if family == "instructblipvideo" else "image_token_index"] = 50265
        is_grid = family.startswith(GRIDS)
        given |= {"n": 1} | (grid_inputs(family, vision) if is_grid else square_inputs(family, config, vision))
        case["images"] = 1
        if is_grid:
            case["grid"] = given.pop("grid")
        elif "pixels" in given:
            case["image"] = given["pixels"]
        elif family == "fuyu":
            case["image"] = given["image"]
        case["seq"] = min(64, longest) if "per" not in given else given["per"] + math.isqrt(given["per"]) + 40
    case |= {"precision": "bf16", "optim": "adamw", "ckpt": "none", "attn": "sdpa", "accum": 1, "freeze": "none"}
    case |= {key: value for key, value in configurations.CASES.get(family, {}).items() if key != "freeze"}
    return {"case": case, "config": config, "inputs": given}


def outcome(program: str, row: dict[str, Any], base: str, has_image: bool) -> tuple[str, str]:
    """A word and the reason for it."""
    line = line_of(row, has_image)
    error = random_configurations.recorded(line, base)
    if not error:
        word, why = random_configurations.compared(program, base)
        return ("unknown" if "is not supported" in why else {"equal": "exact"}.get(word, word)), why
    ours = random_configurations.refusal(program, base)
    if "randn()" in error:
        # The batch is this program's: one that it cannot make says nothing of transformers.
        return "not recorded", f"{error} | {ours}"
    return ("unknown" if "is not supported" in ours else "refused" if ours else "answered"), f"{error} | {ours}"


def main() -> None:
    """Records and compares each default."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    import configurations
    import measure  # noqa: F401
    import player
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import transformers
    import vramscope  # noqa: F401

    transformers.logging.set_verbosity_error()
    random_configurations.DEADLINE_SECONDS = 1200
    program, out, *wanted = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    counts: collections.Counter[str] = collections.Counter()
    with gzip.open(os.path.join(player.ROOT, "tests", "data", "coverage", "configs.jsonl.gz"), "rt") as file:
        rows = [row for row in map(json.loads, file) if row["params"] is not None]
    classes = {row["type"]: row["config"]["architectures"] for row in rows if row["kind"] == "itt"}
    for row in rows:
        if wanted and (row["kind"] != wanted[0] or (wanted[1:] and row["type"] not in wanted[1].split(","))):
            continue
        base = os.path.join(out, f"{row['kind']} {row['type']}")
        config = row["config"]
        # Some classes of text are those of images, and some of those have no tower.
        takes = config["architectures"] == classes.get(row["type"]) and config.get("vision_config", {}) is not None
        takes = takes and row["type"] not in configurations.TEXT
        word, why = outcome(program, row, base, takes)
        if takes and word in ("refused", "answered"):
            alone, more = outcome(program, row, base + " alone", has_image=False)
            word, why = (alone + " without images", more) if alone == "exact" else (word, f"{why} || {alone}: {more}")
        counts[f"{row['kind']} {word}"] += 1
        print(f"{row['kind']} {row['type']}: {word} {why}".rstrip(), flush=True)
    for word, count in sorted(counts.items()):
        print(f"= {word}: {count}")


if __name__ == "__main__":
    main()
