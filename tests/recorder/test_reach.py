"""What scripts do around training: checkpoints, prints, several sizes; and the package without PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402
from vramscope.record.sizes import Fit  # noqa: E402


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python that sees the recorder and no packages."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-S", *words], env={**env, **variables}, capture_output=True, text=True, check=False
    )


class Checkpoints(unittest.TestCase):
    """Files are written without data."""

    def test_safetensors_have_shapes_and_a_hole(self) -> None:
        """A header that safetensors reads, and data that takes no disk."""
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            with vramscope.recording(os.devnull):
                weights = {
                    "a": torch.randn(1 << 12, 1 << 12, device="cuda", dtype=torch.bfloat16),
                    "b": torch.ones(3, device="cuda"),
                }
                save_file(weights, path, metadata={"format": "pt"})
            self.assertGreater(os.path.getsize(path), 1 << 25)
            self.assertLess(os.stat(path).st_blocks * 512, 1 << 20)
            read = load_file(path)
        self.assertEqual({k: (v.dtype, tuple(v.shape)) for k, v in read.items()}["a"], (torch.bfloat16, (4096, 4096)))
        self.assertEqual(tuple(read["b"].shape), (3,))

    def test_torch_saves(self) -> None:
        """`torch.save` writes a state dict."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            with vramscope.recording(os.devnull):
                torch.save(torch.nn.Linear(4, 4).cuda().state_dict(), path)
            self.assertGreater(os.path.getsize(path), 0)


class Prints(unittest.TestCase):
    """Numbers that scripts print."""

    def test_a_scalar_is_formatted_as_its_number(self) -> None:
        """Known ones as they are, unknown ones as assumed."""
        with vramscope.recording(os.devnull):
            known = f"{torch.tensor(3, device='cuda'):4d}"
            unknown = f"{torch.randn(8, device='cuda').mean():.2f}"
        self.assertEqual((known, unknown), ("   3", "1.00"))


class Sizes(unittest.TestCase):
    """Polynomials through few sizes."""

    def test_a_size_that_does_not_vary_needs_no_points(self) -> None:
        """Of one batch, a square in the length through three lengths and a fourth to check."""
        fit = Fit([(1, 2), (1, 3), (1, 5), (1, 7)])
        found = fit.polynomial((4, 9, 25, 49))
        self.assertEqual([fit.at(found, (1, n)) for n in (4, 10)], [16, 100])
        self.assertIsNone(fit.polynomial((4, 9, 25, 50)))


class Alone(unittest.TestCase):
    """The package where there is no PyTorch."""

    def test_importing_needs_no_pytorch(self) -> None:
        """`estimate` asks the program alone."""
        done = python("-c", "import vramscope; vramscope.estimate", PYTHONPATH=SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_folder_runs(self) -> None:
        """As the command line starts it; help needs no PyTorch, recording says that it does."""
        self.assertIn("--vary", python(SOURCE, "--help").stdout)
        done = python(SOURCE, "train.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no PyTorch", done.stderr)

    def test_flags_of_the_program(self) -> None:
        """`estimate` gives the program its arguments as flags, and raises with its words."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vramscope")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    f"#!{sys.executable} -S\nimport json, sys\n"
                    'if "bad" in sys.argv: sys.exit("error: no such model")\n'
                    'print(json.dumps({"words": sys.argv[1:], "read": "-" in sys.argv and sys.stdin.read()}))\n'
                )
            os.chmod(path, 0o755)
            before = os.environ["PATH"]
            os.environ["PATH"] = folder + os.pathsep + before
            try:
                one = vramscope.estimate("gpt2", batch=4, max_gib=None, lora_dropout=0.1, fused=True)
                two = vramscope.estimate(config={"model_type": "gpt2"})
                with self.assertRaisesRegex(ValueError, "^no such model$"):
                    vramscope.estimate("bad")
            finally:
                os.environ["PATH"] = before
        rest = ["--batch", "4", "--lora-dropout", "0.1", "--fused", "--format", "json"]
        self.assertEqual(one["words"], ["--color", "never", "estimate", "gpt2", *rest])
        self.assertEqual(two["read"], '{"model_type": "gpt2"}')
        with self.assertRaises(TypeError):
            vramscope.estimate()


if __name__ == "__main__":
    unittest.main()
