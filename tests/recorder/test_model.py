"""`--model`: the usual step of models that transformers knows, of small ones."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402
from vramscope.record import image_text  # noqa: E402
from vramscope.record.__main__ import main  # noqa: E402

from player import written  # noqa: E402
from versions import MODELS  # noqa: E402


def recorded(model: str, *flags: str, **settings: Any) -> tuple[int, str, list[dict[str, Any]]]:
    """Status, what was said, and the lines of a recording of two steps of one of `MODELS` with other settings."""
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "config.json"), os.path.join(folder, "run.vram.gz")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"model_type": model, **MODELS[model], **settings}, file)
        with contextlib.redirect_stderr(said):
            status = main(["--model", path, "--steps", "2", "-o", out, *flags])
        found = written(out) if status == 0 else []
    return status, said.getvalue(), found


def shapes(found: list[dict[str, Any]], operation: str) -> list[list[int]]:
    """Shapes of what an operation returned, each time that it ran."""
    metas = {x["id"]: x["shape"] for x in found if x["t"] == "meta"}
    wanted = {x["id"] for x in found if x["t"] == "fn" and x["name"] == operation}
    made = [x["o"][0] for x in found if x["t"] == "op" and x["f"] in wanted]
    return [metas[int(tensor.split(":")[1])] for tensor in made]


class Models(unittest.TestCase):
    """What is recorded."""

    def test_text_has_the_batch_and_the_length_that_were_asked_for(self) -> None:
        """And the file says how to record it again."""
        _, said, found = recorded("gpt2", "--batch", "3", "--seq", "96")
        self.assertEqual(found[-1]["steps"], 2, said)
        self.assertIn([3, 96, 64], shapes(found, "aten.embedding.default"))
        self.assertEqual(found[0]["command"][:1] + found[0]["command"][2:6], ["--model", "--batch", "3", "--seq", "96"])
        self.assertNotIn("None", found[0]["command"])

    def test_an_image_has_its_patches_and_its_place_in_the_text(self) -> None:
        """Two images of 64 patches each, 16 positions after merging; and the file says how they were made."""
        _, said, found = recorded("qwen2_vl", "--seq", "128", "--images", "2", "--image", "112")
        self.assertEqual(found[-1]["steps"], 2, said)
        self.assertIn([32, 64], shapes(found, "aten.addmm.default"))
        made = [x["how"] for x in found if x["t"] == "assumed" and x["what"] == "batch"]
        self.assertEqual(made, ["images processed by the model's class, at the sizes of its configuration"])

    def test_text_alone_where_no_image_is_asked_for(self) -> None:
        """No patch is made."""
        _, said, found = recorded("qwen2_vl", "--seq", "128", "--images", "0")
        self.assertEqual(found[-1]["steps"], 2, said)
        self.assertEqual([x for x in found if x["t"] == "assumed" and x["what"] == "batch"], [])


class Refusals(unittest.TestCase):
    """One sentence that says what to do."""

    def test_a_text_longer_than_the_model_has_positions(self) -> None:
        """GPT-2 looks positions up in a table."""
        status, said, _ = recorded("gpt2", "--seq", "256", n_positions=128)
        self.assertEqual((status, "Give --seq 128 or less; 256 was given." in said), (2, True), said)

    def test_images_that_do_not_fit_into_the_text(self) -> None:
        """The length that they need is told."""
        status, said, _ = recorded("qwen2_vl", "--seq", "16", "--image", "112")
        self.assertEqual((status, "need --seq 20 or more; 16 was given." in said), (2, True), said)

    def test_a_model_that_is_not_there(self) -> None:
        """No network is used; the error says which file to bring."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = main(["--model", "nobody/nothing", "-o", os.devnull])
        self.assertEqual((status, "Bring its config.json" in said.getvalue()), (2, True), said.getvalue())


class ImageText(unittest.TestCase):
    """Image tokens in text."""

    def test_images_stand_between_their_edges(self) -> None:
        """Each is a run of its tokens; a token of the same number elsewhere in the text is another one."""
        with vramscope.recording(os.devnull):
            ids = torch.full((1, 12), 7, device="cuda")
            placed = image_text.place_images(ids, 7, (8, None), positions=2, images=2, vocabulary=100).tolist()
        self.assertEqual(placed, [[98, 8, 7, 7, 98, 8, 7, 7, 98, 98, 98, 98]])

    def test_rows_are_summed_unless_they_are_levels_of_the_same_images(self) -> None:
        """Tensors of different widths are levels."""
        same = [torch.zeros(2, 4), torch.zeros(3, 4)]
        self.assertEqual((image_text.rows(same), image_text.rows((torch.zeros(2, 4), torch.zeros(2, 8)))), (5, 2))
        self.assertEqual(image_text.rows(None), 0)


if __name__ == "__main__":
    unittest.main()
