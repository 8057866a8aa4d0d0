"""Image-text families of transformers, each a model of four layers and a batch of two, and three steps of training.

python3 families.py FAMILY,...|all OUT.jsonl WORKERS SECONDS measures them on a GPU; `repairs.py` says what differs from
defaults.
"""

from __future__ import annotations

import gc
import inspect
import json
import multiprocessing
import os
import sys
import tempfile
import time
from typing import Any

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as CLASSES

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [path for path in (HERE, SOURCE) if path not in sys.path]

from vramscope.record import image_text  # noqa: E402
from vramscope.record.pictures import parts  # noqa: E402

import repairs  # noqa: E402
from repairs import Making, first_of  # noqa: E402

LAYERS = 4
DEPTHS = ("num_hidden_layers", "depth", "encoder_layers", "decoder_layers", "num_layers", "layers")
# Lists of layers by number, which must stay within those that are left.
NUMBERED = (
    "deepstack_visual_indexes",
    "fullatt_block_indexes",
    "intermediate_layers_indices",
    "global_attn_indexes",
    "full_attention_layers",
)


def shrink(config: Any) -> None:
    """Leaves at most four layers in each part."""
    for part in parts(config):
        for name in DEPTHS:
            count = getattr(part, name, None)
            if isinstance(count, int) and count > LAYERS:
                for key, value in list(vars(part).items()):
                    if isinstance(value, list) and len(value) == count:
                        setattr(part, key, value[:LAYERS])
                try:
                    setattr(part, name, LAYERS)
                except Exception:
                    continue
        for key, value in list(vars(part).items()):
            if key in NUMBERED and isinstance(value, list):
                kept = list(range(LAYERS))[-min(3, len(value)) :] if "deepstack" in key else [LAYERS - 1]
                setattr(part, key, kept)


def configuration(family: str) -> Any:
    """The default configuration of a family, small and repaired."""
    config = repairs.DEFAULTS.get(family, CONFIG_MAPPING[family])()
    shrink(config)
    repairs.CONFIGURATIONS.get(family, lambda c: None)(config)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    vision, token = getattr(config, "vision_config", None), image_token(config)
    for name in ("out_hidden_size", "text_hidden_size", "projection_dim_to_text"):
        if vision is not None and isinstance(getattr(vision, name, None), int):
            setattr(vision, name, text.hidden_size)
    if token is not None and token >= text.vocab_size:
        text.vocab_size = token + 64
    for part in (text, config):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    return config


def image_token(config: Any) -> int | None:
    """The token that stands for images."""
    return first_of(config, *image_text.IMAGE_TOKENS)


def images(family: str, making: Making, accepted: set[str]) -> dict[str, torch.Tensor]:
    """The vision part of a batch."""
    special = repairs.IMAGES.get(family)
    if special is not None:
        return special(making)
    m = making
    if "image_grid_thw" in accepted or "image_grid_hws" in accepted:
        pixels = m.floats(m.batch * 16 * 16, m.channels * m.frames * m.patch * m.patch)
        return dict(pixel_values=pixels, image_grid_thw=m.tensor([[1, 16, 16]] * m.batch))
    if "pixel_values" in accepted:
        found = dict(pixel_values=m.floats(m.batch, m.channels, m.side, m.side))
        if "image_sizes" in accepted:
            found["image_sizes"] = m.tensor([[m.side, m.side]] * m.batch)
        return found
    return {}


def features(family: str, model: Any, config: Any, vision: dict[str, torch.Tensor]) -> Any:
    """What the model makes of images alone, or None if it can't say."""
    if "pixel_values" not in vision or family in repairs.UNCOUNTED:
        return None
    return image_text.features(model, config, vision)


