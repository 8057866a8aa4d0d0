"""Random configurations of families, recorded without a GPU and compared with what is simulated, event by event.

python3 random_configurations.py PROGRAM OUT COUNT FAMILY,... [SEED [NUMBER...]]: of each family COUNT configurations,
whose sizes are drawn as `configurations.py` draws them, with up to two more switches of the configuration class set
otherwise. Two steps of each are recorded in a process forked from this one, which has imported PyTorch and
transformers, and PROGRAM (`compare_events`) sets them beside the simulation. Prints a line for each and a line for each
family. What OUT holds already is not recorded again. NUMBER says which of the drawn ones are run. `all` instead of
families are all that can be drawn.
"""

from __future__ import annotations

import collections
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from typing import Any

import player

sys.path.append(os.path.join(player.ROOT, "tests", "data", "coverage"))

DEADLINE_SECONDS = 240
# Of a configuration whose sizes fit each other, these can change alone.
SWITCHES = ("hidden_act", "activation_function", "hidden_activation", "afn", "dense_act_fn")
# Switches of all models, of outputs that no training reads, and of classes that have another head.
LEFT_OUT = (
    "output_",
    "return_dict",
    "use_cache",
    "is_encoder_decoder",
    "is_decoder",
    "add_cross_attention",
    "summary_",
)
BATCHES, LENGTHS = (1, 1, 2, 3), (19, 33, 64, 100, 257)


def switched(rng: random.Random, line: dict[str, Any]) -> list[str]:
    """Sets up to two switches of a drawn configuration otherwise; returns their names."""
    import transformers
    import vary

    config = line["config"]
    rest = {key: value for key, value in config.items() if key != "model_type"}
    try:
        whole = transformers.AutoConfig.for_model(config["model_type"], **json.loads(json.dumps(rest)))
    except Exception:
        return []
    given = json.loads(whole.to_json_string(use_diff=False))
    found: list[tuple[dict[str, Any], str, Any]] = []
    for into, read in ((config, given), *((config.get(k), given.get(k)) for k in ("text_config", "vision_config"))):
        for key, value in (read or {}).items() if into is not None else ():
            is_rate = isinstance(value, float | int) and ("drop" in key)
            if key.startswith(LEFT_OUT) or not (isinstance(value, bool) or is_rate or key.endswith(SWITCHES)):
                continue
            found.append((into, key, 0.0 if is_rate and not isinstance(value, bool) else value))
    names = []
    found.sort(key=lambda each: each[1])
    for into, key, value in rng.sample(found, min(len(found), rng.choice((0, 1, 1, 2)))):
        if key.endswith(SWITCHES):
            new: Any = rng.choice(vary.ACTIVATIONS)
        else:
            new = (not value) if isinstance(value, bool) else rng.choice((0.0, 0.1, 0.5))
        if new != value:
            into[key] = new
            names.append(f"{key}={new}")
    return names


