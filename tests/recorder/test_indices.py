"""Indices that a CUDA kernel stops at are refused while recording."""

from __future__ import annotations

import os
import sys
import unittest
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from test_record import ops, recorded  # noqa: E402


def cuda(*values: Any) -> torch.Tensor:
    """Integers on the card."""
    return torch.tensor(values, device="cuda")


def floats(*shape: int) -> torch.Tensor:
    """Floats on the card, whose values nobody knows."""
    return torch.randn(*shape, device="cuda")


class Model(nn.Module):
    """Token and position embeddings, a head and its loss."""

    def __init__(self) -> None:
        """Ten tokens, four positions."""
        super().__init__()
        self.wte, self.wpe = nn.Embedding(10, 8), nn.Embedding(4, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        places = torch.arange(ids.shape[1], device=ids.device)
        logits = self.head(self.wte(ids) + self.wpe(places))
        return F.cross_entropy(logits.view(-1, 10), labels.view(-1))


# By name: an operation as a function of an index, the first index that is too large for it, and a part of the refusal.
TOO_FAR: dict[str, tuple[Callable[[int], Any], int, str]] = {
    "embedding": (lambda i: F.embedding(cuda(0, i), floats(5, 2)), 5, "dimension 0 has size 5: 0 to 4"),
    "embedding_bag": (lambda i: F.embedding_bag(cuda([0, i]), floats(5, 2)), 5, "dimension 0 has size 5: 0 to 4"),
    "index_select": (lambda i: floats(3, 5).index_select(-1, cuda(i)), 5, "dimension 1 has size 5: 0 to 4"),
    "gather": (lambda i: floats(3, 5).gather(1, cuda([0, i])), 5, "dimension 1 has size 5: 0 to 4"),
    "scatter_": (lambda i: floats(3, 5).scatter_(0, cuda([i]), 1.0), 3, "dimension 0 has size 3: 0 to 2"),
    "scatter_add": (lambda i: floats(5).scatter_add(0, cuda(i), floats(1)), 5, "dimension 0 has size 5: 0 to 4"),
    "one_hot": (lambda i: F.one_hot(cuda(0, i), 4), 4, "dimension 1 has size 4: 0 to 3"),
    "index": (lambda i: floats(3, 5)[:, cuda(i)], 5, "dimension 1 has size 5: -5 to 4"),
    "index_put_": (lambda i: floats(3, 5).index_put_((cuda(i),), floats(5)), 3, "dimension 0 has size 3: -3 to 2"),
    "index_add": (lambda i: floats(3, 5).index_add(0, cuda(i), floats(1, 5)), 3, "dimension 0 has size 3: 0 to 2"),
    "take": (lambda i: floats(3, 5).take(cuda(i)), 15, "the tensor has size 15: -15 to 14"),
    "cross_entropy": (lambda i: F.cross_entropy(floats(2, 5), cuda(-100, i)), 5, "label 5, but dimension 1 has size 5"),
}


class Indices(unittest.TestCase):
    """The emulated card knows the values of integers."""

    def refused(self, work: Callable[[], Any]) -> str:
        """The message with which recording `work` is refused."""
        with self.assertRaises(RecordingError) as raised:
            recorded(work)
        return str(raised.exception)

    def test_an_index_too_far_is_refused_and_the_last_is_not(self) -> None:
        """Every operation that takes indices."""
        for name, (work, first_outside, said) in TOO_FAR.items():
            with self.subTest(name):
                told = self.refused(lambda work=work, i=first_outside: work(i))
                self.assertIn(said, told)
                self.assertRegex(told, rf"(index|label) {first_outside}\b")
                recorded(lambda work=work, i=first_outside: work(i - 1))

    def test_negative_indices_count_from_the_end_only_where_kernels_allow_them(self) -> None:
        """`x[i]` does, `embedding` and `gather` do not."""
        recorded(lambda: floats(5)[cuda(-5)])
        self.assertIn("index -6", self.refused(lambda: floats(5)[cuda(-6)]))
        self.assertIn("index -1", self.refused(lambda: F.embedding(cuda(-1), floats(5, 2))))
        self.assertIn("index -1", self.refused(lambda: floats(5).gather(0, cuda(-1))))
        self.assertIn("label -1", self.refused(lambda: F.cross_entropy(floats(1, 5), cuda(-1))))

    def test_a_sequence_beyond_the_positions_of_a_model_is_refused_by_module(self) -> None:
        """Module, operation, index and size."""

        def step(positions: int, label: int) -> None:
            model = Model().cuda()
            ids = torch.zeros(2, positions, dtype=torch.long, device="cuda")
            model(ids, torch.full_like(ids, label)).backward()

        recorded(lambda: step(4, 9))
        told = self.refused(lambda: step(5, 9))
        self.assertTrue(told.startswith("wpe: aten.embedding.default gets index 4, but dimension 0 has size 4"), told)
        self.assertIn("label 10", self.refused(lambda: step(4, 10)))

    def test_the_host_does_not_look_at_the_classes_of_a_one_hot(self) -> None:
        """No operation reads them back: the kernel of `scatter_` checks them."""
        found = [
            name for name, _ in ops(recorded(lambda: F.one_hot(torch.zeros(2, 3, dtype=torch.long, device="cuda"), 4)))
        ]
        self.assertEqual(found[1:], ["aten.zeros.default", "aten.unsqueeze.default", "aten.scatter_.value"])

    def test_an_index_that_is_assumed_is_not_judged(self) -> None:
        """One that depends on unknown floats may be outside where the real one is not."""

        def work() -> None:
            chosen = floats(2, 8).argmax(-1)
            F.embedding(chosen * 100 + 7, floats(5, 2))

        self.assertIn("aten.embedding.default", [name for name, _ in ops(recorded(work))])


if __name__ == "__main__":
    unittest.main()
