"""A batch for any model of transformers, by its processor and its configuration, tried until the model takes it."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import Any

import torch

from vramscope.record import image_text
from vramscope.record.errors import RecordingError
from vramscope.record.pictures import Batch, Pictures, first, forward_arguments, parts, vision

PIXELS = ("pixel_values", "pixel_values_images", "pixel_values_videos", "flattened_patches")

# What models of transformers say where text holds another number of image tokens than there are.
MISMATCH = re.compile(r"tokens:? *(\d+)\D{1,20}features:? *(\d+)")


@dataclass(frozen=True)
class Form:
    """How a batch is made: which of the forms of images, positions of one image in the text, and what labels are."""

    images: str | None = None
    positions: int = 0
    classes: bool = False


def takes_images(model: Any) -> bool:
    """True if a model reads pixels."""
    return bool(forward_arguments(model) & set(PIXELS))


def find(model: Any, config: Any, options: argparse.Namespace) -> Form:
    """The first form of a batch that the model takes; raises if it takes none."""
    taken = forward_arguments(model)
    if not takes_images(model) or (not options.images and "input_ids" in taken):
        return Form()
    failed: Exception | None = None
    for name, make in Pictures(model, config, options).forms().items():
        given = make()
        if not given:
            continue
        for classes in (True, False) if "input_ids" not in taken else (False,):
            try:
                return _tried(model, config, options, Form(name, classes=classes), given)
            except RecordingError as e:
                refuse_length(config, options, e)
                raise
            except Exception as e:
                failed = failed or e
    refuse_length(config, options, failed)
    raise RecordingError(
        f"No batch of images was found that {type(model).__name__} takes. Give the folder of the model with its "
        "preprocessor_config.json, record its text alone with --images 0, or record a script that trains it.\n"
        f"The likeliest batch raised: {type(failed).__name__}: {failed}"
    ) from failed


def refuse_length(config: Any, options: argparse.Namespace, failed: Exception | None) -> None:
    """Raises if a forward failed on more positions than the model has."""
    known = first(config.get_text_config(), ("max_position_embeddings", "n_positions"))
    if isinstance(known, int) and options.seq > known:
        raise RecordingError(
            f"The model has {known} positions. Give --seq {known} or less; {options.seq} was given."
        ) from failed


def _tried(model: Any, config: Any, options: argparse.Namespace, form: Form, given: Batch) -> Form:
    """The form with the positions of an image; raises if the model doesn't take such a batch."""
    if "input_ids" in forward_arguments(model) and first(config, image_text.IMAGE_TOKENS) is not None:
        form = Form(form.images, image_positions(model, config, options, given), form.classes)
    try:
        with torch.no_grad():
            model(**batch(model, config, options, form))
    except ValueError as e:
        told = MISMATCH.search(str(e))
        counted = int(told[2]) // (options.batch * options.images) if told else 0
        if not counted or counted == form.positions:
            raise
        form = Form(form.images, counted, form.classes)
        with torch.no_grad():
            model(**batch(model, config, options, form))
    return form


def image_positions(model: Any, config: Any, options: argparse.Namespace, given: Batch) -> int:
    """Text positions that one image takes: rows of what the model makes of images alone."""
    ids = torch.full((options.batch, options.seq), 5, device="cuda")
    extra = _extra({"input_ids": ids}, forward_arguments(model), config, options)
    extra.pop("input_ids")
    return image_text.rows(image_text.features(model, config, {**given, **extra})) // (options.batch * options.images)


def vocabulary(config: Any) -> int:
    """Tokens that the text part knows."""
    sizes = [config.get_text_config(), *parts(config)]
    return next(n for n in (getattr(part, "vocab_size", None) for part in sizes) if n is not None)


def refuse_short(options: argparse.Namespace, positions: int) -> None:
    """Raises if images of so many positions don't fit into the text."""
    needed = options.images * (positions + 2) + 2 if positions else 0
    if needed > options.seq:
        raise RecordingError(
            f"{options.images} images of {positions} positions need --seq {needed} or more; {options.seq} was given."
        )