def draw(family: str, count: int, seed: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Lines as `configurations.py` draws them, each with the switches that were set otherwise."""
    import configurations

    from drawn import common

    lines = []
    for number in range(count):
        # Each has a seed of its own, so that it stays itself whatever is drawn before it.
        common.R.seed(f"{seed} {family} {number}")
        line = configurations.draw(family)
        rng = random.Random(f"{seed} {family} {number}")
        case = line["case"]
        fixed = configurations.CASES.get(family, {})
        is_text = family in configurations.TEXT
        drawn_case = {
            "batch": rng.choice(BATCHES) if is_text else min(case["batch"], 2),
            "seq": rng.choice(LENGTHS) if is_text else case["seq"],
            "precision": rng.choice(("fp32", "bf16", "bf16", "amp-bf16", "bf16-amp")),
            "optim": rng.choice(("sgd", "adamw")),
            "freeze": "none",
        }
        case.update({**drawn_case, **{key: value for key, value in fixed.items() if key != "freeze"}})
        if family in ("idefics3", "smolvlm"):
            case["precision"] = rng.choice(("fp32", "bf16"))
        for key in ("rank", "lora_dropout"):
            case.pop(key, None)
        lines.append((line, switched(rng, line)))
    return lines


def compared(program: str, base: str) -> tuple[str, str]:
    """What the comparison says: a word, and the first events that differ."""
    done = subprocess.run([program, base + ".vram", base + ".json"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "equal", ""
    if done.returncode == 2:
        return "refused here", done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    said = done.stdout.splitlines()
    at = next((i for i, row in enumerate(said) if "different from event" in row), None)
    if at is None:
        return "died", (done.stderr.strip().splitlines() or [""])[-1][:300]
    rows = [row[4:].strip() for row in said[at:] if row.startswith("  > ")]
    return "differs", f"{said[at]} | " + " | ".join(re.sub(r"\s+", " ", row) for row in rows[:2])


def refusal(program: str, base: str) -> str:
    """Why the engine refuses a line, or nothing if it does not."""
    word, why = compared(program, base)
    # Only the recording is missing if the engine simulates it.
    return why if word == "refused here" and "No such file" not in why else ""


def recorded(line: dict[str, Any], base: str) -> str:
    """Records a line unless that was done before; returns why it can't be recorded, or nothing."""
    wanted = json.dumps({key: line[key] for key in ("config", "case")})
    kept = {}
    for kind in (".json", ".error"):
        if os.path.exists(base + kind):
            with open(base + kind, encoding="utf-8") as file:
                kept[kind] = file.read()
    if kept.get(".json") == wanted and (".error" in kept or os.path.exists(base + ".vram")):
        return kept.get(".error", "")
    for kind in (".vram", ".vram.gz", ".json", ".error"):
        if os.path.exists(base + kind):
            os.remove(base + kind)
    error = player.apart(record, line, base, deadline=DEADLINE_SECONDS).get("error", "")
    if os.path.exists(base + ".vram.gz"):
        os.remove(base + ".vram.gz")
    if error:
        with open(base + ".error", "w", encoding="utf-8") as file:
            file.write(error)
    with open(base + ".json", "w", encoding="utf-8") as file:
        file.write(wanted)
    return error


def record(line: dict[str, Any], base: str) -> dict[str, Any]:
    """Two steps of a line, as `measure.py` trains them."""
    import configurations
    import measure
    import vramscope

    with vramscope.recording(base + ".vram.gz", gpu="h200", steps=2):
        measure.build = configurations.maker(line)
        measure.run({**line["case"], "timed": 0})
    with gzip.open(base + ".vram.gz") as packed, open(base + ".vram", "wb") as file:
        shutil.copyfileobj(packed, file)
    return {}


def run(program: str, out: str, family: str, lines: list[tuple[int, tuple[dict[str, Any], list[str]]]]) -> None:
    """Records and compares the lines of a family, and prints what came out."""
    counts: collections.Counter[str] = collections.Counter()
    folder = os.path.join(out, family)
    os.makedirs(folder, exist_ok=True)
    for number, (line, names) in lines:
        base = os.path.join(folder, str(number))
        error = recorded(line, base)
        if error:
            ours = refusal(program, base)
            word = "refused by both" if ours else "refused there"
            why = f"{error[:220]} | {ours[:220]}"
        else:
            word, why = compared(program, base)
        counts[word] += 1
        case = line["case"]
        asked = " ".join(str(case[key]) for key in ("batch", "seq", "precision", "ckpt", "attn", "optim", "accum"))
        print(f"{family} {number}: {word} ({asked}; {', '.join(names)}) {why}".rstrip(), flush=True)
    print(f"= {family}: " + ", ".join(f"{count} {word}" for word, count in counts.most_common()), flush=True)


def main() -> None:
    """Draws, records and compares."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Some models go through the kinds of their layers as a set. With this seed layers that see all come first.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    import configurations
    import measure  # noqa: F401
    import torch._dynamo  # noqa: F401  (before any recording replaces what it looks at)
    import transformers
    import vramscope  # noqa: F401

    transformers.logging.set_verbosity_error()
    program, out, count, families = sys.argv[1:5]
    seed = sys.argv[5] if len(sys.argv) > 5 else "1"
    wanted = {int(number) for number in sys.argv[6:]}
    every = [*configurations.TEXT, *configurations.IMAGES]
    for family in every if families == "all" else families.split(","):
        lines = list(enumerate(draw(family, int(count), seed)))
        run(program, out, family, [(n, line) for n, line in lines if not wanted or n in wanted])


if __name__ == "__main__":
    main()
