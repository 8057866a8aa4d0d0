"""`torch.compile` while recording: models are refused, functions run as they are written, and the file says so."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from player import written  # noqa: E402


class Models(unittest.TestCase):
    """A compiled model is refused by name, with what to do."""

    def test_a_model_is_refused_whichever_way_it_is_compiled(self) -> None:
        """By the function, in place, or before the recording began."""
        before = torch.compile(torch.nn.Linear(4, 4))
        for compiles in (
            lambda model: torch.compile(model),
            lambda model: torch.compile(mode="max-autotune")(model),
            lambda model: model.compile(),
            lambda model: before(torch.ones(1, 4)),
        ):
            said = self.assertRaisesRegex(RecordingError, "Record without torch.compile")
            with said, vramscope.recording(os.devnull):
                compiles(torch.nn.Linear(4, 4).cuda())

    def test_flex_attention_is_refused_when_it_runs(self) -> None:
        """Uncompiled it has scores of all positions."""
        from torch.nn.attention.flex_attention import flex_attention

        with self.assertRaisesRegex(RecordingError, "attn_implementation"), vramscope.recording(os.devnull):
            q = torch.randn(1, 2, 128, 16, device="cuda")
            torch.compile(flex_attention)(q, q, q)

    def test_nothing_stays_replaced(self) -> None:
        """What was compiled before is called as before."""
        before = torch.compile(torch.nn.Linear(4, 4), backend="eager")
        with vramscope.recording(os.devnull):
            pass
        self.assertEqual(before(torch.ones(1, 4)).shape, (1, 4))


class Functions(unittest.TestCase):
    """A compiled function runs as it is written."""

    def test_the_file_says_that_a_function_was_not_compiled(self) -> None:
        """Its operations are recorded one by one, and what was assumed is counted."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.vram.gz")
            with vramscope.recording(path):

                @torch.compile
                def scaled(x: torch.Tensor) -> torch.Tensor:
                    return (x * 2).exp()

                scaled(torch.randn(8, device="cuda"))
            found = written(path)
        self.assertIn("aten.exp.default", [x["name"] for x in found if x["t"] == "fn"])
        assumed = [x for x in found if x["t"] == "assumed" and x["what"] == "torch.compile"]
        self.assertEqual([x["how"] for x in assumed], ["a compiled function allocates what it does uncompiled"])

    def test_compiling_that_is_switched_off_leaves_a_model_alone(self) -> None:
        """As `torch.compile(disable=True)` does."""
        with vramscope.recording(os.devnull):
            model = torch.nn.Linear(4, 4).cuda()
            self.assertIs(torch.compile(model, disable=True), model)


if __name__ == "__main__":
    unittest.main()
