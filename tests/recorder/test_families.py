"""Twenty small families recorded now, against what an H100 took; needs the engine's command line."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import zoo
from player import MARKS, apart

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


if __name__ == "__main__":
    unittest.main()
