"""What the recorder writes, the engine reads: sharded models in every way that Trainer and scripts shard them."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import torch.distributed.fsdp  # noqa: E402
import torch.distributed.tensor  # noqa: E402
import vramscope  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from vramscope.record import collectives  # noqa: E402

from player import apart, play  # noqa: E402

WIDTH, DEPTH, WORLD = 64, 2, 2


class Block(nn.Module):
    """A map with an adapter beside it, or alone."""

    def __init__(self, adapted: bool, checkpointed: bool) -> None:
        """With `adapted`, the map itself is frozen."""
        super().__init__()
        self.full = nn.Linear(WIDTH, WIDTH)
        self.down, self.up = nn.Linear(WIDTH, 4, bias=False), nn.Linear(4, WIDTH, bias=False)
        self.adapted, self.checkpointed = adapted, checkpointed
        if adapted:
            self.full.requires_grad_(False)

    def both(self, x: torch.Tensor) -> torch.Tensor:
        """The map and its adapter."""
        y = self.full(x)
        return x + torch.nn.functional.gelu(y + self.up(self.down(x)) if self.adapted else y)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Recomputed in backward, if so asked."""
        return checkpoint(self.both, x, use_reentrant=False) if self.checkpointed else self.both(x)


def shard(model: nn.Module, how: str) -> nn.Module:
    """The model over all ranks, block by block."""
    from torch.distributed import fsdp

    if how.startswith("fsdp1"):
        strategy = fsdp.ShardingStrategy[{"fsdp1": "FULL_SHARD", "fsdp1_grad_op": "SHARD_GRAD_OP"}[how]]
        policy = fsdp.wrap.ModuleWrapPolicy({Block})
        return fsdp.FullyShardedDataParallel(
            model, auto_wrap_policy=policy, sharding_strategy=strategy, use_orig_params=True, device_id=0
        )
    offload = dict(offload_policy=fsdp.CPUOffloadPolicy()) if how == "fsdp2_offload" else {}
    reduced = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    mixed = dict(mp_policy=reduced) if how == "fsdp2_mixed" else {}
    for part in (*model, model):
        fsdp.fully_shard(part, reshard_after_forward=how != "fsdp2_kept", **offload, **mixed)
    return model


def train(path: str, how: str, adapted: bool, checkpointed: bool, accumulated: int, clipped: bool) -> dict[str, Any]:
    """Records two steps of one rank; returns what the engine reads of them."""
    os.environ.update(collectives.variables(WORLD))
    with vramscope.recording(path, steps=2):
        torch.distributed.init_process_group("nccl")
        model = nn.Sequential(*(Block(adapted, checkpointed) for _ in range(DEPTH))).cuda()
        model = shard(model, how)
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], fused=clipped)
        while True:
            for _ in range(accumulated):
                with torch.autocast("cuda", torch.bfloat16, enabled=not how.startswith("fsdp2_mixed")):
                    loss = model(torch.randn(8, WIDTH, device="cuda")).float().square().mean()
                loss.backward()
            if clipped:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    played = play(path)
    return {"steady": played["steady"], "params": played["params"]}


class Sharded(unittest.TestCase):
    """One rank of two, as FSDP1 and FSDP2 shard it."""

    def test_every_way_is_read_back(self) -> None:
        """Adapters, recomputation, accumulation and clipping, with each way to shard: every fourth combination."""
        ways = ("fsdp1", "fsdp1_grad_op", "fsdp2", "fsdp2_kept", "fsdp2_offload", "fsdp2_mixed")
        grid = list(itertools.product((False, True), (False, True), (1, 2), (False, True)))
        for i, how in enumerate(ways):
            for choices in grid[i % 4 :: 4]:
                with self.subTest(how=how, choices=choices), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "run.vram.gz")
                    found = apart(train, path, how, *choices, deadline=120)
                    self.assertNotIn("error", found, found.get("trace"))
                    self.assertGreater(found["steady"]["peak_optimizer"], 0)
                    if how in ("fsdp2", "fsdp2_kept", "fsdp2_mixed"):
                        self.assertEqual(found["params"], DEPTH * (WIDTH * WIDTH + WIDTH + 8 * WIDTH))


if __name__ == "__main__":
    unittest.main()
