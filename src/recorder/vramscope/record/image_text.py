"""Images in text: what a model makes of images alone, and the tokens that stand for them."""

from __future__ import annotations

import inspect
from typing import Any

import torch

IMAGE_TOKENS = ("image_token_id", "image_token_index", "media_placeholder_token_id")
STARTS = ("vision_start_token_id", "image_start_token_id", "boi_token_id", "boi_token_index")
ENDS = ("vision_end_token_id", "image_end_token_id", "eoi_token_id", "eoi_token_index")


def features(model: Any, config: Any, given: dict[str, Any]) -> Any:
    """What the model's own `get_image_features` makes of a batch, or None where it has no such method."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    function = getattr(base, "get_image_features", None) or getattr(
        getattr(base, "model", base), "get_image_features", None
    )
    if function is None:
        return None
    parameters = inspect.signature(function).parameters
    anything = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    taken = {n: x for n, x in given.items() if n in parameters or anything}
    for name in ("vision_feature_layer", "vision_feature_select_strategy"):
        if name in parameters and parameters[name].default is inspect.Parameter.empty:
            taken[name] = getattr(config, name, None)
    with torch.no_grad():
        return function(**taken)


def rows(made: Any) -> int:
    """Image tokens in what a model makes of images."""
    pooled = getattr(made, "pooler_output", None)
    return _rows(pooled if pooled is not None else getattr(made, "last_hidden_state", made))


def _rows(made: Any) -> int:
    """Rows of tensors, those of lists summed; of several levels of the same images the first."""
    if isinstance(made, torch.Tensor):
        return made.numel() // made.shape[-1]
    if not isinstance(made, (list, tuple)) or not made:
        return 0
    width = made[0].shape[-1] if isinstance(made[0], torch.Tensor) else -1
    if all(isinstance(x, torch.Tensor) and x.shape[-1] == width for x in made):
        return sum(map(_rows, made))
    return _rows(made[0])


def place_images(
    ids: torch.Tensor, token: int, edges: tuple[int | None, int | None], positions: int, images: int, vocabulary: int
) -> torch.Tensor:
    """Ids with `positions` of `token` for each image from the third on, between the edges that the vocabulary has."""
    low = min(vocabulary - 1, 200)
    if token < low:
        ids = torch.where(ids == token, torch.tensor(low - 1, device="cuda"), ids)
    for i in range(images):
        at = 2 + i * (positions + 2)
        ids[:, at : at + positions] = token
        for edge, place in zip(edges, (at - 1, at + positions), strict=True):
            if edge is not None and edge < vocabulary:
                ids[:, place] = edge
    return ids
