"""What a run takes, step by step, written to a file that `vramscope watch` shows beside its prediction.

With transformers' Trainer, one line: `Trainer(..., callbacks=[vramscope.watching("run.jsonl")])`. In a loop, three:

    watch = vramscope.Watch(model, optimizer, "run.jsonl")
    for batch in loader:
        with watch.step():
            ...                     # forward, backward, optimizer.step()

The file holds one JSON object a line: the model's configuration and the setup that was seen, then each step's bytes,
milliseconds and shapes. Nothing of the data, and no path. PyTorch's peak is reset at the beginning of each step;
nothing waits for the GPU.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FORMAT, VERSION = "vramscope-watch", 1
AUTOCAST = {
    ("float32", "bfloat16"): "amp-bf16",
    ("float32", "float16"): "amp-fp16",
    ("bfloat16", "bfloat16"): "bf16-amp",
}
PLAIN = {"float32": "fp32", "bfloat16": "bf16"}
OTHER_OPTIMIZERS = {
    "SGD": "sgd",
    "AdamW8bit": "adamw_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit",
    "PagedAdamW": "paged_adamw",
    "PagedAdamW32bit": "paged_adamw",
    "Lion8bit": "lion_8bit",
    "PagedLion8bit": "paged_lion_8bit",
    "PagedLion": "paged_lion",
    "PagedLion32bit": "paged_lion",
}


class Watch:
    """Follows the steps of a model, and writes what they take."""

    def __init__(
        self,
        model: Any,
        optimizer: Any = None,
        path: str | os.PathLike[str] = "vramscope-watch.jsonl",
        *,
        clip: bool = False,
        trainer: str = "loop",
    ) -> None:
        import torch

        self.torch = torch
        self.model = bare(model)
        self.optimizer = optimizer
        self.setup: dict[str, Any] = {"clip": clip, "trainer": trainer}
        self.seen: dict[str, Any] = {}
        self.forwards = 0
        self.steps = 0
        self.began = 0.0
        self.is_begun = False
        rank = (
            torch.distributed.get_rank()
            if torch.distributed.is_available() and torch.distributed.is_initialized()
            else 0
        )
        self.file = open(path, "w", encoding="utf-8") if rank == 0 else None  # noqa: SIM115 (open as long as the run)
        self.hooks = [
            self.model.register_forward_pre_hook(self._see, with_kwargs=True),
            first_leaf(self.model).register_forward_pre_hook(self._see_autocast),
        ]

    @contextmanager
    def step(self) -> Iterator[None]:
        """One step: all its micro-batches and the update."""
        self.begin()
        yield
        self.end()

    def begin(self) -> None:
        """Begins a step."""
        if self.torch.cuda.is_available():
            self.torch.cuda.reset_peak_memory_stats()
        self.forwards = 0
        self.seen = {}
        self.began = time.perf_counter()
        self.is_begun = True

    def end(self) -> None:
        """Ends a step, and writes it."""
        if not self.is_begun:
            return
        self.is_begun = False
        self.steps += 1
        if self.steps == 1:
            self._write(self._header())
        cuda = self.torch.cuda
        memory = cuda.memory_stats() if cuda.is_available() else {}
        self._write(
            {
                "step": self.steps,
                "ms": round((time.perf_counter() - self.began) * 1e3, 3),
                "peak": memory.get("allocated_bytes.all.peak", 0),
                "reserved": memory.get("reserved_bytes.all.peak", 0),
                "end": memory.get("allocated_bytes.all.current", 0),
                **self.seen,
            }
        )

    def close(self) -> None:
        """Ends the file; the run itself goes on unwatched."""
        for hook in self.hooks:
            hook.remove()
        if self.file is not None:
            self._write({"ended": True})
            self.file.close()
            self.file = None

    def _see(self, module: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Notes the shapes of a forward's inputs, the largest of a step."""
        if not self.is_begun or not module.training:
            return
        self.forwards += 1
        shapes = shapes_of(positional, named)
        if shapes.get("batch", 0) * max(shapes.get("seq", 1), 1) >= self.seen.get("batch", 0) * max(
            self.seen.get("seq", 1), 1
        ):
            self.seen = shapes

    def _see_autocast(self, module: Any, positional: tuple[Any, ...]) -> None:
        """Notes autocast where modules run: accelerate enters it within the model's own call."""
        autocast = self.torch.is_autocast_enabled("cuda")
        self.setup["autocast"] = str(self.torch.get_autocast_dtype("cuda")).removeprefix("torch.") if autocast else None

    def _header(self) -> dict[str, Any]:
        """The run as it was seen in its first step."""
        config = getattr(self.model, "config", None)
        case, notes = case_of(self.model, self.optimizer, self.setup, self.forwards)
        cuda = self.torch.cuda
        card = cuda.get_device_properties(0) if cuda.is_available() else None
        distributed = self.torch.distributed
        in_group = distributed.is_available() and distributed.is_initialized()
        return {
            "format": FORMAT,
            "version": VERSION,
            "torch": self.torch.__version__,
            "gpu": card.name if card else None,
            "memory": card.total_memory if card else None,
            "gpus": distributed.get_world_size() if in_group else 1,
            "config": plain(config.to_dict()) if config is not None else None,
            "case": case,
            "notes": notes,
        }

    def _write(self, line: dict[str, Any]) -> None:
        if self.file is not None:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()


