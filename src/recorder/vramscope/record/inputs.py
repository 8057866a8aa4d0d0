"""A batch for any model of transformers, by the rules of its image processor and its configuration."""

from __future__ import annotations

import argparse
import inspect
import json
import os
from typing import Any

import torch

from vramscope.record.errors import RecordingError

IMAGE_TOKENS = ("image_token_id", "image_token_index", "media_placeholder_token_id")
STARTS = ("vision_start_token_id", "image_start_token_id", "boi_token_id", "boi_token_index")
ENDS = ("vision_end_token_id", "image_end_token_id", "eoi_token_id", "eoi_token_index")


def first(config: Any, names: tuple[str, ...], default: Any = None) -> Any:
    """The first of these attributes that a configuration has."""
    for name in names:
        value = getattr(config, name, None)
        if value is not None:
            return value
    return default


def takes_images(config: Any) -> bool:
    """True if the model reads images beside text."""
    return getattr(config, "vision_config", None) is not None and first(config, IMAGE_TOKENS) is not None


def forward_arguments(model: Any) -> set[str]:
    """Names of the arguments of a model's forward, an adapter's wrapper looked through."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return set(inspect.signature(base.forward).parameters)


def image_size(config: Any, options: argparse.Namespace) -> tuple[int, int]:
    """Width and height in pixels: as asked for, else the model's own."""
    if options.image:
        width, _, height = options.image.lower().partition("x")
        if not width.isdigit() or (height and not height.isdigit()):
            raise RecordingError(f'--image takes pixels such as 448 or 640x480; "{options.image}" was given.')
        return int(width), int(height or width)
    size = getattr(getattr(config, "vision_config", config), "image_size", None)
    size = size[0] if isinstance(size, (list, tuple)) else size.get("height") if isinstance(size, dict) else size
    size = size if isinstance(size, int) and size >= 64 else 448
    return size, size


def processor(config: Any, folder: str) -> Any:
    """The model's image processor, with the settings of its folder or its class's own."""
    import transformers
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

    named = IMAGE_PROCESSOR_MAPPING_NAMES.get(config.model_type)
    if named is None:
        return None
    names = (
        list(named.values())
        if isinstance(named, dict)
        else list(named)
        if isinstance(named, (list, tuple))
        else [named]
    )
    settings: dict[str, Any] = {}
    path = os.path.join(folder, "preprocessor_config.json")
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    for name in sorted((n for n in names if n), key=lambda n: not n.endswith("Fast")):
        cls = getattr(transformers, name, None)
        if cls is not None:
            try:
                return cls(**settings)
            except (TypeError, ValueError, ImportError):
                continue
    return None


def images(model: Any, config: Any, options: argparse.Namespace) -> dict[str, torch.Tensor]:
    """What the image processor makes of a batch's images, and what of it the model takes."""
    width, height = image_size(config, options)
    picture = torch.zeros(3, height, width, dtype=torch.uint8)
    folder = options.model if os.path.isdir(options.model) else os.path.dirname(options.model)
    made = processor(config, folder)
    taken = forward_arguments(model)
    found: dict[str, Any] = {}
    if made is not None:
        nested = [[picture] * options.images for _ in range(options.batch)]
        for given in (nested, [picture] * (options.images * options.batch)):
            try:
                found = dict(made(images=given, return_tensors="pt"))
                break
            except (ValueError, TypeError, AttributeError, IndexError, RuntimeError):
                continue
    if not any(name.startswith("pixel_values") for name in found):
        channels = getattr(getattr(config, "vision_config", config), "num_channels", 3)
        found = {"pixel_values": torch.zeros(options.batch * options.images, channels, height, width)}
        if "image_sizes" in taken:
            found["image_sizes"] = torch.tensor([[height, width]] * options.batch * options.images)
    dtype = next(p.dtype for p in model.parameters() if p.is_floating_point())
    batch: dict[str, torch.Tensor] = {}
    for name, x in found.items():
        if name in taken and isinstance(x, torch.Tensor):
            x = x.to("cuda")
            batch[name] = x.to(dtype) if x.is_floating_point() else x
    return batch


