"""Packages that run compiled code: bitsandbytes' own Python without its kernels, and the stand-in for flash-attn."""

from __future__ import annotations

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
from vramscope.dry_run import flash_attention  # noqa: E402
from vramscope.record import bitsandbytes  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from player import written  # noqa: E402
from test_dry_run import needs  # noqa: E402


def asked(run: Any, capability: str = "a100") -> list[int]:
    """Bytes of the memory that `run` asks for, in order, after what it returns as a function's inputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.vram.gz")
        with vramscope.recording(path, gpu=capability):
            run()
        return [n for line in written(path) if line["t"] == "op" for _, n in line.get("n", [])]


class FlashAttention(unittest.TestCase):
    """Memory of flash-attn 2.8.3, as its source asks for it."""

    def test_forward_and_backward_ask_for_what_the_source_does(self) -> None:
        """Fewer heads of keys, 300 positions: sums rounded to 128, wide gradients of keys that are summed."""
        sizes = dict(b=2, s=300, h=8, g=2, d=64)
        b, s, h, g, d = sizes.values()

        def run() -> None:
            q, k, v = (
                torch.randn(b, s, n, d, device="cuda", dtype=torch.bfloat16, requires_grad=True) for n in (h, g, g)
            )
            flash_attention.flash_attn_func(q, k, v, 0.1).backward(torch.ones_like(q))

        rows = 384
        forward = [b * s * h * d * 2, b * h * s * 4, 16]
        backward = [b * s * h * d * 2, b * s * g * d * 2, b * s * g * d * 2, b * h * rows * 4, b * rows * h * d * 4]
        expected = [*forward, b * s * h * d * 2, *backward, b * s * h * d * 2, b * s * h * d * 2]
        self.assertEqual(asked(run)[3 : 3 + len(expected)], expected)

    def test_packed_samples_are_rounded_once_each(self) -> None:
        """128 rows more for each sample (`mha_varlen_bwd`)."""

        def run() -> None:
            q = torch.randn(100, 4, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            ends = torch.tensor([0, 30, 100], device="cuda", dtype=torch.int32)
            out = flash_attention.flash_attn_varlen_func(q, q, q, ends, ends, 70, 70)
            out.backward(torch.ones_like(out))

        self.assertIn((100 + 256) * 4 * 32 * 4, asked(run))

    def test_what_has_no_stand_in_is_named(self) -> None:
        """With what to do instead."""
        with self.assertRaisesRegex(RecordingError, r"flash_attn.flash_attn_with_kvcache runs compiled CUDA code"):
            flash_attention.absent("flash_attn", "flash_attn_with_kvcache")()


@needs("bitsandbytes")
class Bitsandbytes(unittest.TestCase):
    """Quantized weights and states."""

    def test_a_weight_takes_its_four_bits_and_its_scales(self) -> None:
        """Half a byte an element, a float for 64 of them; the whole weight is let go."""

        def run() -> None:
            import bitsandbytes as bnb

            layer = bnb.nn.Linear4bit(256, 128, bias=False, compute_dtype=torch.bfloat16, compress_statistics=False)
            layer.weight = bnb.nn.Params4bit(
                torch.empty(128, 256, dtype=torch.bfloat16, device="cuda"), requires_grad=False, module=layer
            ).to("cuda")
            assert layer.weight.__class__.__name__ == "Params4bit" and isinstance(layer.weight, bnb.nn.Params4bit)
            out = layer(torch.randn(512, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True))
            out.sum().backward()

        found = asked(run)
        self.assertIn(128 * 256 // 2, found)
        self.assertIn(128 * 256 // 64 * 4, found)

    def test_an_optimizer_keeps_a_byte_for_each_moment(self) -> None:
        """With a scale for 256 elements; a paged one keeps them on the host."""

        def run(name: str) -> list[int]:
            def train() -> None:
                import bitsandbytes as bnb

                w = torch.nn.Parameter(torch.ones(4096, 64, device="cuda"))
                optimizer = getattr(bnb.optim, name)([w])
                w.sum().backward()
                optimizer.step()

            return asked(train)

        found = run("AdamW8bit")
        self.assertEqual(found.count(4096 * 64), 2, found)
        self.assertEqual(run("PagedAdamW8bit").count(4096 * 64), 0)


class Kernels(unittest.TestCase):
    """What stands in for the compiled library."""

    def test_functions_take_signatures_and_report_success(self) -> None:
        """As `ctypes` has them."""
        made = bitsandbytes.Kernels()
        made.cadd.argtypes = [int]
        self.assertEqual((made.cadd(1, 2), made.cadd.argtypes), (0, [int]))


if __name__ == "__main__":
    unittest.main()
