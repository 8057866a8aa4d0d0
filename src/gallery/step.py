"""The usual training step of a model of the gallery, to be recorded: `step.py ID`.

Weights and AdamW (fused) in bf16 for models of transformers and diffusers, fp32 under bf16 autocast for
classifiers, fp32 for detectors.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

# Their layers have one type of numbers: bf16, and for detectors fp32, as torchvision's own script trains them.
IN_ONE_TYPE = ("diffusers", "torchvision-detection")
HERE = os.path.dirname(os.path.abspath(__file__))


def entries() -> list[dict[str, Any]]:
    """All models of the gallery."""
    with open(os.path.join(HERE, "models.json"), encoding="utf-8") as file:
        return json.load(file)


def loss_of(output: Any) -> torch.Tensor:
    """The loss that a model gives, or else the mean of what it gives."""
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    logits = getattr(output, "logits", None)
    logits = logits if isinstance(logits, torch.Tensor) else output[0] if isinstance(output[0], torch.Tensor) else None
    return (logits if logits is not None else output.last_hidden_state).float().mean()


def made(entry: dict[str, Any]) -> tuple[Any, Callable[[], torch.Tensor], bool]:
    """The model, what gives its loss, and True if it runs under autocast."""
    if entry["from"] == "transformers":
        from image_text import model_and_batch

        model, batch = model_and_batch(entry)
        return model, lambda: loss_of(model(**batch)), False
    from vision import MAKERS

    return *MAKERS[entry["from"]](entry), entry["from"] not in IN_ONE_TYPE


def main() -> None:
    """Trains the named model until the recorder has its steps."""
    entry = next((e for e in entries() if e["id"] == sys.argv[1]), None)
    if entry is None:
        sys.exit(f'The gallery has no model "{sys.argv[1]}"; its ids are in models.json.')
    model, loss, casts = made(entry)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-6, fused=True)
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=casts):
            value = loss()
        value.backward()
        del value
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