def image_positions(model: Any, config: Any, options: argparse.Namespace) -> int:
    """Text positions that one image takes: what the model's own `get_image_features` gives."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    inner = getattr(base, "model", base)
    function = getattr(base, "get_image_features", None) or getattr(inner, "get_image_features", None)
    if function is None:
        return 0
    parameters = inspect.signature(function).parameters
    anything = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    given = {n: x for n, x in images(model, config, options).items() if n in parameters or anything}
    for name in ("vision_feature_layer", "vision_feature_select_strategy"):
        if name in parameters and parameters[name].default is inspect.Parameter.empty:
            given[name] = getattr(config, name, None)
    with torch.no_grad():
        features = function(**given)
    pooled = getattr(features, "pooler_output", None)
    pooled = pooled if pooled is not None else getattr(features, "last_hidden_state", features)
    return _rows(pooled) // (options.batch * options.images)


def _rows(features: Any) -> int:
    """Rows of features, those of lists summed."""
    if isinstance(features, torch.Tensor):
        return features.numel() // features.shape[-1]
    if isinstance(features, (list, tuple)) and features:
        return sum(_rows(x) for x in features if isinstance(x, torch.Tensor))
    return 0


def text(config: Any, options: argparse.Namespace, positions: int) -> torch.Tensor:
    """Token ids [batch, positions], with a run of image tokens for each image."""
    vocabulary = config.get_text_config().vocab_size
    token = first(config, IMAGE_TOKENS)
    needed = options.images * (positions + 2) + 2 if positions else 0
    if needed > options.seq:
        raise RecordingError(
            f"{options.images} images of {positions} positions need --seq {needed} or more; {options.seq} was given."
        )
    ids = torch.randint(5, max(6, min(vocabulary - 8, 200)), (options.batch, options.seq), device="cuda")
    if not positions or token is None:
        return ids
    if token >= vocabulary:
        raise RecordingError(f"The image token {token} is outside of the vocabulary of {vocabulary}.")
    ids = torch.where(ids == token, torch.tensor(5 if token != 5 else 6, device="cuda"), ids)
    start, end = first(config, STARTS), first(config, ENDS)
    for i in range(options.images):
        at = 2 + i * (positions + 2)
        ids[:, at : at + positions] = token
        for edge, place in ((start, at - 1), (end, at + positions)):
            if edge is not None and edge < vocabulary:
                ids[:, place] = edge
    return ids


def batch(model: Any, config: Any, options: argparse.Namespace, positions: int) -> dict[str, torch.Tensor]:
    """Arguments of one forward, on the card."""
    taken = forward_arguments(model)
    made: dict[str, torch.Tensor] = {}
    if "input_ids" in taken:
        ids = text(config, options, positions)
        made["input_ids"] = ids
        made["attention_mask"] = torch.ones_like(ids)
        made["labels"] = ids.clone()
        token = first(config, IMAGE_TOKENS)
        if "mm_token_type_ids" in taken and token is not None:
            made["mm_token_type_ids"] = (ids == token).int()
        if "token_type_ids" in taken and token is not None:
            made["token_type_ids"] = (ids == token).long()
        if positions and options.images:
            made |= images(model, config, options)
        _extra(made, taken, config, options)
    else:
        made |= images(model, config, argparse.Namespace(**{**vars(options), "images": 1}))
        made["labels"] = torch.zeros(options.batch, dtype=torch.long, device="cuda")
    return {name: x for name, x in made.items() if name in taken}


def _extra(made: dict[str, torch.Tensor], taken: set[str], config: Any, options: argparse.Namespace) -> None:
    """Masks that a few families want beside the usual."""
    ids = made["input_ids"]
    if "cross_attention_mask" in taken and "aspect_ratio_ids" in taken:
        tiles = getattr(config.vision_config, "max_num_tiles", 4)
        made["cross_attention_mask"] = torch.ones(*ids.shape, options.images, tiles, dtype=torch.long, device="cuda")
    if "image_attention_mask" in taken:
        made["image_attention_mask"] = torch.ones(*ids.shape, options.images, dtype=torch.long, device="cuda")
    if "qformer_input_ids" in taken:
        made["qformer_input_ids"] = ids[:, :16].clone()
        made["qformer_attention_mask"] = torch.ones_like(made["qformer_input_ids"])
    if "bbox" in taken:
        made["bbox"] = torch.zeros(*ids.shape, 4, dtype=torch.long, device="cuda")


def loss(output: Any) -> torch.Tensor:
    """The model's loss, or else the mean of what it returns."""
    given = getattr(output, "loss", None)
    if given is not None:
        return given
    logits = getattr(output, "logits", None)
    return (logits if isinstance(logits, torch.Tensor) else output[0]).float().mean()