def text(config: Any, options: argparse.Namespace, positions: int) -> torch.Tensor:
    """Token ids [batch, positions], with a run of image tokens for each image."""
    known = vocabulary(config)
    token = first(config, image_text.IMAGE_TOKENS)
    refuse_short(options, positions)
    ids = torch.randint(5, min(known - 1, 200), (options.batch, options.seq), device="cuda")
    if not positions or token is None:
        return ids
    if token >= known:
        raise RecordingError(f"The image token {token} is outside of the vocabulary of {known}.")
    edges = (first(config, image_text.STARTS), first(config, image_text.ENDS))
    return image_text.place_images(ids, token, edges, positions, options.images, known)


def batch(model: Any, config: Any, options: argparse.Namespace, form: Form) -> Batch:
    """Arguments of one forward, on the card."""
    taken = forward_arguments(model)
    made: Batch = {}
    if "input_ids" in taken:
        ids = text(config, options, form.positions)
        made["input_ids"] = ids
        made["attention_mask"] = torch.ones_like(ids)
        made["labels"] = ids.clone()
        token = first(config, image_text.IMAGE_TOKENS)
        if "mm_token_type_ids" in taken and token is not None:
            made["mm_token_type_ids"] = (ids == token).int()
        if "token_type_ids" in taken and token is not None:
            made["token_type_ids"] = (ids == token).long()
        made = _extra(made, taken, config, options)
    elif form.classes:
        made["labels"] = torch.zeros(options.batch, dtype=torch.long, device="cuda")
    else:
        made["labels"] = text(config, options, 0)
    if form.images is not None:
        # A processor's mask is that of its patches where a model reads no text.
        made = Pictures(model, config, options).forms()[form.images]() | made
    return {name: x for name, x in made.items() if name in taken}


def _extra(made: Batch, taken: set[str], config: Any, options: argparse.Namespace) -> Batch:
    """What a few families want beside the usual."""
    made, ids = dict(made), made["input_ids"]
    if "cross_attention_mask" in taken and "aspect_ratio_ids" in taken:
        tiles = getattr(vision(config), "max_num_tiles", 4)
        made["cross_attention_mask"] = torch.ones(*ids.shape, options.images, tiles, dtype=torch.long, device="cuda")
    if "image_attention_mask" in taken:
        made["image_attention_mask"] = torch.ones(*ids.shape, options.images, dtype=torch.long, device="cuda")
    if "qformer_input_ids" in taken:
        made["qformer_input_ids"] = torch.full((options.batch, 16), 5, device="cuda")
        made["qformer_attention_mask"] = torch.ones_like(made["qformer_input_ids"])
    if "bbox" in taken:
        made["bbox"] = torch.zeros(*ids.shape, 4, dtype=torch.long, device="cuda")
    if "image_embeds_position_mask" in taken:
        positions = getattr(config, "latent_query_num", 64)
        refuse_short(options, positions)
        places = torch.arange(options.seq, device="cuda") - 2
        shown = (places >= 0) & (places < positions)
        made["image_embeds_position_mask"] = shown.long().expand(options.batch, -1).contiguous()
    if "state" in taken and hasattr(config, "max_state_dim"):
        made["state"] = torch.randn(options.batch, config.max_state_dim, device="cuda")
        made["actions"] = torch.randn(options.batch, config.chunk_size, config.max_action_dim, device="cuda")
        made["pixel_attention_mask"] = torch.ones(options.batch, options.images, dtype=torch.bool, device="cuda")
    return made


def loss(output: Any) -> torch.Tensor:
    """The model's loss, or else the mean of what it returns."""
    given = getattr(output, "loss", None)
    if given is not None:
        return given
    logits = getattr(output, "logits", None)
    return (logits if isinstance(logits, torch.Tensor) else output[0]).float().mean()
