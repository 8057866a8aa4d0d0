"""The table of dry runs in `docs/any-model.md`: what was recorded without a GPU beside what the same run took on one.

python3 dry_runs.py keep FOLDER [MORE ...]   plays recordings named by case, and keeps what came out beside what follows
python3 dry_runs.py table                    writes the table

`tests/data/dry_runs/measured.jsonl` holds what tools' own commands took, by the launch files beside it: the highest
bytes of each step, and reserved. Runs of Trainer and TRL in a script are those of `fronts_recorded.jsonl`, runs on two
GPUs those of `truth/two_gpus.jsonl`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from player import ROOT, off, play  # noqa: E402

DATA = os.path.join(ROOT, "tests", "data")
RECORDED = os.path.join(DATA, "dry_runs", "recorded.jsonl")
PAGE = os.path.join(ROOT, "docs", "any-model.md")
BEGIN, END = "<!-- The table is made by tests/recorder/dry_runs.py. -->\n", "<!-- The table ends. -->\n"

TOOLS = ("ms-swift", "LLaMA-Factory", "TRL", "axolotl", "DeepSpeed", "accelerate", "transformers")
FRONTS = {
    "trainer": ("transformers", "5.17.0", ""),
    "trl_sft": ("TRL", "1.16.0", "SFT, "),
    "trl_dpo": ("TRL", "1.16.0", "DPO, "),
}
SHARDED = {
    "ddp": ("transformers", "5.17.0", "DDP"),
    "fsdp": ("accelerate", "1.15.0", "FSDP2"),
    "fsdp_no_reshard": ("accelerate", "1.15.0", "FSDP2, not resharded"),
    "z2": ("DeepSpeed", "0.19.8", "ZeRO-2"),
    "z3": ("DeepSpeed", "0.19.8", "ZeRO-3"),
    "z3_off": ("DeepSpeed", "0.19.8", "ZeRO-3, all offloaded"),
}


@dataclass
class Run:
    """One row: peak and reserved bytes, recorded and measured; without a recording, why there is none."""

    tool: str
    version: str
    model: str
    kind: str
    gpu: str
    peak: tuple[int, int] | None
    reserved: tuple[int, int] | None
    why: str = ""
    of_script: bool = False

    @property
    def reserved_differs(self) -> bool:
        """True where reserved bytes depend on how far the host runs ahead, and where `Fronts` holds another limit."""
        return "offloaded" in self.kind or self.of_script

    def row(self) -> str:
        """As the table has it, in GiB."""
        if self.peak is None or self.reserved is None:
            return f"| {self.tool} {self.version} | {self.model} | {self.kind} | {self.gpu} | {self.why} | | | |"
        cells = [f"{x / 2**30:.4f}" for x in self.peak] + [f"{x / 2**30:.3f}" for x in self.reserved]
        return f"| {self.tool} {self.version} | {self.model} | {self.kind} | {self.gpu} | {' | '.join(cells)} |"


def lines(*path: str) -> list[dict[str, Any]]:
    """Rows of a file of `tests/data`."""
    with open(os.path.join(DATA, *path), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def runs() -> list[Run]:
    """All rows, by tool."""
    recorded = {row["case"]: row for row in lines("dry_runs", "recorded.jsonl")}
    found = [of_tool(row, recorded.get(row["case"], {})) for row in lines("dry_runs", "measured.jsonl")]
    found += [
        of_pair(row, recorded.get(f"two_gpus_{i}", {})) for i, row in enumerate(lines("truth", "two_gpus.jsonl")[1:])
    ]
    cases = {row["i"]: row["case"] for row in lines("truth", "fronts_h100.jsonl") if "case" in row}
    found += [of_front(row, cases[row["i"]]) for row in lines("fronts_recorded.jsonl") if row["front"] in FRONTS]
    found = [run for run in found if run.peak or run.why]
    return sorted(found, key=lambda run: TOOLS.index(run.tool))


def of_tool(measured: dict[str, Any], recorded: dict[str, Any]) -> Run:
    """A run of a tool's own command."""
    named = [measured[key] for key in ("tool", "version", "model", "kind", "gpu")]
    named[4] = "H200" if "H200" in named[4] else "H100"
    if "steps" not in recorded:
        return Run(*named, None, None, recorded.get("error", ""))
    return Run(*named, (max(recorded["steps"]), max(measured["steps"])), (recorded["reserved"], measured["reserved"]))


def of_pair(measured: dict[str, Any], recorded: dict[str, Any]) -> Run:
    """A run on two GPUs."""
    tool, version, kind = SHARDED[measured["front"]]
    case = measured["case"]
    kind += settings(case)
    named = (tool, version, str(case["model"]), f"Trainer, {kind}", "two H200")
    if "steps" not in recorded:
        return Run(*named, None, None, recorded.get("error", ""))
    peak = (recorded["steps"][-1], measured["peak_steady"])
    return Run(*named, peak, (recorded["reserved"], measured["reserved_peak"]))


def of_front(row: dict[str, Any], case: dict[str, Any]) -> Run:
    """A run of Trainer or TRL's trainers in a script."""
    tool, version, kind = FRONTS[row["front"]]
    what = "LoRA" if case.get("freeze") == "lora" else "full"
    kind += what + settings(case)
    return Run(tool, version, row["model"], kind, "H100", tuple(row["peak"]), tuple(row["reserved"]), of_script=True)


def settings(case: dict[str, Any]) -> str:
    """What else a case sets, as the table says it."""
    said = "".join(f", {case[key]}" for key in ("precision", "dtype") if key in case)
    said += ", LoRA" if case.get("freeze") == "lora" and "strategy" in case else ""
    said += f", batch {case['batch']} of {case['seq']}" if case.get("seq") else f", batch {case['batch']}"
    said += f", {case['accum']} micro-batches" if case.get("accum", 1) > 1 else ""
    return said + (", checkpointed" if case.get("ckpt", "none") != "none" else "")


def table() -> str:
    """The table, as the page has it: what was recorded, or says why not."""
    head = (
        "| tool | model | run | GPU | dry run | measured | reserved, dry run | reserved, measured |",
        "| --- | --- | --- | --- | --: | --: | --: | --: |",
    )
    return "\n".join([*head, *(run.row() for run in runs())]) + "\n"


def on_page(page: str) -> str:
    """The page with today's table."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


def keep(folders: list[str]) -> None:
    """Plays every recording of these folders, and keeps what the engine says."""
    kept = {row["case"]: row for row in lines("dry_runs", "recorded.jsonl")} if os.path.exists(RECORDED) else {}
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            case = name.removesuffix(".vram.gz")
            if case == name:
                continue
            played = play(os.path.join(folder, name))
            steps = [step["peak_allocated"] for step in played["recording"]["batches"]["steps"]]
            kept[case] = dict(case=case, steps=steps, reserved=played["peak_reserved"])
    with open(RECORDED, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(kept[case]) + "\n" for case in sorted(kept))


def main() -> None:
    """Keeps recordings, or writes the table."""
    if sys.argv[1] == "keep":
        keep(sys.argv[2:])
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(on_page(page))
    for run in runs():
        if run.peak and run.reserved:
            print(f"{off(*run.peak):+.3f}% {off(*run.reserved):+.2f}% {run.row()}")


if __name__ == "__main__":
    main()
