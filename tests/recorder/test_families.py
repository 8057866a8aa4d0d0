"""Twenty small families recorded now, against what an H100 took; needs the engine's command line."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import zoo
from player import MARKS, apart, play, written

NAMES = """aya_vision blip blip-2 cohere2_vision deepseek_vl evolla fuyu gemma4_unified idefics3 internvl janus kosmos-2
    llava llava_next paligemma pi0 qwen2_vl udop video_llava vision-encoder-decoder""".split()

# Percent of peak and marks, and of reserved bytes.
MEMORY, RESERVED = 0.05, 1.0


class Families(unittest.TestCase):
    """Each in a process of its own."""

    @classmethod
    def setUpClass(cls) -> None:
        """Imports once what every process needs, before any recording replaces what it looks at."""
        import torch._dynamo  # noqa: F401
        import vramscope  # noqa: F401

        import families  # noqa: F401

    def test_small_families_take_what_they_took(self) -> None:
        """All marks of the third step, its peak, and reserved bytes."""
        measured = zoo.measured()
        with tempfile.TemporaryDirectory() as folder:
            for name in NAMES:
                with self.subTest(family=name):
                    row = apart(zoo.record, name, os.path.join(folder, f"{name}.vram.gz"), deadline=200)
                    self.assertNotIn("error", row, row.get("trace"))
                    off = zoo.compared(row, measured[name])
                    self.assertLessEqual(max(abs(off["marks"][mark]) for mark in MARKS), MEMORY, off)
                    self.assertLessEqual(abs(off["peak"]), MEMORY, off)
                    self.assertLessEqual(abs(off["reserved"]), RESERVED, off)

    def test_a_cache_that_was_given_back_explains_shieldgemma2(self) -> None:
        """Measured beside three processes on one card, it could not get the first gradient of its embedding at once.

        PyTorch then gives free segments back and asks again. The same recording with that line has every measured
        byte, and without it those of gemma3, whose operations it has.
        """
        truth = zoo.measured()["shieldgemma2"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.vram.gz")
            row = apart(zoo.record, "shieldgemma2", path, deadline=200)
            self.assertNotIn("error", row, row.get("trace"))
            self.assertEqual(row["first"]["end"], zoo.measured()["gemma3"]["first"]["end"])
            found = written(path)
            gradient = next(x["id"] for x in found if x.get("name") == "aten.embedding_dense_backward.default")
            at = next(i for i, x in enumerate(found) if x.get("f") == gradient and x["n"][0][1] > 1 << 30)
            with gzip.open(path, "wt", encoding="utf-8") as file:
                for x in [*found[:at], {"t": "empty_cache"}, *found[at:]]:
                    file.write(json.dumps(x) + "\n")
            played = play(path)
        for step in ("first", "steady"):
            self.assertEqual({mark: played[step][mark] for mark in MARKS}, {m: truth[step][m] for m in MARKS})
        self.assertEqual(played["reserved"]["fresh-process"], truth["reserved_peak"])


if __name__ == "__main__":
    unittest.main()
