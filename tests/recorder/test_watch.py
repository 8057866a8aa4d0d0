"""Watching a run, and the host's probes: on the CPU, where all but bytes is as on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [path for path in (SOURCE,) if path not in sys.path]

import torch  # noqa: E402
import transformers  # noqa: E402
import vramscope  # noqa: E402

# transformers asks for CUDA's stream, which a PyTorch on stand-ins for NVIDIA's libraries does not have.
torch.cuda.is_current_stream_capturing = lambda: False


def model() -> Any:
    """A language model of two layers."""
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, use_cache=False
    )
    return transformers.LlamaForCausalLM(config).train()


def lines(path: str) -> list[dict[str, Any]]:
    """The objects of a file."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class WatchTest(unittest.TestCase):
    """What is written of a run."""

    def setUp(self) -> None:
        """A file in a folder of its own."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "run.jsonl")
        self.addCleanup(self.folder.cleanup)

    def test_a_loop_writes_its_setup_and_steps(self) -> None:
        """Micro-batches are counted, and the largest shape of a step is kept."""
        net = model()
        optimizer = torch.optim.AdamW(net.parameters(), foreach=False, fused=False)
        watch = vramscope.Watch(net, optimizer, self.path)
        for length in (8, 16):
            with watch.step():
                for size in (length, length // 2):
                    ids = torch.ones(2, size, dtype=torch.long)
                    net(input_ids=ids, labels=ids).loss.backward()
                optimizer.step()
        watch.close()
        header, first, second, ended = lines(self.path)
        self.assertEqual((header["format"], header["version"]), ("vramscope-watch", 1))
        self.assertEqual(header["config"]["model_type"], "llama")
        wanted = dict(
            precision="fp32", optim="adamw_loop", accum=2, ckpt="none", freeze="none", trainer="loop", clip=False
        )
        self.assertEqual({key: header["case"][key] for key in wanted}, wanted)
        self.assertEqual(header["notes"], [])
        self.assertEqual([(s["step"], s["batch"], s["seq"]) for s in (first, second)], [(1, 2, 8), (2, 2, 16)])
        self.assertEqual(ended, {"ended": True})

    def test_the_trainer_takes_the_callback(self) -> None:
        """Autocast is seen though accelerate enters it within the model's call."""
        ids = torch.ones(8, dtype=torch.long)
        data = [dict(input_ids=ids, labels=ids) for _ in range(6)]
        arguments = transformers.TrainingArguments(
            output_dir=self.folder.name,
            max_steps=3,
            per_device_train_batch_size=2,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
        )
        net = model()
        net.gradient_checkpointing_enable()
        transformers.Trainer(net, arguments, train_dataset=data, callbacks=[vramscope.watching(self.path)]).train()
        header, *steps, ended = lines(self.path)
        self.assertEqual(len(steps), 3)
        self.assertEqual(header["case"]["trainer"], "transformers")
        self.assertEqual((header["case"]["ckpt"], header["case"]["clip"]), ("full", True))
        self.assertIn(header["case"]["optim"], ("adamw_fused", "adamw"))
        self.assertTrue(ended["ended"])

    def test_what_cannot_be_told_is_noted(self) -> None:
        """An optimizer without a name, and parts that are frozen in no known way."""
        net = model()
        next(net.parameters()).requires_grad_(False)
        optimizer = torch.optim.Rprop(p for p in net.parameters() if p.requires_grad)
        watch = vramscope.Watch(net, optimizer, self.path)
        with watch.step():
            ids = torch.ones(1, 4, dtype=torch.long)
            net(input_ids=ids, labels=ids).loss.backward()
        watch.close()
        header = lines(self.path)[0]
        self.assertEqual(header["notes"], ["the optimizer Rprop", "which parameters are frozen"])
        self.assertNotIn("optim", header["case"])

    def test_no_path_is_written(self) -> None:
        """A configuration says where it was loaded from; the file does not."""
        net = model()
        net.config._name_or_path = "/home/someone/model"
        watch = vramscope.Watch(net, None, self.path)
        with watch.step():
            net(input_ids=torch.ones(1, 4, dtype=torch.long))
        watch.close()
        with open(self.path, encoding="utf-8") as file:
            self.assertNotIn("someone", file.read())


class PaceTest(unittest.TestCase):
    """The host's probes."""

    def test_every_probe_runs_on_the_processor(self) -> None:
        """One JSON object, with a time for each probe."""
        words = [sys.executable, "-m", "vramscope.pace", "--quick", "--device", "cpu"]
        done = subprocess.run(
            words, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, check=True, text=True
        )
        printed = json.loads(done.stdout)
        self.assertEqual(printed["failed"], {})
        self.assertTrue(printed["software"].startswith("PyTorch "))
        for name in ("matmul", "matmul gradient", "python", "module", "adamw matrix", "wait"):
            self.assertIn(name, printed["us"])


if __name__ == "__main__":
    unittest.main()
