"""Libraries around training, each in a script of its own: TRL's GRPO, DeepSpeed. Skipped where one is not installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from collections import Counter
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

from player import apart, written  # noqa: E402


def needs(*packages: str) -> Any:
    """Skips a test where one of these packages is missing."""
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return unittest.skipIf(bool(missing), f"{', '.join(missing)} is not installed")


def recorded(script: str, *flags: str, steps: int = 2) -> list[dict[str, Any]]:
    """Lines of a recording of `script`; raises with what the recorder said if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "train.py"), os.path.join(folder, "run.vram.gz")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(script))
        env = {**os.environ, "PYTHONPATH": HERE, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        words = [sys.executable, SOURCE, "--steps", str(steps), "-o", out, *flags, path]
        done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return written(out)


def marks(found: list[dict[str, Any]], step: int) -> list[str]:
    """Marks within a step."""
    inside, seen = False, []
    for x in found:
        if x["t"] == "mark":
            if x["at"] in ("step", "step_end"):
                inside = x["at"] == "step" and x["step"] == step
            elif inside:
                seen.append(x["at"])
    return seen


def held(found: list[dict[str, Any]]) -> int:
    """Bytes of storages that were never freed."""
    alive: dict[int, int] = {}
    for x in found:
        alive.update(x.get("n", ()) if x["t"] == "op" else ())
        for storage in x["s"] if x["t"] == "free" else ():
            del alive[storage]
    return sum(alive.values())


def operations(found: list[dict[str, Any]]) -> Counter[str]:
    """How often each operation ran."""
    names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
    return Counter(names[x["f"]] for x in found if x["t"] == "op")


GRPO = """
    import stand_ins
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    stand_ins.llama("model")
    tokenizer = AutoTokenizer.from_pretrained("model")

    def rollout(prompts, trainer):
        completions = [list(range(11, 11 + 24 + 8 * (i % 2))) for i in range(len(prompts))]
        return {
            "prompt_ids": [tokenizer(p)["input_ids"] for p in prompts],
            "completion_ids": completions,
            "logprobs": [[-1.0] * len(c) for c in completions],
        }

    config = GRPOConfig("out", per_device_train_batch_size=4, num_generations=4, max_completion_length=32, bf16=True,
        beta=0.04, gradient_checkpointing=GENERATES, report_to=[], save_strategy="no", max_steps=3)
    GRPOTrainer(
        model="model",
        reward_funcs=lambda completions, **kwargs: [float(len(c)) for c in completions],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": stand_ins.text(16, i)} for i in range(32)]),
        rollout_func=None if GENERATES else rollout,
    ).train()
"""


@needs("trl", "transformers", "datasets")
class Grpo(unittest.TestCase):
    """TRL's GRPOTrainer with completions that a rollout function gives."""

    def test_a_step_scores_with_the_reference_and_then_trains(self) -> None:
        """Two forwards, of which the second is trained; fp32 weights of both models, and two states of one."""
        found = recorded(GRPO.replace("GENERATES", "False"))
        pair = ["forward", "forward_end"]
        update = ["backward", "backward_end", "optimizer", "optimizer_end"]
        self.assertEqual(marks(found, 2), pair + pair + update)
        both = sum(_bytes(found, p) for p in found if p["t"] == "param")
        self.assertEqual(both % 2, 0)
        self.assertGreaterEqual(held(found), 2 * both)


def _bytes(found: list[dict[str, Any]], param: dict[str, Any]) -> int:
    """Bytes of a parameter."""
    size = 1
    meta = next(x for x in found if x["t"] == "meta" and x["id"] == param["m"])
    for extent in meta["shape"]:
        size *= extent
    return size * {"f32": 4, "bf16": 2, "f16": 2}.get(meta["dtype"], 0)


def zero(stage: int, path: str) -> dict[str, Any]:
    """Records two steps of the first of four ranks with DeepSpeed's own optimizer."""
    import deepspeed
    import torch
    import vramscope
    from vramscope.record.collectives import variables

    os.environ.update(variables(4))
    with vramscope.recording(path, steps=2):
        deepspeed.init_distributed()
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256, bias=False) for _ in range(4)]).cuda().bfloat16()
        engine, *_ = deepspeed.initialize(
            model=model,
            config={
                "train_micro_batch_size_per_gpu": 2,
                "gradient_accumulation_steps": 2,
                "gradient_clipping": 1.0,
                "bf16": {"enabled": True},
                "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
                "zero_optimization": {
                    "stage": stage,
                    "reduce_bucket_size": 4096,
                    "allgather_bucket_size": 4096,
                    "stage3_param_persistence_threshold": 0,
                    "stage3_prefetch_bucket_size": 4096,
                },
            },
        )
        assert engine.device.type == "cuda"
        while True:
            engine.backward(engine(torch.randn(2, 256, device="cuda", dtype=torch.bfloat16)).square().mean())
            engine.step()
    return {}


@needs("deepspeed")
class Zero(unittest.TestCase):
    """DeepSpeed, which was imported before there was a card."""

    @classmethod
    def setUpClass(cls) -> None:
        """Imports once what every process needs."""
        import deepspeed  # noqa: F401
        import torch._dynamo  # noqa: F401
        import vramscope  # noqa: F401

    def test_stages_keep_what_they_partition(self) -> None:
        """Of 2 bytes of weights, 4 of their copy, 8 of states: what a stage divides among four is a quarter."""
        weights = 4 * 256 * 256
        kept = {0: 14, 1: 2 + 12 / 4, 2: 2 + 12 / 4, 3: 14 / 4}
        micro = ["forward", "forward_end", "backward", "backward_end"]
        for stage, of_each in kept.items():
            with self.subTest(stage=stage), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "run.vram.gz")
                done = apart(zero, stage, path, deadline=100)
                self.assertEqual(done, {}, done.get("trace"))
                found = written(path)
                self.assertEqual(marks(found, 2), [*micro, *micro, "optimizer", "optimizer_end"])
                self.assertIn("multi_tensor_adam", {x["name"] for x in found if x["t"] == "triton"})
                self.assertTrue([n for n in operations(found) if n.startswith("c10d.")], "nothing was communicated")
                self.assertGreaterEqual(held(found), of_each * weights)
                # A bucket of gradients and small things on top.
                self.assertLess(held(found), of_each * weights + weights + (1 << 16))


LOADED = """
    import stand_ins, torch
    from transformers import AutoModelForCausalLM

    stand_ins.llama("model")
    torch.manual_seed(5)
    wanted = torch.randperm(1000)
    torch.manual_seed(5)
    model = AutoModelForCausalLM.from_pretrained("model").cuda()
    assert torch.equal(torch.randperm(1000), wanted), "numbers were drawn for weights of a checkpoint"
    assert float(model.model.norm.weight.cpu()[0]) == 1.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        ids = torch.ones(1, 8, dtype=torch.int64, device="cuda")
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@needs("transformers")
class Loaded(unittest.TestCase):
    """Models of which only the configuration is there."""

    def test_weights_of_a_checkpoint_draw_no_random_numbers(self) -> None:
        """So that samples come in the order that they have on a GPU."""
        self.assertEqual(recorded(LOADED)[-1]["steps"], 2)


if __name__ == "__main__":
    unittest.main()
