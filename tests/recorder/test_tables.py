"""Limits of what was recorded against what was measured, and the tables of it."""

from __future__ import annotations

import gzip
import json
import os
import statistics
import sys
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import dry_runs  # noqa: E402
import versions  # noqa: E402

DATA = os.path.join(os.path.dirname(HERE), "data")

FRONTS = {"trainer": "Trainer", "trl_sft": "TRL SFT", "trl_dpo": "TRL DPO", "loop": "loop"}


def rows(name: str) -> list[dict[str, Any]]:
    """Lines of a file of results."""
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def off(pair: list[int]) -> float:
    """Percent that the first differs from the second."""
    return 100 * (pair[0] / pair[1] - 1)


def fronts_table() -> str:
    """`fronts_recorded.md`."""
    with open(os.path.join(DATA, "truth", "fronts_h100.jsonl"), encoding="utf-8") as file:
        cases = {r["i"]: r["case"] for r in map(json.loads, file) if "case" in r}
    lines = [
        "# Recorded without a GPU against an H100",
        "",
        "transformers' Trainer, TRL's SFTTrainer and DPOTrainer and a plain loop, as `truth/fronts.py` runs them:",
        "recorded, played by the engine, and measured. Made by `tests/recorder/fronts.py`; `test_tables.py` beside it",
        "holds the limits.",
        "",
        "| front | model | batch, length | peak, measured | recorded | reserved, measured | recorded | file, KiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows("fronts_recorded.jsonl"):
        case = cases[row["i"]]
        size = f"{case['batch']}, {case['seq']}"
        peak, reserved = (f"{row[k][1]:,} | {_words(row[k])}" for k in ("peak", "reserved"))
        lines.append(f"| {FRONTS[row['front']]} | {row['model']} | {size} | {peak} | {reserved} | {row['file_kib']} |")
    return "\n".join(lines) + "\n"


def _words(pair: list[int]) -> str:
    return "every byte" if pair[0] == pair[1] else f"{off(pair):+.3f}%"


class Fronts(unittest.TestCase):
    """Trainer and TRL."""

    def test_peaks_are_those_of_the_gpu(self) -> None:
        """Each peak and each step's end within 0.2%, reserved within 5%, and the middle of all peaks to the byte."""
        found = rows("fronts_recorded.jsonl")
        for row in found:
            self.assertNotIn("error", row)
            for mark in ("peak", "end"):
                self.assertLessEqual(abs(off(row[mark])), 0.2, (row["i"], row["model"], mark))
            self.assertLessEqual(abs(off(row["reserved"])), 5.0, (row["i"], row["model"]))
        self.assertEqual(statistics.median(abs(off(row["peak"])) for row in found), 0.0)

    def test_the_table_is_of_these_results(self) -> None:
        """Remade with `python3 tests/recorder/test_tables.py tables`."""
        with open(os.path.join(DATA, "fronts_recorded.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), fronts_table())


def usual_table() -> str:
    """`usual_recorded.md`."""
    found = rows("usual_recorded.jsonl")
    done = [row for row in found if "error" not in row]
    failed = [row for row in found if "error" in row]
    lines = [
        "# The usual step of every family, recorded",
        "",
        "`vramscope record --model config.json` over the image-text families and causal language models of",
        "transformers 5.17: default configurations with four layers, repaired where no device can run them",
        "(`recorder/repairs.py`, `SETTINGS` of `recorder/usual.py`). One sample; one image and 1,024 positions, or as",
        "many as the image needs; 256 positions of text alone. Made by `tests/recorder/usual.py`; `test_tables.py`",
        "beside it holds the limits.",
        "",
        f"{len(done)} of {len(found)} record. The rest raises before a step begins:",
        "",
        "| family | what is said |",
        "| --- | --- |",
        *(f"| {row['family']} | {_first_line(row['error'])} |" for row in failed),
        "",
        "| family | file, KiB |",
        "| --- | --: |",
        *(f"| {row['family']} | {row['file_kib']} |" for row in done),
    ]
    return "\n".join(lines) + "\n"


def _first_line(said: str) -> str:
    return said.splitlines()[0].replace("|", "/")[:200]


class Usual(unittest.TestCase):
    """`--model` over families of transformers."""

    def test_every_family_was_tried(self) -> None:
        """Those of `coverage/configs.jsonl.gz`."""
        self.assertEqual(sorted(row["family"] for row in rows("usual_recorded.jsonl")), sorted(set(coverage())))

    def test_what_is_not_recorded_can_not_be_built(self) -> None:
        """Six text models whose default configuration transformers can't build on any device."""
        failed = [row["family"] for row in rows("usual_recorded.jsonl") if "error" in row]
        self.assertEqual([name for name in failed if coverage()[name] is not None], [])
        self.assertLessEqual(len(failed), 6)

    def test_the_table_is_of_these_results(self) -> None:
        """Remade with `python3 tests/recorder/test_tables.py tables`."""
        with open(os.path.join(DATA, "usual_recorded.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), usual_table())


def coverage() -> dict[str, int | None]:
    """Parameters of every family's default configuration, None where it can't be built."""
    with gzip.open(os.path.join(DATA, "coverage", "configs.jsonl.gz"), "rt", encoding="utf-8") as file:
        return {row["type"]: row["params"] for row in map(json.loads, file)}


class Versions(unittest.TestCase):
    """Twenty families in other versions of PyTorch and transformers."""

    def test_versions_of_pytorch_agree(self) -> None:
        """Highest bytes are within 0.01% of those under PyTorch 2.11 with the same transformers."""
        known = {(row["torch"], row["transformers"]): row["families"] for row in rows("recorder_versions.jsonl")}
        self.assertEqual(len(known[versions.REFERENCE]), 20)
        compared = 0
        for (torch, transformers), found in known.items():
            usual = known[versions.REFERENCE[0], transformers]
            for name, row in found.items():
                if "bytes" in row and "bytes" in usual[name]:
                    self.assertLessEqual(abs(off([row["bytes"], usual[name]["bytes"]])), 0.01, (torch, name))
                    compared += torch != versions.REFERENCE[0]
        self.assertGreaterEqual(compared, 6 * 19)

    def test_readme_has_these_results(self) -> None:
        """As `versions.py` prints them."""
        with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
            self.assertIn(versions.table(rows("recorder_versions.jsonl")), file.read())


class FiveSizes(unittest.TestCase):
    """Polynomials in batch and length of eight models, at sizes that were not used to find them."""

    def test_eight_models_have_five_sizes(self) -> None:
        """Those that were measured."""
        with open(os.path.join(DATA, "truth", "fronts_h100.jsonl"), encoding="utf-8") as file:
            measured = {r["i"] for r in map(json.loads, file) if r.get("case", {}).get("front") == "loop"}
        self.assertEqual({row["i"] for row in rows("five_sizes.jsonl")}, measured)
        self.assertEqual(len(measured), 40)

    def test_polynomials_give_every_line_of_the_recordings(self) -> None:
        """None differs."""
        for row in rows("five_sizes.jsonl"):
            self.assertEqual(row["differ"], 0, row)
            self.assertGreater(row["lines"], 1000)

    def test_the_engine_says_the_same_of_both(self) -> None:
        """Every mark and reserved byte of polynomials is that of the recording, whose peak is the kept one."""
        recorded = {row["i"]: row for row in rows("fronts_recorded.jsonl")}
        for row in rows("five_sizes.jsonl"):
            self.assertTrue(row["all_marks"], row)
            self.assertEqual(row["peak"], [recorded[row["i"]]["peak"][0]] * 2, row)

    def test_peaks_are_those_of_the_gpu(self) -> None:
        """To the byte in 37 of 40, and within 0.2% in all."""
        recorded = {row["i"]: row for row in rows("fronts_recorded.jsonl")}
        found = [off([row["peak"][0], recorded[row["i"]]["peak"][1]]) for row in rows("five_sizes.jsonl")]
        self.assertGreaterEqual(sum(distance == 0 for distance in found), 37)
        self.assertLessEqual(max(map(abs, found)), 0.2)


class DryRuns(unittest.TestCase):
    """Tools' own commands, without a GPU."""

    def test_peaks_are_those_of_the_gpu(self) -> None:
        """Each peak within 0.5%, their middle within 0.01%; reserved within 3% but where the page says otherwise."""
        found = [run for run in dry_runs.runs() if run.peak and run.reserved]
        for run in found:
            self.assertLessEqual(abs(off(list(run.peak))), 0.5, run)
            if not run.reserved_differs:
                self.assertLessEqual(abs(off(list(run.reserved))), 3.0, run)
        self.assertLessEqual(statistics.median(abs(off(list(run.peak))) for run in found), 0.01)

    def test_tools_and_their_methods_are_there(self) -> None:
        """Sixty rows at least, and each tool and method of them."""
        found = [run for run in dry_runs.runs() if run.peak]
        self.assertGreaterEqual(len(found), 60)
        for tool in ("ms-swift", "LLaMA-Factory", "TRL", "axolotl", "DeepSpeed", "accelerate", "transformers"):
            self.assertGreaterEqual(sum(run.tool == tool for run in found), 3, tool)
        for method in ("LoRA", "QLoRA", "full", "DPO", "GRPO", "packing", "Liger", "FSDP2", "ZeRO"):
            self.assertTrue(any(method in run.kind for run in found), method)

    def test_each_launch_file_is_kept(self) -> None:
        """Beside what was measured with it."""
        files = {name.rpartition(".")[0] for name in os.listdir(os.path.join(DATA, "dry_runs", "launch"))}
        self.assertEqual({row["case"] for row in rows("dry_runs/measured.jsonl")} - files, set())

    def test_the_page_has_these_results(self) -> None:
        """Remade with `python3 tests/recorder/dry_runs.py table`."""
        with open(dry_runs.PAGE, encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page, dry_runs.on_page(page))


if __name__ == "__main__":
    if sys.argv[1:] == ["tables"]:
        with open(os.path.join(DATA, "fronts_recorded.md"), "w", encoding="utf-8") as file:
            file.write(fronts_table())
        with open(os.path.join(DATA, "usual_recorded.md"), "w", encoding="utf-8") as file:
            file.write(usual_table())
    else:
        unittest.main()
