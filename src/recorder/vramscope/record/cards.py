"""Cards that can be emulated: what PyTorch asks of a device."""

from __future__ import annotations

import json
from dataclasses import dataclass

from vramscope.record.errors import RecordingError

MIB = 1 << 20


@dataclass(frozen=True)
class Card:
    """A GPU: name as the driver gives it, compute capability, memory in bytes, multiprocessors."""

    name: str
    capability: tuple[int, int]
    memory: int
    sms: int
    l2: int


def _card(name: str, capability: tuple[int, int], mib: int, sms: int, l2_mib: int) -> Card:
    return Card(f"NVIDIA {name}", capability, mib * MIB, sms, l2_mib * MIB)


# Totals as `nvidia-smi` shows them (MiB), multiprocessors and level-2 cache from NVIDIA's data sheets.
CARDS: dict[str, Card] = {
    "h200": _card("H200", (9, 0), 143771, 132, 60),
    "h100": _card("H100 80GB HBM3", (9, 0), 81559, 132, 50),
    "h100-pcie": _card("H100 PCIe", (9, 0), 81559, 114, 50),
    "b200": _card("B200", (10, 0), 183359, 148, 126),
    "a100": _card("A100-SXM4-80GB", (8, 0), 81920, 108, 40),
    "a100-40gb": _card("A100-SXM4-40GB", (8, 0), 40960, 108, 40),
    "a10g": _card("A10G", (8, 6), 23028, 80, 6),
    "a6000": _card("RTX A6000", (8, 6), 49140, 84, 6),
    "l4": _card("L4", (8, 9), 23034, 58, 48),
    "l40s": _card("L40S", (8, 9), 46068, 142, 96),
    "rtx3090": _card("GeForce RTX 3090", (8, 6), 24576, 82, 6),
    "rtx4090": _card("GeForce RTX 4090", (8, 9), 24564, 128, 72),
    "rtx5090": _card("GeForce RTX 5090", (12, 0), 32607, 170, 96),
    "t4": _card("Tesla T4", (7, 5), 15360, 40, 4),
    "v100": _card("Tesla V100-SXM2-32GB", (7, 0), 32768, 80, 6),
}


def find(name: str) -> Card:
    """The card of this name, in any spelling, or of this shape as JSON; raises if there is none."""
    if name.startswith("{"):
        shape = json.loads(name)
        return Card(shape["name"], tuple(shape["capability"]), shape["memory"], shape["sms"], shape["l2"])
    card = CARDS.get(name.lower().replace(" ", "").replace("_", "-"))
    if card is None:
        raise RecordingError(f'"{name}" is no card that can be emulated. Choose one of: {", ".join(CARDS)}.')
    return card
