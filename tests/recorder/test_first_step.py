"""The callback that says before the first step whether it fits, and what a Python says of itself."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
import warnings
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SOURCE = os.path.join(ROOT, "src", "recorder")
sys.path[:0] = [path for path in (SOURCE,) if path not in sys.path]

import torch  # noqa: E402
import transformers  # noqa: E402
import vramscope  # noqa: E402
from vramscope import first_step, surroundings  # noqa: E402

# transformers asks for CUDA's stream, which a PyTorch on stand-ins for NVIDIA's libraries does not have.
torch.cuda.is_current_stream_capturing = lambda: False

PROGRAM = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "debug")
LENGTH, BATCH = 48, 2


class FirstStepTest(unittest.TestCase):
    """What a training is told before its first step."""

    def setUp(self) -> None:
        """The program of the tests' build."""
        path = PROGRAM + os.pathsep + os.environ["PATH"]
        self.enterContext(mock.patch.dict(os.environ, {"PATH": path, "HF_HUB_OFFLINE": "1"}))
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def train(self, **room: Any) -> tuple[list[str], int]:
        """Trains two steps; what was warned, and how many hooks the model has left."""
        config = transformers.LlamaConfig(
            vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2
        )
        model = transformers.LlamaForCausalLM(config)
        ids = torch.ones(LENGTH, dtype=torch.long)
        arguments = transformers.TrainingArguments(
            output_dir=self.folder,
            max_steps=2,
            per_device_train_batch_size=BATCH,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
        )
        trainer = transformers.Trainer(
            model=model,
            args=arguments,
            train_dataset=[dict(input_ids=ids, labels=ids) for _ in range(8)],
            callbacks=[vramscope.warning(**room)],
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.train()
        hooks = sum(len(module._forward_pre_hooks) for module in model.modules())
        return [str(w.message) for w in caught if issubclass(w.category, first_step.MemoryWarning)], hooks

    def test_a_step_that_does_not_fit_is_said_once(self) -> None:
        """Two steps, one warning; and the figure is that of the same setup on the command line."""
        asked = []
        real = first_step.predicted

        def predicted(config: dict[str, Any], case: dict[str, Any], room: list[str]) -> Any:
            """Notes what is asked."""
            asked.append(case)
            return real(config, case, room)

        with mock.patch.object(first_step, "predicted", predicted):
            said, hooks = self.train(limit_gib=0.01)
        self.assertEqual((len(said), hooks), (1, 0))
        self.assertRegex(said[0], r"runs out of memory: it needs \d+\.\d\d GiB of 0\.01")
        (case,) = asked
        wanted = dict(batch=BATCH, seq=LENGTH, precision="fp32", trainer="transformers", clip=True, freeze="none")
        self.assertEqual({key: case.get(key) for key in wanted}, wanted)

    def test_a_step_that_fits_is_not_said(self) -> None:
        """Nothing is warned of, and the model is left as it was."""
        self.assertEqual(self.train(limit_gib=20), ([], 0))

    def test_a_run_may_be_stopped(self) -> None:
        """Before its first step takes anything."""
        with self.assertRaises(first_step.DoesNotFit):
            self.train(limit_gib=0.01, stop=True)

    def test_without_a_card_nothing_is_asked(self) -> None:
        """No card is seen here, and none is named."""
        with mock.patch.object(first_step, "predicted", side_effect=AssertionError("it was asked")):
            self.assertEqual(self.train(), ([], 0))


class SurroundingsTest(unittest.TestCase):
    """What `vramscope doctor` shows of a Python."""

    def test_this_python_is_described(self) -> None:
        """Versions of what is installed, and that the recorder runs in it."""
        said = surroundings.surroundings()
        self.assertTrue(torch.__version__.startswith(said["libraries"]["torch"]))
        self.assertEqual(said["libraries"]["transformers"], transformers.__version__)
        self.assertIsNone(said["recorder_fails"])
        self.assertEqual(said["recorder"], vramscope.__version__)
        self.assertFalse(said["pytorch"]["sees_cuda"])


if __name__ == "__main__":
    unittest.main()