def build(family: str, samples: int = 2, positions: int = 256) -> tuple[Any, dict[str, Any], Any]:
    """Model and batch of a family, and the features by which its image tokens were counted."""
    config = configuration(family)
    cls = getattr(transformers, CLASSES[family])
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = cls._from_config(config) if hasattr(cls, "_from_config") else cls(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    accepted = set(inspect.signature(model.forward).parameters)
    making = Making(config, samples)
    if family in repairs.BATCHES:
        return model, repairs.BATCHES[family](making), None
    batch: dict[str, Any] = dict(images(family, making, accepted))
    seen = features(family, model, config, batch)
    counted = repairs.COUNTS.get(family, image_text.rows(seen) // samples)
    positions = max(positions, counted + 32)
    x, token = tokens(config, making, positions, counted), image_token(config)
    if "input_ids" in accepted:
        batch["input_ids"] = x
    if "attention_mask" in accepted:
        batch["attention_mask"] = torch.ones_like(x)
    if "labels" in accepted:
        batch["labels"] = x.clone()
    if "bbox" in accepted and family in repairs.BOXES:
        batch["bbox"] = torch.zeros(samples, positions, 4, dtype=torch.long, device="cuda")
    if "mm_token_type_ids" in accepted and token is not None:
        batch["mm_token_type_ids"] = (x == token).int()
    if "token_type_ids" in accepted:
        batch["token_type_ids"] = (x == token).long() if token is not None else torch.zeros_like(x)
    if family in repairs.AFTERWARDS:
        repairs.AFTERWARDS[family](making, batch, x)
    return model, batch, seen


def tokens(config: Any, making: Making, positions: int, counted: int) -> torch.Tensor:
    """Text with the image's tokens after the first two positions."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    token, low = image_token(config), min(text.vocab_size - 1, 200)
    x = torch.randint(5, low, (making.batch, positions), device="cuda")
    if token is None or not counted:
        return x
    edges = (first_of(config, *image_text.STARTS), first_of(config, *image_text.ENDS))
    return image_text.place_images(x, token, edges, counted, 1, text.vocab_size)


def returned(output: Any) -> torch.Tensor:
    """What a model returns that has no loss."""
    found = getattr(output, "logits", None)
    if isinstance(found, torch.Tensor):
        return found
    return output[0] if isinstance(output[0], torch.Tensor) else output.last_hidden_state


def train(family: str) -> dict[str, Any]:
    """Three steps of a family with fused AdamW, and what the allocator says at each mark.

    Names hold what they hold in the program that measured the families: features until the first forward is over, and
    logits without a loss until the next.
    """
    model, batch, output = build(family)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    held, peak, reset = (
        torch.cuda.memory_allocated,
        torch.cuda.max_memory_allocated,
        torch.cuda.reset_peak_memory_stats,
    )
    gc.collect()
    torch.cuda.empty_cache()
    steps = []
    for _ in range(3):
        reset()
        marks = dict(before_forward=held())
        output = model(**batch)
        loss = getattr(output, "loss", None)
        if loss is None:
            logits = returned(output)
            loss = logits.float().mean()
        del output
        marks |= dict(after_forward=held(), peak_forward=peak())
        reset()
        loss.backward()
        del loss
        marks |= dict(after_backward=held(), peak_backward=peak())
        reset()
        optimizer.step()
        marks |= dict(peak_optimizer=peak())
        optimizer.zero_grad(set_to_none=True)
        marks |= dict(end=held())
        steps.append(marks)
    return dict(
        family=family,
        params=sum(p.numel() for p in model.parameters()),
        steps=steps,
        reserved_peak=torch.cuda.memory_stats()["reserved_bytes.all.peak"],
        inputs={n: [str(v.dtype), list(v.shape)] for n, v in batch.items() if isinstance(v, torch.Tensor)},
    )


def _measure(family: str, path: str) -> None:
    try:
        found = train(family)
    except BaseException as e:
        found = dict(family=family, error=repr(e)[:300])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file)


def main() -> None:
    """Measures families on a GPU, several at once."""
    names = list(CLASSES) if sys.argv[1] == "all" else sys.argv[1].split(",")
    workers, deadline = int(sys.argv[3]), time.time() + float(sys.argv[4])
    context = multiprocessing.get_context("fork")
    running: list[tuple[Any, str, float]] = []
    with tempfile.TemporaryDirectory() as folder, open(sys.argv[2], "a", encoding="utf-8") as out:
        out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__))) + "\n")
        while names or running:
            while names and len(running) < workers:
                name = names.pop(0)
                process = context.Process(target=_measure, args=(name, os.path.join(folder, name)))
                process.start()
                running.append((process, name, time.time()))
            for entry in list(running):
                process, name, began = entry
                if process.is_alive() and time.time() - began < 90 and time.time() < deadline:
                    continue
                process.kill()
                process.join()
                running.remove(entry)
                path = os.path.join(folder, name)
                found = json.dumps(dict(family=name, error="no result in time"))
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        found = file.read() or found
                out.write(found + "\n")
                out.flush()
            if time.time() >= deadline:
                names = []
            time.sleep(0.1)


if __name__ == "__main__":
    main()
