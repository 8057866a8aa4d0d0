"""What a model may be given of images: what its processor makes, or what its configuration says of them."""

from __future__ import annotations

import argparse
import inspect
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch

from vramscope.record.errors import RecordingError

Batch = dict[str, Any]

# A side in pixels where nothing tells one.
SIDE = 448

# What image processors raise for images that are nested otherwise, or for settings that they don't take.
UNFIT = (ValueError, TypeError, AttributeError, IndexError, KeyError, RuntimeError, ImportError)


def parts(config: Any) -> Iterator[Any]:
    """A configuration and all within it."""
    yield config
    for name in getattr(config, "sub_configs", None) or {}:
        part = getattr(config, name, None)
        if part is not None and hasattr(part, "to_dict"):
            yield from parts(part)


def first(config: Any, names: tuple[str, ...], default: Any = None) -> Any:
    """The first of these attributes that a configuration has, or else one within it."""
    for part in parts(config):
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value
    return default


def number(value: Any, default: int = 0) -> int:
    """A size that is given as one number, as two, or by name."""
    if isinstance(value, dict):
        value = value.get("height", value.get("shortest_edge"))
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value if isinstance(value, int) else default


def vision(config: Any) -> Any:
    """Configuration of the part that sees, the whole one if there is no such part."""
    for name in ("vision_config", "encoder"):
        for part in parts(config):
            found = getattr(part, name, None)
            if hasattr(found, "to_dict"):
                return found
    return config


