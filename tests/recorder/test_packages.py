"""Packages that the machine with the GPU has: what `--packages` and a command say of them, and which way is taken."""

from __future__ import annotations

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

from vramscope.dry_run import packages  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from test_dry_run import Folder, stand_ins  # noqa: E402


class Packages(unittest.TestCase):
    """What the machine that trains has."""

    def test_a_list_is_read_as_a_file_is(self) -> None:
        """Names with or without versions."""
        self.assertEqual(packages.of_file("flash_attn==2.8.3,liger-kernel"), {"flash-attn", "liger-kernel"})
        with self.assertRaisesRegex(RecordingError, "cannot be read"):
            packages.of_file("no/such.txt")

    def test_flash_attn_is_there_where_it_is_asked_for(self) -> None:
        """By the list, or by the command's own words; its version and functions are found; else nothing is."""
        script = """
            import importlib.metadata, importlib.util, sys, torch
            found = importlib.util.find_spec("flash_attn") is not None
            assert found == (sys.argv[1] == "yes"), found
            if found:
                from flash_attn import flash_attn_func
                from flash_attn.bert_padding import unpad_input
                assert importlib.metadata.version("flash-attn") == "2.8.3"
                assert "flash-attn" in importlib.metadata.packages_distributions()["flash_attn"]
            w = torch.nn.Parameter(torch.ones(8, device="cuda"))
            w.sum().backward()
            torch.optim.SGD([w]).step()
        """
        with Folder(**{"ask.py": script}) as f:
            for words, flags in (
                (("ask.py", "no"), ()),
                (("ask.py", "yes"), ("--packages", "torch,flash-attn")),
                (("ask.py", "yes", "flash_attention_2"), ()),
            ):
                status, said = f.run("python", *words, flags=(*flags, "--steps", "1"))
                self.assertEqual(status, 0, said)
                told = stand_ins(f.lines())
                self.assertEqual("flash-attn" in told, words[1] == "yes")
        self.assertIn("the command asks for it", told["flash-attn"])

    def test_what_is_missing_says_which_way_was_taken(self) -> None:
        """Of a package that the machine has and this one lacks."""
        script = """
            import torch
            try:
                import causal_conv1d
            except ImportError:
                pass
            w = torch.nn.Parameter(torch.ones(8, device="cuda"))
            w.sum().backward()
            torch.optim.SGD([w]).step()
        """
        with Folder(**{"ask.py": script}) as f:
            status, said = f.run("python", "ask.py", flags=("--packages", "torch,causal-conv1d", "--steps", "1"))
            self.assertEqual(status, 0, said)
            self.assertIn("convolutions are PyTorch's own", stand_ins(f.lines())["causal-conv1d"])


if __name__ == "__main__":
    unittest.main()
