"""A training step of any image-text family of transformers: model and batch from its configuration alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

IMAGE_TOKENS = ("image_token_id", "image_token_index", "media_placeholder_token_id")
STARTS = ("vision_start_token_id", "image_start_token_id", "boi_token_id", "boi_token_index")
ENDS = ("vision_end_token_id", "image_end_token_id", "eoi_token_id", "eoi_token_index")


def first(config: Any, names: tuple[str, ...], default: Any = None) -> Any:
    """The first of these attributes that is there and not None."""
    return next((v for v in (getattr(config, n, None) for n in names) if v is not None), default)


def with_settings(config: Any, settings: dict[str, Any]) -> Any:
    """The configuration with these settings, parts of it merged into its own parts."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for name, value in settings.items():
        part = getattr(config, name, None)
        if isinstance(value, dict) and "model_type" in value and getattr(part, "model_type", None) != value["model_type"]:
            part = CONFIG_MAPPING[value["model_type"]]()
            setattr(config, name, part)
        if isinstance(value, dict) and hasattr(part, "to_dict"):
            with_settings(part, {n: v for n, v in value.items() if n != "model_type"})
        elif isinstance(value, dict) and isinstance(part, dict):
            merged = {n: {**part[n], **v} if isinstance(v, dict) and isinstance(part.get(n), dict) else v for n, v in value.items()}
            setattr(config, name, {**part, **merged})
        else:
            setattr(config, name, value)
    return config


def configuration(entry: dict[str, Any]) -> Any:
    """The family's default configuration with the entry's settings."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = with_settings(CONFIG_MAPPING[entry["family"]](), entry.get("config", {}))
    if "vocabulary" in entry:
        config.vocabulary_map = VOCABULARIES[entry["vocabulary"]]()
    for part in (config.get_text_config(), config):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    return config


def chameleon_vocabulary() -> dict[str, int]:
    """Names of Chameleon's 8,192 image tokens, digits written as letters, and its placeholder."""
    letters = "ABCDEFGHIJ"
    names = ("".join(letters[int(digit)] for digit in str(i)) for i in range(8192))
    return {"<image>": 8711, **{f"IMGIMG{name}Z": 4 + i for i, name in enumerate(names)}}


def emu3_vocabulary() -> dict[str, int]:
    """Names of Emu3's 32,768 visual tokens, its end of line and its placeholder."""
    visual = {f"<|visual token {i:06d}|>": 1000 + i for i in range(32768)}
    return {"<|extra_200|>": 7, "<image>": 6, **visual}


VOCABULARIES: dict[str, Callable[[], dict[str, int]]] = {"chameleon": chameleon_vocabulary, "emu3": emu3_vocabulary}


