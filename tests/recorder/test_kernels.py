"""Kernels that `bench` runs through PyTorch: results are compared, and what cannot run says why."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
import unittest
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [path for path in (SOURCE,) if path not in sys.path]

import torch  # noqa: E402
from vramscope import kernels, pace  # noqa: E402

CONVOLUTION = {"class": "convolution", "precision": "fp32", "shape": {"batch": 2, "m": 16, "n": 8, "k": 48}}
PLACES = {"class": "masked_scatter", "precision": "bf16", "shape": {"rows": 64, "columns": 8}}
ATTENTION = {
    "class": "attention",
    "precision": "fp32",
    "algorithm": "flash",
    "causal": True,
    "shape": {"batch": 2, "heads": 2, "length": 32, "head_dim": 16},
}


def run(*asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What the module prints for these kernels on the CPU."""
    given, printed = io.StringIO(json.dumps({"seconds": 0.1, "kernels": asked})), io.StringIO()
    with mock.patch("sys.stdin", given), contextlib.redirect_stdout(printed):
        kernels.main(["--device", "cpu"])
    return [json.loads(line) for line in printed.getvalue().splitlines()]


class KernelsTest(unittest.TestCase):
    """What a kernel's line says."""

    def test_each_kernel_is_right_and_timed(self) -> None:
        """A convolution and attention, forward and backward."""
        passes = [{**one, "pass": kind} for one in (CONVOLUTION, ATTENTION) for kind in ("forward", "backward")]
        found = run(*passes, PLACES)
        self.assertEqual([line["i"] for line in found], [0, 1, 2, 3, 4])
        for line in found:
            self.assertTrue(line["check"]["passed"], line)
            self.assertGreaterEqual(len(line["samples_ns"]), kernels.FEWEST)

    def test_a_kernel_that_pytorch_lacks_says_so(self) -> None:
        """A class that PyTorch has no function of."""
        (line,) = run({**PLACES, "class": "gemm"})
        self.assertIn("gemm", line["unsupported"])

    def test_a_wrong_result_and_one_that_is_no_number_fail(self) -> None:
        """Results are compared, and what is no number is no result."""
        wanted = torch.ones(100)
        self.assertTrue(kernels.compared([(wanted.clone(), wanted)], 0.01)["passed"])
        self.assertFalse(kernels.compared([(wanted * 1.1, wanted)], 0.01)["passed"])
        bad = kernels.compared([(wanted * math.nan, wanted), (wanted, wanted)], 0.01)
        self.assertFalse(bad["passed"])
        self.assertIsNone(bad["max_error"])

    def test_the_pace_is_followed_by_windows_alone(self) -> None:
        """Lines of windows, and nothing else."""
        printed = io.StringIO()
        with mock.patch.object(pace, "MIX", 20), contextlib.redirect_stdout(printed):
            pace.main(["--device", "cpu", "--windows", "3"])
        windows = json.loads(printed.getvalue())["windows_us"]
        self.assertEqual(len(windows), 3)
        self.assertGreater(min(windows), 0)


if __name__ == "__main__":
    unittest.main()
