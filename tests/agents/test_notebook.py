"""The magics and the widget, in notebooks that Jupyter's own client runs."""

from __future__ import annotations

import tempfile
import unittest
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.agents.common import environment

LAUNCH = """%%vramscope --gpu H200
model_name_or_path: qwen2.5-0.5b
stage: sft
finetuning_type: full
cutoff_len: 512
bf16: true
"""


def outputs(*cells: str) -> list[Any]:
    """What each cell shows, after the extension is loaded."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in ("%load_ext vramscope", *cells)]
    with tempfile.TemporaryDirectory() as home, mock.patch.dict("os.environ", environment(home)):
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def html_of(shown: Any) -> str:
    """The HTML of what a cell shows."""
    return shown[-1]["data"]["text/html"]


class NotebookTest(unittest.TestCase):
    """What a notebook shows."""

    def test_magics_show_a_verdict_and_a_curve(self) -> None:
        """A line, a tool's file, a case and a configuration."""
        line, launch, case, none, value, rows = outputs(
            "%vramscope gpt2 --batch 2 --seq 256 --gpu H100",
            LAUNCH,
            '%%vramscope --limit-gib 0.5\n{"model": "gpt2", "batch": 1, "seq": 64}',
            "%vramscope gpt2",
            "_['peak_allocated'] if '_' in dir() else 0",
            "import vramscope\nrows = vramscope.sweep('gpt2', batch=[1, 64], seq=1024, gpu='4090')\n"
            "[(row['batch'], row['outcome']) for row in rows]",
        )
        self.assertIn("FITS", html_of(line))
        self.assertIn("<svg", html_of(line))
        self.assertIn("on H200<", html_of(launch))
        self.assertIn("OOM", html_of(case))
        self.assertIn("name a card with --gpu", html_of(none))
        self.assertGreater(int(value[-1]["data"]["text/plain"]), 1 << 28)
        self.assertEqual(rows[-1]["data"]["text/plain"], "[(1, 'fits'), (64, 'oom')]")

    def test_a_refusal_is_an_error_with_the_programs_words(self) -> None:
        """As in a terminal."""
        with self.assertRaises(CellExecutionError) as raised:
            outputs("%vramscope gpt2 --gpu nothing")
        self.assertIn("nothing", str(raised.exception))

    def test_names_are_escaped(self) -> None:
        """A model's name is text, whatever it holds."""
        (shown,) = outputs(
            "from vramscope.notebook import Answer\n"
            "Answer(model='<script>', peak_allocated=5, target=dict(name='<b>', verdict='fits', needed=1, room=2))"
        )
        self.assertNotIn("<script>", html_of(shown))
        self.assertIn("&lt;b&gt;", html_of(shown))


if __name__ == "__main__":
    unittest.main()