class Images:
    """What a batch's images become for the vision part of a configuration."""

    def __init__(self, config: Any, batch: int) -> None:
        """For `batch` samples of one image each."""
        self.config = config
        self.batch = batch
        vision = getattr(config, "vision_config", None)
        self.size = self.side(first(vision, ("image_size",), 224))
        self.patch = self.side(first(vision, ("patch_size", "spatial_patch_size"), 14), least=1)
        self.frames = first(vision, ("temporal_patch_size",), 1)
        self.channels = first(vision, ("in_channels", "num_channels", "in_chans"), 3)

    @staticmethod
    def side(value: Any, least: int = 64) -> int:
        """One side of a size that may be a pair or named."""
        value = value[0] if isinstance(value, (list, tuple)) else value.get("height") if isinstance(value, dict) else value
        return value if isinstance(value, int) and value >= least else 224

    def pixels(self, *shape: int) -> torch.Tensor:
        """Pixels [batch, *shape]."""
        return torch.randn(self.batch, *shape, device="cuda", dtype=torch.bfloat16)

    def each(self, *values: int) -> torch.Tensor:
        """The same integers for each sample: [batch, values]."""
        return torch.tensor([list(values)] * self.batch, device="cuda")

    def whole(self) -> dict[str, torch.Tensor]:
        """One square image a sample."""
        return {"pixel_values": self.pixels(self.channels, self.size, self.size)}

    def nested(self, count: int = 1) -> dict[str, torch.Tensor]:
        """A list of images a sample."""
        return {"pixel_values": self.pixels(count, 3, self.size, self.size)}

    def tiles(self) -> dict[str, torch.Tensor]:
        """An image twice as wide as high in two tiles, and the whole."""
        sizes = self.each(self.size, 2 * self.size)
        return {"pixel_values": self.pixels(3, 3, self.size, self.size), "image_sizes": sizes}

    def grid(self) -> dict[str, torch.Tensor]:
        """16 by 16 patches in rows, with their grid."""
        row = self.channels * self.frames * self.patch**2
        pixels = self.pixels(256, row).flatten(0, 1)
        return {"pixel_values": pixels, "image_grid_thw": self.each(1, 16, 16)}

    def patches(self) -> dict[str, torch.Tensor]:
        """16 by 16 patches as small images, with their grid."""
        pixels = self.pixels(256, 3, self.patch, self.patch).flatten(0, 1)
        return {"pixel_values": pixels, "image_grid_thw": self.each(1, 16, 16)}

    def padded_patches(self) -> dict[str, torch.Tensor]:
        """256 patches in rows, with a mask of those that are there."""
        mask = torch.ones(self.batch, 256, dtype=torch.long, device="cuda")
        return {"pixel_values": self.pixels(256, 768), "spatial_shapes": self.each(16, 16), "pixel_attention_mask": mask}

    def merged_grid(self) -> dict[str, torch.Tensor]:
        """16 by 16 patches in rows, merged two by two."""
        pixels = self.pixels(256, self.channels * self.patch**2).flatten(0, 1)
        merge = torch.tensor([2] * self.batch, device="cuda")
        return {"pixel_values": pixels, "image_grid_thw": self.each(1, 16, 16), "image_merge_sizes": merge}

    def video_images(self) -> dict[str, torch.Tensor]:
        """One image a sample for a model of images and videos."""
        return {"pixel_values_images": self.pixels(3, self.size, self.size)}

    def aspect_tiles(self) -> dict[str, torch.Tensor]:
        """Four tiles of an image, with the shape that they were cut from."""
        return {
            "pixel_values": self.pixels(1, 4, 3, self.size, self.size),
            "aspect_ratio_ids": torch.full((self.batch, 1), 6, device="cuda"),
            "aspect_ratio_mask": torch.ones(self.batch, 1, 4, dtype=torch.long, device="cuda"),
        }

    def masked(self) -> dict[str, torch.Tensor]:
        """An image of 490 by 490 with a mask of its pixels."""
        mask = torch.ones(self.batch, 490, 490, dtype=torch.bool, device="cuda")
        return {"pixel_values": self.pixels(3, 490, 490), "pixel_mask": mask}

    def one_tile(self) -> dict[str, torch.Tensor]:
        """One tile of 448 by 448 a sample."""
        return {"pixel_values": self.pixels(1, 3, 448, 448)}

    def frames_of_video(self) -> dict[str, torch.Tensor]:
        """Four frames of a video a sample."""
        return {"pixel_values": self.pixels(4, 3, 224, 224)}

    def two_resolutions(self) -> dict[str, torch.Tensor]:
        """An image in a low and a high resolution."""
        high = self.pixels(3, 1024, 1024)
        return {"pixel_values": self.pixels(3, self.size, self.size), "high_res_pixel_values": high}

    def flattened(self) -> dict[str, torch.Tensor]:
        """512 patches in rows with their places, for a model that reads no text."""
        mask = torch.ones(self.batch, 512, device="cuda")
        return {"flattened_patches": self.pixels(512, 770), "attention_mask": mask}

    def strip(self) -> dict[str, torch.Tensor]:
        """All samples' patches side by side, with the grids that they are of."""
        pixels = torch.randn(1, 3, self.patch, self.batch * 1024 * self.patch, device="cuda", dtype=torch.bfloat16)
        return {"pixel_values": pixels, "target_sizes": self.each(32, 32)}

    def placed(self) -> dict[str, torch.Tensor]:
        """60 by 42 patches in rows with their places."""
        places = torch.meshgrid(torch.arange(60, device="cuda"), torch.arange(42, device="cuda"), indexing="ij")
        places = torch.stack(places, -1).reshape(1, 2520, 2).expand(self.batch, -1, -1).contiguous()
        return {"pixel_values": self.pixels(2520, 768), "image_position_ids": places}

    def none(self) -> dict[str, torch.Tensor]:
        """No image."""
        return {}


def usual_images(images: Images, takes: set[str]) -> dict[str, torch.Tensor]:
    """What a model takes whose forward has these arguments."""
    if takes & {"image_grid_thw", "image_grid_hws"}:
        return images.grid()
    if "pixel_values" not in takes:
        return {}
    found = images.whole()
    if "image_sizes" in takes:
        found["image_sizes"] = images.each(images.size, images.size)
    return found