def forward_arguments(model: Any) -> set[str]:
    """Names of the arguments of a model's forward, an adapter's wrapper looked through."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return set(inspect.signature(base.forward).parameters)


class Pictures:
    """Images of one batch in every form that a model may take."""

    def __init__(self, model: Any, config: Any, options: argparse.Namespace) -> None:
        """Images for this model, as the command line asks for them."""
        self.config, self.vision, self.options = config, vision(config), options
        self.taken = forward_arguments(model)
        self.dtype = next(p.dtype for p in model.parameters() if p.is_floating_point())
        self.count = options.batch * max(1, options.images)
        self.channels = number(first(self.vision, ("num_channels", "in_channels", "in_chans")), 3)

    def forms(self) -> dict[str, Callable[[], Batch]]:
        """Ways to give the images, in the words of the recording, the likeliest first."""
        return {
            **self.processed(),
            "patches of images with their grids, as the configuration has them": self.gridded,
            "images one after another, as the configuration has them": self.flat,
            "images by sample, as the configuration has them": self.nested,
            "frames by sample, as the configuration has them": self.filmed,
        }

    def size(self) -> tuple[int, int]:
        """Width and height in pixels: as asked for, else the model's own."""
        asked = self.options.image
        if asked:
            width, _, height = asked.lower().partition("x")
            if not width.isdigit() or (height and not height.isdigit()):
                raise RecordingError(f'--image takes pixels such as 448 or 640x480; "{asked}" was given.')
            return int(width), int(height or width)
        side = number(getattr(self.vision, "image_size", None), SIDE)
        side = side if side >= 64 else SIDE
        return side, side

    # By the processor

    def processed(self) -> dict[str, Callable[[], Batch]]:
        """By the image processor: with the settings of its folder, with those of the model, with its own."""
        forms: dict[str, Callable[[], Batch]] = {}
        folder = self.options.model if os.path.isdir(self.options.model) else os.path.dirname(self.options.model)
        path = os.path.join(folder, "preprocessor_config.json")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                settings = json.load(file)
            forms["images processed by preprocessor_config.json"] = lambda: self.by_processor(lambda kind: settings)
        forms["images processed by the model's class, at the sizes of its configuration"] = lambda: self.by_processor(
            self.fitted
        )
        forms["images processed by the model's class, at the sizes of that class"] = lambda: self.by_processor(
            lambda kind: {}
        )
        return forms

    def by_processor(self, settings: Callable[[Any], dict[str, Any]]) -> Batch:
        """What the model's image processor makes of images, nothing if it has none."""
        width, height = self.size()
        picture = torch.full((3, height, width), 127, dtype=torch.uint8)
        nested = [[picture] * self.options.images for _ in range(self.options.batch)]
        for kind in self.kinds():
            for given in (nested, [picture] * self.count):
                try:
                    return self.sent(dict(kind(**settings(kind))(images=given, return_tensors="pt")))
                except UNFIT:
                    continue
        return {}

    def kinds(self) -> list[Any]:
        """Classes of the model's image processor, the fast one first."""
        import transformers
        from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES as known

        named = known.get(self.config.model_type) or known.get(getattr(self.vision, "model_type", None)) or ()
        names = named.values() if isinstance(named, dict) else named if isinstance(named, (list, tuple)) else [named]
        found = sorted((n for n in names if n), key=lambda n: not n.endswith("Fast"))
        return [getattr(transformers, n) for n in found if hasattr(transformers, n)]

    def fitted(self, kind: Any) -> dict[str, Any]:
        """Settings of a processor that follow from the model's configuration."""
        usual, settings = kind(), {}
        side, v = number(getattr(self.vision, "image_size", None)), self.vision
        for name, attributes in (
            ("patch_size", ("patch_size", "spatial_patch_size")),
            ("temporal_patch_size", ("temporal_patch_size",)),
            ("merge_size", ("spatial_merge_size",)),
        ):
            value = number(first(v, attributes))
            if value and hasattr(usual, name):
                settings[name] = value
        if not side or hasattr(usual, "merge_size"):
            return settings
        for name in ("size", "crop_size"):
            known = getattr(usual, name, None)
            if known is not None:
                edge = dict(known).get("shortest_edge") if hasattr(known, "__iter__") else None
                settings[name] = {"shortest_edge": side} if edge else {"height": side, "width": side}
        return settings

    # By the configuration

    def gridded(self) -> Batch:
        """Patches in rows, with the number of patches in each direction."""
        v = self.vision
        patch = number(first(v, ("patch_size", "spatial_patch_size")), 14)
        frames = number(first(v, ("temporal_patch_size",)), 1)
        merge = number(first(v, ("spatial_merge_size", "merge_size")), 2)
        rows, columns = (max(1, side // (patch * merge)) * merge for side in reversed(self.size()))
        pixels = torch.rand(self.count * rows * columns, self.channels * frames * patch * patch)
        grid = torch.tensor([[1, rows, columns]] * self.count)
        return self.sent(dict(pixel_values=pixels, image_grid_thw=grid, image_grid_hws=grid[:, 1:]))

    def plain(self, *shape: int) -> Batch:
        """Pixels of this shape, and the size of each image. An image of zeros is padding to some models."""
        width, height = self.size()
        pixels = torch.rand(*shape, self.channels, height, width)
        sizes = torch.tensor([[height, width]] * self.count)
        return self.sent(
            dict(pixel_values=pixels, pixel_values_images=pixels, pixel_values_videos=pixels, image_sizes=sizes)
        )

    def flat(self) -> Batch:
        """One image after another."""
        return self.plain(self.count)

    def nested(self) -> Batch:
        """Images by sample."""
        return self.plain(self.options.batch, max(1, self.options.images))

    def filmed(self) -> Batch:
        """Frames by sample."""
        return self.plain(self.options.batch, number(first(self.config, ("num_frames",)), 4))

    def sent(self, found: Batch) -> Batch:
        """What the model takes of it, on the card and in the type of its weights."""
        batch: Batch = {}
        for name, x in found.items():
            if name == "pixel_values_videos" and len(self.taken & {"pixel_values", "pixel_values_images"}):
                continue
            if name in self.taken and isinstance(x, torch.Tensor):
                x = x.to("cuda")
                batch[name] = x.to(self.dtype) if x.is_floating_point() else x
        return batch
