"""Values that are assumed where they depend on floats, which the recorder does not know."""

from __future__ import annotations

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402


class Comparisons(unittest.TestCase):
    """Two tensors of unknown floats differ everywhere; each is equal to itself."""

    def test_unknown_numbers_are_finite(self) -> None:
        """`isfinite` compares a tensor with itself in C++."""
        with vramscope.recording(os.devnull):
            x, y = torch.randn(2, 8, device="cuda")
            seen = [
                bool(torch.isfinite(x).all()),
                bool(torch.isnan(x).any()),
                bool((x != x).any()),
                bool((x <= x).all()),
                bool((x == y).any()),
                bool((x == x[:, None]).any()),
            ]
        self.assertEqual(seen, [True, False, False, True, False, False])


class Choices(unittest.TestCase):
    """Among unknown floats each index is chosen equally often."""

    def test_sampled_tokens_are_not_the_first_of_the_vocabulary(self) -> None:
        """Such tokens would end a generated text at once: choices begin in the middle, at 500 of 1,000."""
        with vramscope.recording(os.devnull):
            chances = torch.rand(4, 1000, device="cuda")
            sampled = torch.multinomial(chances, 1).flatten().tolist()
            greedy = chances.argmax(-1).tolist()
            experts = torch.rand(64, 8, device="cuda").argmax(-1).bincount(minlength=8).tolist()
        self.assertEqual((sampled, greedy), ([500, 501, 502, 503], [500, 501, 502, 503]))
        self.assertEqual(experts, [8] * 8)


if __name__ == "__main__":
    unittest.main()