def bare(model: Any) -> Any:
    """The model that wrappers of several GPUs hold."""
    while not hasattr(model, "config") and hasattr(model, "module"):
        model = model.module
    return model


def first_leaf(model: Any) -> Any:
    """A module that every forward runs and that holds no other: the embedding of tokens, or of patches."""
    try:
        embedding = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        embedding = None
    leaves = (module for module in model.modules() if next(module.children(), None) is None)
    return embedding if embedding is not None and next(embedding.children(), None) is None else next(leaves)


def plain(value: Any) -> Any:
    """A configuration as JSON holds it, without where it was loaded from."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if key != "_name_or_path"}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value).removeprefix("torch.")


def shapes_of(positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Batch, length, and images of a forward's inputs."""
    seen: dict[str, Any] = {}
    ids = named.get("input_ids", positional[0] if positional else None)
    if ids is None:
        ids = named.get("inputs_embeds")
    pixels = named.get("pixel_values", named.get("pixel_values_videos"))
    if ids is not None and hasattr(ids, "shape"):
        seen.update(batch=ids.shape[0], seq=ids.shape[1] if len(ids.shape) > 1 else 0)
    elif pixels is not None:
        seen.update(batch=pixels.shape[0], seq=0)
    grids = named.get("image_grid_thw")
    batch = seen.get("batch", 0)
    if pixels is None or not batch:
        return seen if pixels is not None else {**seen, "images": 0}
    if grids is None:
        seen["inputs"] = list(pixels.shape)
        return seen
    # Reading values of a tensor on the GPU waits for it; processors leave grids on the host or the card.
    sizes = {tuple(row[1:]) for row in grids.tolist()}
    seen["images"] = len(grids) // batch
    if len(sizes) == 1:
        seen["grid"] = list(sizes.pop())
    return seen