def positions(model: Any, config: Any, given: dict[str, torch.Tensor], batch: int) -> int:
    """Text positions of a sample's images: what the model's own `get_image_features` gives."""
    base = getattr(model, "model", model)
    function = getattr(model, "get_image_features", None) or getattr(base, "get_image_features", None)
    if function is None or "pixel_values" not in given:
        return 0
    parameters = inspect.signature(function).parameters
    anything = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    arguments: dict[str, Any] = {n: x for n, x in given.items() if n in parameters or anything}
    for name in ("vision_feature_layer", "vision_feature_select_strategy"):
        if name in parameters and parameters[name].default is inspect.Parameter.empty:
            arguments[name] = getattr(config, name, None)
    with torch.no_grad():
        features = function(**arguments)
    pooled = getattr(features, "pooler_output", None)
    return rows(pooled if pooled is not None else getattr(features, "last_hidden_state", features)) // batch


def rows(features: Any) -> int:
    """Rows of features; of several levels of the same image, those of the first."""
    if isinstance(features, torch.Tensor):
        return features.numel() // features.shape[-1]
    if not isinstance(features, (list, tuple)) or not features:
        return 0
    alike = all(isinstance(x, torch.Tensor) and x.shape[-1] == features[0].shape[-1] for x in features)
    return sum(rows(x) for x in features) if alike else rows(features[0])


def text(config: Any, batch: int, length: int, images: int) -> torch.Tensor:
    """Token ids [batch, length], a run of `images` image tokens in each."""
    vocabulary = config.get_text_config().vocab_size
    token, low = first(config, IMAGE_TOKENS), min(vocabulary - 1, 200)
    ids = torch.randint(5, low, (batch, length), device="cuda")
    if token is None or not images:
        return ids
    if token < low:
        ids = torch.where(ids == token, torch.tensor(low - 1, device="cuda"), ids)
    ids[:, 2 : 2 + images] = token
    for edge, place in ((first(config, STARTS), 1), (first(config, ENDS), 2 + images)):
        if edge is not None and edge < vocabulary:
            ids[:, place] = edge
    return ids


def extras(ids: torch.Tensor, takes: set[str], images: int) -> dict[str, torch.Tensor]:
    """Masks and places that a few families want beside the usual."""
    ones = {
        "cross_attention_mask": (*ids.shape, 1, 4) if "aspect_ratio_ids" in takes else None,
        "image_attention_mask": (*ids.shape, 1),
        "qformer_attention_mask": (ids.shape[0], 16),
    }
    made = {n: torch.ones(*s, dtype=torch.long, device="cuda") for n, s in ones.items() if s and n in takes}
    if "qformer_input_ids" in takes:
        made["qformer_input_ids"] = ids[:, :16].clone()
    if "bbox" in takes:
        made["bbox"] = torch.zeros(*ids.shape, 4, dtype=torch.long, device="cuda")
    if "image_embeds_position_mask" in takes:
        mask = torch.zeros_like(ids)
        mask[:, 2 : 2 + images] = 1
        made["image_embeds_position_mask"] = mask
    return made


def model_and_batch(entry: dict[str, Any]) -> tuple[Any, dict[str, torch.Tensor]]:
    """The model in bf16 on the card, ready to train, and one batch."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as CLASSES

    config, batch = configuration(entry), entry["batch"]
    cls = getattr(transformers, CLASSES[entry["family"]])
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = cls._from_config(config) if hasattr(cls, "_from_config") else cls(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    takes = set(inspect.signature(model.forward).parameters)
    images = Images(config, batch)
    given = getattr(images, entry["images"])() if "images" in entry else usual_images(images, takes)
    count = entry["positions"] if "positions" in entry else positions(model, config, given, batch)
    if "input_ids" in takes:
        ids = text(config, batch, max(entry["seq"], count + 32), count)
        token = first(config, IMAGE_TOKENS)
        usual = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}
        if token is not None:
            usual |= {"mm_token_type_ids": (ids == token).int(), "token_type_ids": (ids == token).long()}
        elif "token_type_ids" in takes:
            usual["token_type_ids"] = torch.zeros_like(ids)
        given = {**usual, **given, **extras(ids, takes, entry.get("positions", count))}
    elif "labels" in takes:
        given["labels"] = torch.randint(5, 200, (batch, entry["seq"]), device="cuda")
    return model, {name: x for name, x in given.items() if name in takes}
