"""A training step of models outside transformers: video classifiers, detectors and denoisers of video."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

Loss = Callable[[], torch.Tensor]


def classifier(entry: dict[str, Any], model: Any, clip: Any) -> tuple[Any, Loss]:
    """A model that tells 400 kinds of clips apart, as Kinetics-400 has them."""
    labels = torch.zeros(entry["batch"], dtype=torch.long, device="cuda")
    # SlowFast changes the list that it is given.
    return model.train(), lambda: torch.nn.functional.cross_entropy(model(list(clip) if isinstance(clip, list) else clip), labels)


def torchvision_video(entry: dict[str, Any]) -> tuple[Any, Loss]:
    """A video classifier of torchvision and clips [batch, 3, frames, side, side]."""
    from torchvision.models import get_model

    with torch.device("cuda"):
        model = get_model(entry["name"], weights=None, **entry.get("arguments", {}))
    clip = torch.randn(entry["batch"], 3, entry["frames"], entry["side"], entry["side"], device="cuda")
    return classifier(entry, model, clip)


def pytorchvideo(entry: dict[str, Any]) -> tuple[Any, Loss]:
    """A video classifier of PyTorchVideo; SlowFast takes every frame and every `alpha`-th frame."""
    from pytorchvideo.models import hub

    model = getattr(hub, entry["name"])(pretrained=False).to("cuda")
    clip = torch.randn(entry["batch"], 3, entry["frames"], entry["side"], entry["side"], device="cuda")
    alpha = entry.get("alpha")
    return classifier(entry, model, [clip[:, :, ::alpha].contiguous(), clip] if alpha else clip)


def torchvision_detection(entry: dict[str, Any]) -> tuple[Any, Loss]:
    """A detector of torchvision, images of COCO's usual size with `objects` boxes each."""
    from torchvision.models.detection import __dict__ as named

    with torch.device("cuda"):
        model = named[entry["name"]](weights=None, weights_backbone=None, num_classes=91)
    height, width, objects = *entry["sides"], entry["objects"]
    corners = torch.arange(objects, dtype=torch.float32) * 20
    boxes = torch.stack([corners, corners, corners + 120, corners + 160], 1).to("cuda")
    images, targets = [], []
    for _ in range(entry["batch"]):
        images.append(torch.rand(3, height, width, device="cuda"))
        target = {"boxes": boxes.clone(), "labels": torch.arange(1, objects + 1).to("cuda")}
        if "mask" in entry["name"]:
            target["masks"] = torch.ones(objects, height, width, dtype=torch.uint8).to("cuda")
        if "keypoint" in entry["name"]:
            target["labels"] = torch.ones(objects, dtype=torch.long).to("cuda")
            target["keypoints"] = torch.ones(objects, 17, 3).to("cuda")
        targets.append(target)
    model.train()
    return model, lambda: sum(model(images, targets).values())


def denoiser(entry: dict[str, Any]) -> tuple[Any, Loss]:
    """A transformer of diffusers that tells the noise in the latents of a video [batch, channels, frames, height, width]."""
    import diffusers

    cls = getattr(diffusers, entry["name"])
    with torch.device("cuda"):
        model = cls(**entry.get("arguments", {})).to(torch.bfloat16)
    if entry.get("checkpointing"):
        model.enable_gradient_checkpointing()
    shapes = {"hidden_states": entry["latents"], "encoder_hidden_states": entry["text"]}
    given: dict[str, Any] = {
        name: torch.randn(entry["batch"], *shape, device="cuda", dtype=torch.bfloat16) for name, shape in shapes.items()
    }
    given["timestep"] = torch.zeros(entry["batch"], dtype=torch.long, device="cuda")
    if "encoder_attention_mask" in inspect.signature(model.forward).parameters:
        given["encoder_attention_mask"] = torch.ones(entry["batch"], entry["text"][0], dtype=torch.long, device="cuda")
    given.update(entry.get("given", {}))
    noise = torch.randn(entry["batch"], *entry["latents"], device="cuda", dtype=torch.bfloat16)
    model.train()
    return model, lambda: torch.nn.functional.mse_loss(model(**given).sample.float(), noise.float())


def timm_classifier(entry: dict[str, Any]) -> tuple[Any, Loss]:
    """An image classifier of timm and images of its own size."""
    import timm

    model = timm.create_model(entry["name"], pretrained=False).to("cuda")
    side = model.pretrained_cfg["input_size"][-1]
    labels = torch.zeros(entry["batch"], dtype=torch.long, device="cuda")
    images = torch.randn(entry["batch"], 3, side, side, device="cuda")
    model.train()
    return model, lambda: torch.nn.functional.cross_entropy(model(images), labels)


MAKERS: dict[str, Callable[[dict[str, Any]], tuple[Any, Loss]]] = {
    "torchvision-video": torchvision_video,
    "torchvision-detection": torchvision_detection,
    "pytorchvideo": pytorchvideo,
    "diffusers": denoiser,
    "timm": timm_classifier,
}
