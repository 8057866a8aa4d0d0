"""Recordings of the gallery, made again.

Needs the versions that the gallery was made with; skipped with others, and where torchvision is missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from importlib import metadata
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GALLERY = os.path.join(ROOT, "src", "gallery")


def digest(path: str) -> str:
    """Digest of all lines but the first and the last, which name versions and seconds."""
    with gzip.open(path, "rb") as file:
        lines = [line for line in file.read().split(b"\n") if line]
    return hashlib.sha256(b"".join(line + b"\n" for line in lines[1:-1])).hexdigest()


def listed() -> dict[str, dict[str, Any]]:
    """The gallery's list, by id."""
    with open(os.path.join(GALLERY, "recordings", "index.json"), encoding="utf-8") as file:
        return {model["id"]: model for model in json.load(file)["models"]}


class Gallery(unittest.TestCase):
    """What is committed is what the recorder writes."""

    def remade(self, name: str) -> None:
        """Records a model again and compares."""
        entry = listed()[name]
        for library, version in entry["versions"].items():
            try:
                found = metadata.version(library)
            except metadata.PackageNotFoundError:
                self.skipTest(f"{library} is not installed")
            if found.split("+")[0] != version.split("+")[0]:
                self.skipTest(f"the gallery was made with {library} {version}; {found} is installed")
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "again.vram.gz")
            command = [sys.executable, "-m", "vramscope.record", "--steps", "2", "-o", out, "src/gallery/step.py", name]
            environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "src", "recorder"), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            again = digest(out)
        self.assertEqual(again, entry["digest"], f"run `cargo xtask gallery {name}`")

    def test_a_video_classifier_is_recorded_as_before(self) -> None:
        """A model of torchvision."""
        self.remade("r3d-18")

    def test_a_reader_of_charts_is_recorded_as_before(self) -> None:
        """A model of transformers."""
        self.remade("pix2struct")

    def test_every_model_listed_can_be_made(self) -> None:
        """Each entry of the list names a model and a size, and its file is there."""
        with open(os.path.join(GALLERY, "models.json"), encoding="utf-8") as file:
            models = {model["id"]: model for model in json.load(file)}
        for name, entry in listed().items():
            self.assertIn(name, models)
            self.assertTrue(entry.get("source") or entry.get("like") or models[name]["from"] == "transformers", name)
            self.assertTrue(os.path.isfile(os.path.join(GALLERY, "recordings", f"{name}.vram")), name)


if __name__ == "__main__":
    unittest.main()
