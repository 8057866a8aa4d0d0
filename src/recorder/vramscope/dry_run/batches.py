"""Batches as they come: the loader is walked ahead, and its heaviest steps are recorded beside early ones."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
import torch.utils.data

from vramscope.record.patches import Patches

# Seconds after which a walk ends, however few batches it has seen: loading them is the tool's own work.
LONGEST_WALK = 90.0

# What makes a micro-batch heavy, and what of it each is counted from.
POSITIONS = (
    "input_ids",
    "inputs_embeds",
    "decoder_input_ids",
    "prompt_input_ids",
    "chosen_input_ids",
    "rejected_input_ids",
)
PATCHES = ("pixel_values", "pixel_values_videos", "images", "pixel_attention_mask", "input_features")


@dataclass
class Size:
    """What a micro-batch holds."""

    positions: int = 0
    longest: int = 0
    pixels: int = 0
    labels: int = 0


def size(batch: Any) -> Size:
    """Counts a batch, whatever it is nested in."""
    found = Size()
    _count(batch, "", found)
    return found


def _count(x: Any, name: str, found: Size) -> None:
    if isinstance(x, torch.Tensor):
        if name == "labels":
            found.labels += int((x != -100).sum()) if not x.is_floating_point() else x.numel()
        elif name in PATCHES or (x.is_floating_point() and x.dim() >= 3):
            found.pixels += x.numel()
        elif name in POSITIONS or name == "":
            found.positions += x.shape[0] * x.shape[1] if x.dim() > 1 else x.numel()
            found.longest = max(found.longest, x.shape[-1] if x.dim() else 1)
    elif hasattr(x, "items"):
        for key, value in x.items():
            _count(value, str(key), found)
    elif isinstance(x, (list, tuple)):
        for value in x:
            _count(value, name, found)


@dataclass
class Group:
    """Micro-batches of one optimizer step, by the number of the step in the run."""

    number: int
    batches: list[Any]
    sizes: list[Size]
    again: list[Any] = field(default_factory=list)

    def most(self, of: str, after: int = 0) -> int:
        """The largest of its micro-batches after so many."""
        return max((getattr(s, of) for s in self.sizes[after:]), default=0)


KINDS = ("positions", "longest", "pixels", "labels")


@dataclass
class Ahead:
    """Walks one loader ahead, and gives the recording its first group, then those that are the heaviest in some way."""

    wanted: int
    accumulated: int = 1
    walked: int = 0
    total: int | None = None
    planned: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False

    def over(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a loader, the chosen first; those between are left out, those after follow."""
        self.done = True
        early: list[Group] = []
        heaviest: dict[tuple[str, int], Group] = {}
        began = time.monotonic()
        for group in self.groups(batches):
            if len(early) < 2:
                early.append(group)
            # Later micro-batches run beside the gradients of the first, and may decide though they are lighter.
            for kind, after in itertools.product(KINDS, (0, 1)):
                most, best = group.most(kind, after), heaviest.get((kind, after))
                # Of equal ones the last: the first step has no optimizer's states yet.
                if most and (best is None or most >= best.most(kind, after)):
                    heaviest[kind, after] = group
            if self.walked >= self.wanted or time.monotonic() - began > LONGEST_WALK:
                break
        if not early:
            return
        chosen: dict[int, Group] = {group.number: group for group in heaviest.values()}
        if len(chosen) < 2:
            # What a step leaves in the allocator changes the next one's peak, so one alone tells too little.
            chosen.setdefault(early[-1].number, early[-1])
        order = sorted(chosen.values(), key=lambda group: (group.most("positions"), group.most("pixels"), group.number))
        self.planned = 1 + len(order)
        for visit, group in enumerate([early[0], *order]):
            why = {kind: None for (kind, _), best in heaviest.items() if best.number == group.number}
            self.tell(group, list(why) or ["early"])
            if visit == 0 and any(group is known for known in order):
                group.again = [copy.copy(batch) for batch in group.batches]
            # Some batches move to the card themselves (`BatchFeature.to`): whoever keeps one keeps its memory there.
            while group.batches:
                yield group.batches.pop(0)
            group.batches, group.again = group.again, []
        yield from batches

    def groups(self, batches: Iterator[Any]) -> Iterator[Group]:
        """Micro-batches as steps take them; a last one that is short is left out."""
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            self.walked += 1
            if len(held) == self.accumulated:
                yield Group(self.walked // self.accumulated, held, [size(b) for b in held])
                held = []

    def tell(self, group: Group, why: list[str]) -> None:
        """Says what the next step takes."""
        heaviest = max(group.sizes, key=lambda s: (s.positions, s.pixels))
        self.steps.append(
            dict(
                step=group.number,
                why=why,
                positions=heaviest.positions,
                pixels=heaviest.pixels,
                labels=heaviest.labels,
            )
        )


class Loaders:
    """Finds the loader that a trainer trains from, and walks it ahead."""

    def __init__(self, patches: Patches, wanted: int) -> None:
        """Walks up to so many micro-batches."""
        self.patches = patches
        self.ahead = Ahead(wanted)
        self.marked: list[Any] = []
        real = torch.utils.data.DataLoader.__iter__

        def iterate(loader: Any) -> Any:
            it = real(loader)
            if self.ahead.done or not any(loader is known for known in self.marked):
                return it
            return self.ahead.over(it)

        patches.set(torch.utils.data.DataLoader, "__iter__", iterate)

    def trainer(self, module: ModuleType) -> None:
        """Marks what transformers' Trainer trains from, and those derived from it."""
        kind = module.Trainer
        train = kind._inner_training_loop
        loop = self

        def inner_training_loop(self: Any, *args: Any, **kwargs: Any) -> Any:
            get = self.get_train_dataloader

            def get_train_dataloader() -> Any:
                loader = get()
                loop.mark(loader, self.args)
                return loader

            self.get_train_dataloader = get_train_dataloader
            try:
                return train(self, *args, **kwargs)
            finally:
                del self.get_train_dataloader

        self.patches.set(kind, "_inner_training_loop", inner_training_loop)

    def mark(self, loader: Any, args: Any) -> None:
        """Takes a loader for the one that is trained from."""
        self.ahead.accumulated = max(1, args.gradient_accumulation_steps)
        base = getattr(loader, "base_dataloader", loader)
        self.marked += [loader, base]
        try:
            each = len(base)
        except TypeError:
            each = 0
        steps = args.max_steps if args.max_steps > 0 else int(args.num_train_epochs * each) // self.ahead.accumulated
        if steps > 0:
            self.ahead.total = steps
            self.ahead.wanted = min(self.ahead.wanted, steps * self.ahead.accumulated)
