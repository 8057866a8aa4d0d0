"""Batches as they come: the loader is walked ahead, and its heaviest steps are recorded after the run's first ones."""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator
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

    def most(self, of: str, after: int = 0) -> int:
        """The largest of its micro-batches after so many."""
        return max((getattr(s, of) for s in self.sizes[after:]), default=0)


KINDS = ("positions", "longest", "pixels", "labels")

# Operations up to which steps are recorded that are not the heaviest of any kind, and bytes of their batches up to
# which they are kept for it. A run that is shorter is recorded from its first step to its last, as it comes.
OPERATIONS = 600_000
KEPT = 2 << 30


@dataclass
class Ahead:
    """Walks one loader ahead, and gives the recording its heaviest steps and the first ones, in the run's order."""

    wanted: int
    accumulated: int = 1
    operations: Callable[[], int] = lambda: 0
    walked: int = 0
    total: int | None = None
    planned: int = 0
    steps: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    number: int = 0  # of the last step that was met

    def over(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a loader: those that were chosen of what was walked, then those after."""
        if self.done:
            yield from self.later(batches)
            return
        self.done = True
        early, heaviest, cut = self.walk(batches)
        if not early:
            return
        last = self.number
        goes_on = self.total is None or self.total > last
        # What comes of the next epoch is recorded too where the first leaves room.
        follows = goes_on and not cut and len(early) == last
        again: list[Group] = []
        if goes_on and any(group is early[0] for group in heaviest.values()):
            # It comes again, and then beside the states that the optimizer does not have yet in the first step.
            again = [Group(early[0].number, [copy.copy(batch) for batch in early[0].batches], early[0].sizes)]
        needed = {group.number for group in [*early[:2], *heaviest.values()]}
        chosen = sorted({g.number: g for g in [*early, *heaviest.values()]}.values(), key=lambda group: group.number)
        if not follows:
            chosen = [group for group in chosen if len(group.batches) == self.accumulated or not goes_on] + again
        self.planned = len(chosen) + ((self.total or 2 * last) - last if follows else 0)
        while chosen:
            group, chosen = chosen[0], chosen[1:]
            why = {kind: None for (kind, _), best in heaviest.items() if best.number == group.number}
            self.tell(group, list(why) or ["early"])
            # Some batches move to the card themselves (`BatchFeature.to`): whoever keeps one keeps its memory there.
            while group.batches:
                if len(group.batches) == 1 and self.operations() > OPERATIONS:
                    # Before the last of a step, so that the recording knows by its end whether it was the last.
                    chosen = [g for g in chosen if g.number in needed] + (again if follows else [])
                    self.planned, follows = len(self.steps) + len(chosen), False
                yield group.batches.pop(0)
        if not follows:
            yield from batches

    def walk(self, batches: Iterator[Any]) -> tuple[list[Group], dict[tuple[str, int], Group], bool]:
        """The first steps, as many as there is room for; the heaviest of each kind; and whether more would follow."""
        early: list[Group] = []
        heaviest: dict[tuple[str, int], Group] = {}
        kept = 0
        began = time.monotonic()
        for group in self.groups(batches):
            kept += sum(weight(batch) for batch in group.batches)
            if group.number <= 2 or (len(early) == group.number - 1 and kept <= KEPT):
                early.append(group)
            if len(group.batches) < self.accumulated:
                break  # the end of an epoch, which only a run that is recorded whole comes to
            # Later micro-batches run beside the gradients of the first, and may decide though they are lighter.
            for kind, after in itertools.product(KINDS, (0, 1)):
                most, best = group.most(kind, after), heaviest.get((kind, after))
                # Of equal ones the last: the first step has no optimizer's states yet.
                if most and (best is None or most >= best.most(kind, after)):
                    heaviest[kind, after] = group
            if self.walked >= self.wanted or time.monotonic() - began > LONGEST_WALK:
                return early, heaviest, True
        return early, heaviest, False

    def later(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of a later epoch, as they come."""
        for group in self.groups(batches):
            self.tell(group, ["early"])
            while group.batches:
                if len(group.batches) == 1 and self.operations() > OPERATIONS:
                    self.planned = len(self.steps)
                yield group.batches.pop(0)

    def groups(self, batches: Iterator[Any]) -> Iterator[Group]:
        """Micro-batches as steps take them; the last of an epoch may be short."""
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            self.walked += 1
            if len(held) == self.accumulated:
                self.number += 1
                yield Group(self.number, held, [size(b) for b in held])
                held = []
        if held:
            self.number += 1
            yield Group(self.number, held, [size(b) for b in held])

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


def weight(x: Any) -> int:
    """Bytes of the tensors of a batch."""
    if isinstance(x, torch.Tensor):
        return x.numel() * x.element_size()
    if hasattr(x, "values"):
        return sum(map(weight, x.values()))
    return sum(map(weight, x)) if isinstance(x, (list, tuple)) else 0


class Loaders:
    """Finds the loader that a trainer trains from, and walks it ahead."""

    def __init__(self, patches: Patches, wanted: int, operations: Callable[[], int]) -> None:
        """Walks up to so many micro-batches; `operations` says how many were recorded so far."""
        self.patches = patches
        self.ahead = Ahead(wanted, operations=operations)
        self.marked: list[Any] = []
        real = torch.utils.data.DataLoader.__iter__

        def iterate(loader: Any) -> Any:
            it = real(loader)
            return self.ahead.over(it) if any(loader is known for known in self.marked) else it

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
        # As `Trainer.set_initial_training_values` counts them: the last step of an epoch may be short.
        steps = args.max_steps
        if steps <= 0:
            steps = math.ceil(args.num_train_epochs * max(1, -(-each // self.ahead.accumulated)) if each else 0)
        if steps > 0:
            self.ahead.total = steps
            self.ahead.wanted = min(self.ahead.wanted, steps * self.ahead.accumulated)
