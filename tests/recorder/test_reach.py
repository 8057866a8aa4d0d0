"""What scripts do around training: checkpoints, prints, several sizes; and the package without PyTorch."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402
from vramscope.record import __main__ as record_command  # noqa: E402
from vramscope.record import vary  # noqa: E402
from vramscope.record.sizes import Fit  # noqa: E402

from player import apart, written  # noqa: E402

# What programs of this folder import beside PyTorch.
PACKAGES = ("transformers", "datasets", "PIL", "tokenizers", "diffusers")


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python that sees the recorder and no packages."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-S", *words], env={**env, **variables}, capture_output=True, text=True, check=False
    )


def started(path: str) -> dict[str, Any]:
    """A program as far as it goes by being imported, in a process of its own."""
    sys.path[:] = [HERE] + [place for place in sys.path if not place.startswith(os.path.dirname(HERE))]
    for name in os.listdir(HERE):
        sys.modules.pop(name.removesuffix(".py"), None)
    try:
        runpy.run_path(path, run_name="started")
    except ModuleNotFoundError as e:
        return {"missing": e.name}
    return {}


class Commands(unittest.TestCase):
    """Programs of this folder."""

    def test_each_can_be_started(self) -> None:
        """What it imports is there, but for packages that only it needs."""
        for name in sorted(os.listdir(HERE)):
            if name.endswith(".py"):
                with self.subTest(name):
                    found = apart(started, os.path.join(HERE, name), deadline=300)
                    self.assertNotIn("error", found)
                    self.assertIn(found.get("missing"), (None, *PACKAGES))


class Checkpoints(unittest.TestCase):
    """Files are written without data."""

    def test_safetensors_have_shapes_and_a_hole(self) -> None:
        """A header that safetensors reads, and data that takes no disk."""
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            with vramscope.recording(os.devnull):
                weights = {
                    "a": torch.randn(1 << 12, 1 << 12, device="cuda", dtype=torch.bfloat16),
                    "b": torch.ones(3, device="cuda"),
                }
                save_file(weights, path, metadata={"format": "pt"})
            self.assertGreater(os.path.getsize(path), 1 << 25)
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20)
            read = load_file(path)
        self.assertEqual({k: (v.dtype, tuple(v.shape)) for k, v in read.items()}["a"], (torch.bfloat16, (4096, 4096)))
        self.assertEqual(tuple(read["b"].shape), (3,))

    def test_torch_saves(self) -> None:
        """`torch.save` writes a state dict."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            with vramscope.recording(os.devnull):
                torch.save(torch.nn.Linear(4, 4).cuda().state_dict(), path)
            self.assertGreater(os.path.getsize(path), 0)


class Prints(unittest.TestCase):
    """Numbers that scripts print."""

    def test_a_scalar_is_formatted_as_its_number(self) -> None:
        """Known ones as they are, unknown ones as assumed."""
        with vramscope.recording(os.devnull):
            known = f"{torch.tensor(3, device='cuda'):4d}"
            unknown = f"{torch.randn(8, device='cuda').mean():.2f}"
        self.assertEqual((known, unknown), ("   3", "1.00"))


class Sizes(unittest.TestCase):
    """Polynomials through few sizes."""

    def test_each_size_is_recorded_by_words_that_the_recorder_takes(self) -> None:
        """With every flag of the model as it was given, and none that was not."""
        given = ["--model", "config.json", "--vary", "batch,seq", "--images", "2", "--lora", "8", "--ckpt"]
        options = record_command.parser().parse_args(given)
        varied, grid = vary.points(options)
        self.assertEqual((grid[0], grid[-1], len(grid)), ((2, 1024), (4, 1408), 12))
        words = vary.command(options, [], varied, grid[-1], "out.vram.gz")
        told = vars(record_command.parser().parse_args(words))
        expected = {**vars(options), "out": "out.vram.gz", "vary": [], "batch": 4, "seq": 1408}
        self.assertEqual(told, expected)

    def test_a_size_that_does_not_vary_needs_no_points(self) -> None:
        """Of one batch, a square in the length through three lengths and a fourth to check."""
        fit = Fit([(1, 2), (1, 3), (1, 5), (1, 7)])
        found = fit.polynomial((4, 9, 25, 49))
        self.assertEqual([fit.at(found, (1, n)) for n in (4, 10)], [16, 100])
        self.assertIsNone(fit.polynomial((4, 9, 25, 50)))


