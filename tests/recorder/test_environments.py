"""Environments of `--with`: what is asked for, what is left out, what is said. Nothing is installed."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder"))

from vramscope import environments  # noqa: E402
from vramscope.environments import NotMade  # noqa: E402

CHOSEN = {"ms-swift": "4.6.0", "torch": "2.11.0", "nvidia-cublas": "13.0", "triton": "3.6.0", "cuda-bindings": "13.1"}


class Installer:
    """In place of pip: chooses versions, and notes what it was told to install."""

    def __init__(self, python: Path) -> None:
        """Of this environment."""
        self.python = python
        Installer.told: list[Any] = []

    def create(self, folder: Path) -> None:
        """An environment whose Python is this one."""
        (folder / "bin").mkdir(parents=True)
        os.symlink(sys.executable, folder / "bin" / "python")

    def resolve(self, specs: list[str]) -> dict[str, str]:
        """Versions that fit."""
        Installer.told.append(("resolve", specs))
        return CHOSEN

    def install(self, pinned: list[str], target: Path | None) -> None:
        """Makes PyTorch's folder."""
        Installer.told.append(("install", pinned))
        if target is not None:
            (target / "torch").mkdir(parents=True)
            (target / "torch" / "version.py").write_text("", encoding="utf-8")


class Specs(unittest.TestCase):
    """What `--with` says."""

    def test_names_versions_and_files(self) -> None:
        """As pip takes them, and by the names that tools are called by."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requirements.txt")
            Path(path).write_text("# tools\ntrl>=1  # newest\n\n-r other.txt\npeft==0.21.2\n", encoding="utf-8")
            self.assertEqual(environments.specs_of([path]), ["trl>=1", "peft==0.21.2"])
        self.assertEqual(environments.specs_of(["llama-factory==0.9.5,peft"]), ["llamafactory==0.9.5", "peft"])
        self.assertEqual(environments.specs_of(["trl[vlm]==1.16"]), ["trl[vlm]==1.16"])
        for words, said in {
            "ms swift!": "takes packages such as",
            "": "names no package",
            "no.txt": "cannot be read",
        }.items():
            with self.subTest(words), self.assertRaisesRegex(NotMade, said):
                environments.specs_of([words])

    def test_what_runs_on_a_gpu_alone_is_left_out(self) -> None:
        """NVIDIA's libraries and compiled kernels."""
        for name in ("nvidia-cudnn-cu12", "triton", "cuda-bindings", "vllm", "flash-attn"):
            self.assertRegex(name, environments.LEFT_OUT)
        for name in ("torch", "bitsandbytes", "liger-kernel", "deepspeed"):
            self.assertNotRegex(name, environments.LEFT_OUT)


class Making(unittest.TestCase):
    """An environment from its beginning, and again."""

    def test_it_is_made_once(self) -> None:
        """Without what is left out, with PyTorch in a layer of its own; the second time it is found."""
        said: list[str] = []
        with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, XDG_CACHE_HOME=home):
            place = Path(home) / "packages"
            with (
                mock.patch.object(environments, "Pip", Installer),
                mock.patch.object(environments.shutil, "which", lambda name: None),
                mock.patch.object(environments, "packages_of", lambda python: place),
            ):
                python = environments.environment(["ms-swift"], said.append)
                self.assertTrue(python.exists())
                self.assertEqual(
                    Installer.told[0][1], ["ms-swift", *environments.IMAGES, "qwen-vl-utils", environments.TORCH]
                )
                self.assertEqual(Installer.told[1:], [("install", ["torch==2.11.0"]), ("install", ["ms-swift==4.6.0"])])
                self.assertTrue((place / "torch" / "version.py").exists())
                self.assertIn("3 of NVIDIA's and for GPUs left out", " ".join(said))
                self.assertIn("ms-swift 4.6.0 is the newest that Python", " ".join(said))
                kept = json.loads((python.parent.parent / "made_from").read_text(encoding="utf-8"))
                self.assertEqual(kept, {"ms-swift": "4.6.0", "torch": "2.11.0"})
                Installer.told = []
                self.assertEqual(environments.environment(["ms-swift"], said.append), python)
                self.assertEqual(Installer.told, [])

    def test_torchaudio_is_that_of_pytorch(self) -> None:
        """Where there is one, and nobody asks for another."""
        asked: list[list[str]] = []

        class Index:
            """Has torchaudio 2.11.0 and 2.11.1."""

            def resolve(self, specs: list[str]) -> dict[str, str]:
                """Versions that fit."""
                asked.append(specs)
                if "torchaudio==2.12.0" in specs:
                    raise NotMade("No matching distribution")
                return {"torch": "2.11.0", "torchaudio": "2.11.0"}

        def chosen(**versions: str) -> str:
            return environments.beside_torch(Index(), ["tool"], versions).get("torchaudio", "none")

        self.assertEqual(chosen(torch="2.11.0+cu130", torchaudio="2.11.1"), "2.11.0")
        self.assertEqual(asked, [["tool", "torch==2.11.0", "torchaudio==2.11.0"]])
        self.assertEqual(chosen(torch="2.12.0", torchaudio="2.11.1"), "2.11.1")
        self.assertEqual((chosen(torch="2.11.0"), chosen(torch="2.11.0", torchaudio="2.11.0")), ("none", "2.11.0"))
        self.assertEqual(len(asked), 2)
        versions = {"torch": "2.11.0", "torchaudio": "2.11.1"}
        self.assertEqual(environments.beside_torch(Index(), ["torchaudio>=2.11.1"], versions), versions)

    def test_a_failure_leaves_nothing_behind(self) -> None:
        """And says what the installer complained of."""

        def fail(self: Any, specs: list[str]) -> dict[str, str]:
            raise NotMade("trl==99 cannot be installed together: ERROR: No matching distribution")

        with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, XDG_CACHE_HOME=home):
            with (
                mock.patch.object(environments, "Pip", Installer),
                mock.patch.object(environments.shutil, "which", lambda name: None),
                mock.patch.object(Installer, "resolve", fail),
                self.assertRaisesRegex(NotMade, "No matching distribution"),
            ):
                environments.environment(["trl==99"], lambda text: None)
            self.assertEqual(list((Path(home) / "vramscope" / "environments").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