def case_of(model: Any, optimizer: Any, setup: dict[str, Any], forwards: int) -> tuple[dict[str, Any], list[str]]:
    """The setup as a case of the program, and what could not be told."""
    notes: list[str] = []
    case: dict[str, Any] = {"clip": setup["clip"], "trainer": setup["trainer"], "accum": max(forwards, 1)}
    dtypes = [
        str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point() and p.requires_grad
    ]
    frozen = [
        str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point() and not p.requires_grad
    ]
    # Adapters are in fp32 beside weights that are not.
    weights = max(set(frozen or dtypes), key=(frozen or dtypes).count, default="float32")
    autocast = setup.get("autocast")
    precision = AUTOCAST.get((weights, autocast)) if autocast else PLAIN.get(weights)
    if precision is None:
        notes.append(f"weights in {weights} under autocast to {autocast}" if autocast else f"weights in {weights}")
    else:
        case["precision"] = precision
    name = optimizer_of(optimizer)
    if name is None:
        notes.append(f"the optimizer {type(optimizer).__name__}")
    else:
        case["optim"] = name
    case["ckpt"] = "full" if getattr(model, "is_gradient_checkpointing", False) else "none"
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if attention in ("sdpa", "eager", "flash_attention_2"):
        case["attn"] = attention
    elif attention is not None:
        notes.append(f"attention by {attention}")
    case.update(frozen_of(model, notes))
    return case, notes


def optimizer_of(optimizer: Any) -> str | None:
    """Name of an optimizer in a case; None if it has none."""
    # accelerate's wrapper holds the optimizer itself.
    inner = getattr(optimizer, "optimizer", optimizer)
    name, groups = type(inner).__name__, getattr(inner, "param_groups", [{}])
    group = groups[0] if groups else {}
    home = type(inner).__module__
    if name == "AdamW" and home.startswith("torch."):
        if group.get("fused"):
            return "adamw_fused"
        return "adamw_loop" if group.get("foreach") is False else "adamw"
    if name == "Adagrad" and home.startswith("torch."):
        return "adagrad_loop" if group.get("foreach") is False else "adagrad"
    if name == "SGD" and home.startswith("torch."):
        return "sgdm" if group.get("momentum") else "sgd"
    if name == "Adafactor":
        return "adafactor_torch" if home.startswith("torch.") else "adafactor"
    return OTHER_OPTIMIZERS.get(name) if home.startswith("bitsandbytes") else None


def frozen_of(model: Any, notes: list[str]) -> dict[str, Any]:
    """What is frozen, as a case says it."""
    adapters = getattr(model, "peft_config", None)
    if adapters:
        lora = next(iter(adapters.values()))
        targets = getattr(lora, "target_modules", None)
        words = targets if isinstance(targets, str) else ",".join(sorted(targets or []))
        return {
            "freeze": "qlora" if getattr(model, "is_loaded_in_4bit", False) else "lora",
            "rank": getattr(lora, "r", 16),
            "lora_dropout": getattr(lora, "lora_dropout", 0.0),
            **({"lora_targets": words} if words else {}),
        }
    names = [(name, p.requires_grad) for name, p in model.named_parameters()]
    if all(trained for _, trained in names):
        return {"freeze": "none"}

    def is_vision(name: str) -> bool:
        return "vision" in name or "visual" in name

    if all(trained != is_vision(name) for name, trained in names):
        return {"freeze": "vision"}
    if all(trained == ("projector" in name or "connector" in name or "merger" in name) for name, trained in names):
        return {"freeze": "all-but-connector"}
    notes.append("which parameters are frozen")
    return {}


def watching(path: str | os.PathLike[str] = "vramscope-watch.jsonl") -> Any:
    """A callback for transformers' Trainer that writes what its steps take to `path`."""
    from transformers import TrainerCallback

    class Watching(TrainerCallback):
        """Follows the steps of a Trainer."""

        watch: Watch | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Begins to follow the model."""
            self.watch = Watch(
                given["model"],
                given.get("optimizer"),
                path,
                clip=bool(args.max_grad_norm and args.max_grad_norm > 0),
                trainer="transformers",
            )

        def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Begins a step."""
            if self.watch is not None:
                self.watch.optimizer = given.get("optimizer", self.watch.optimizer)
                self.watch.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Ends a step."""
            if self.watch is not None:
                self.watch.end()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Ends the file."""
            if self.watch is not None:
                self.watch.close()
                self.watch = None

    return Watching()