RANK = """
import os, sys, torch, torch.distributed as dist, torch.distributed.tensor
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 4, "nccl")
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
if sys.argv[1] == "ddp":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
elif sys.argv[1] == "frozen":
    model[0].requires_grad_(False)
    for part in (model[0], model[2], model):
        fully_shard(part)
else:
    # As accelerate loads a sharded model: rank 0 scatters its weights (`c10d::scatter_`).
    mesh = dist.device_mesh.init_device_mesh("cuda", (4,))
    dist.tensor.distribute_tensor(torch.randn(8, 4, device="cuda"), mesh, [dist.tensor.Shard(0)])
    fully_shard(model)
optimizer = torch.optim.AdamW(x for x in model.parameters() if x.requires_grad)
for _ in range(2):
    model(torch.randn(8, 64, device="cuda")).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


class Ranks(unittest.TestCase):
    """The first of four ranks."""

    def collectives(self, how: str) -> tuple[set[str], int]:
        """Collectives of a recording, and the bytes of what lives at its end."""
        with tempfile.TemporaryDirectory() as folder:
            script, out = os.path.join(folder, "train.py"), os.path.join(folder, "run.vram.gz")
            with open(script, "w", encoding="utf-8") as file:
                file.write(RANK)
            words = ["--world", "4", "--steps", "2", "-o", out, script, how]
            done = subprocess.run(
                [sys.executable, SOURCE, *words], capture_output=True, text=True, check=False, timeout=200
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            found = written(out)
        self.assertEqual((found[0]["rank"], found[0]["world"]), (0, 4))
        names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
        alive: dict[int, int] = {}
        for x in found:
            alive.update(x.get("n", ()) if x["t"] == "op" else ())
            for storage in x["s"] if x["t"] == "free" else ():
                del alive[storage]
        return {n for n in names.values() if n.startswith("c10d.")}, sum(alive.values())

    def test_fsdp2_keeps_a_quarter(self) -> None:
        """Parameters and both states of AdamW, in fp32, of a quarter of the model."""
        names, held = self.collectives("fsdp")
        self.assertEqual(names & GATHERS, GATHERS)
        self.assertLess(held, 4 * 3 * (2 * 64 * 256 + 256 + 64) // 4 * 1.05)

    def test_fsdp2_waits_for_what_it_gathered_ahead_and_nothing_used(self) -> None:
        """A frozen layer whose output needs no gradient, of which backward waits on the accelerator's stream."""
        names, held = self.collectives("frozen")
        self.assertEqual(names & GATHERS, GATHERS)
        self.assertLess(held, 4 * 3 * (2 * 64 * 256 + 256 + 64) // 4 * 1.05)

    def test_ddp_keeps_all_and_its_buckets(self) -> None:
        """As much as one GPU alone, and a bucket of gradients."""
        names, held = self.collectives("ddp")
        self.assertIn("c10d.allreduce_.default", names)
        self.assertGreaterEqual(held, 4 * 4 * (2 * 64 * 256 + 256 + 64))


GATHERS = {"c10d._allgather_base_.default", "c10d._reduce_scatter_base_.default"}


class Alone(unittest.TestCase):
    """The package where there is no PyTorch."""

    def test_importing_needs_no_pytorch(self) -> None:
        """`estimate` asks the program alone."""
        done = python("-c", "import vramscope; vramscope.estimate", PYTHONPATH=SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_record_is_a_function_and_a_package(self) -> None:
        """Whatever was imported before."""
        for first in ("", "import vramscope.record.errors; "):
            words = f"import vramscope; {first}vramscope.record('none.py', steps=1)"
            said = python("-c", words, PYTHONPATH=SOURCE).stderr
            self.assertIn('RecordingError: There is no script at "none.py"', said)

    def test_the_folder_runs(self) -> None:
        """As the command line starts it; help needs no PyTorch, recording says that it does."""
        self.assertIn("--vary", python(SOURCE, "--help").stdout)
        done = python(SOURCE, "train.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no PyTorch", done.stderr)

    def test_flags_of_the_program(self) -> None:
        """`estimate` gives the program its arguments as flags, and raises with its words."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vramscope")
            source = os.path.join(folder, "program.py")
            with open(source, "w", encoding="utf-8") as file:
                file.write(
                    "import json, sys\n"
                    'if "bad" in sys.argv: sys.exit("error: no such model")\n'
                    'print(json.dumps({"words": sys.argv[1:], "read": "-" in sys.argv and sys.stdin.read()}))\n'
                )
            # A shell: the first line of a script cannot name an interpreter whose path has a space.
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S {shlex.quote(source)} "$@"\n')
            os.chmod(path, 0o755)
            before = os.environ["PATH"]
            os.environ["PATH"] = folder + os.pathsep + before
            try:
                one = vramscope.estimate("gpt2", batch=4, max_gib=None, lora_dropout=0.1, fused=True)
                two = vramscope.estimate(config={"model_type": "gpt2"})
                with self.assertRaisesRegex(ValueError, "^no such model$"):
                    vramscope.estimate("bad")
            finally:
                os.environ["PATH"] = before
        rest = ["--batch", "4", "--lora-dropout", "0.1", "--fused", "--format", "json"]
        self.assertEqual(one["words"], ["--color", "never", "estimate", "gpt2", *rest])
        self.assertEqual(two["read"], '{"model_type": "gpt2"}')
        with self.assertRaises(TypeError):
            vramscope.estimate()


if __name__ == "__main__":
    unittest.main()
