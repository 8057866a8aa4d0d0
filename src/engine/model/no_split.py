"""Writes `no_split.tsv`: modules that transformers keeps whole on one device (`_no_split_modules`), by their paths, and
those of its classes that the model has none of: accelerate fails for FSDP where there are any.

python3 no_split.py TYPES > no_split.tsv, in a Python with transformers; TYPES names in each line a
`model_type`, its class, and a `config.json` where the default configuration makes no model. Numbers of
members of lists are `#`. Accelerate wraps these modules for FSDP, and splits none of them between GPUs for `device_map`.
"""

import json
import re
import sys

import torch
import transformers
from transformers import AutoConfig

def paths(model_type: str, name: str, file: str = "") -> tuple[list[str], list[str]]:
    """Paths of the modules of a model of the default configuration, or of that in a file, and classes that it has not."""
    given = json.load(open(file, encoding="utf-8")) if file else {}
    config = AutoConfig.for_model(**{**given, "model_type": model_type})
    for part in (config, *(value for value in vars(config).values() if hasattr(value, "model_type"))):
        for key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth"):
            if isinstance(getattr(part, key, None), int) and getattr(part, key) > 8:
                try:
                    setattr(part, key, 8)
                    if getattr(part, "layer_types", None):
                        part.layer_types = part.layer_types[:8]
                except Exception:  # noqa: BLE001  (a number that the class works out itself)
                    pass
    with torch.device("meta"):
        model = getattr(transformers, name)._from_config(config)
    kept = model._no_split_modules
    named = [(path, type(module).__name__) for path, module in model.named_modules()]
    found = {re.sub(r"\.\d+(?=\.|$)", ".#", path) for path, kind in named if kind in kept}
    return sorted(found), sorted(kept - {kind for _, kind in named})


for line in sys.stdin if len(sys.argv) < 2 else open(sys.argv[1]):
    model_type, *rest = line.split()
    try:
        print(model_type, *(",".join(names) for names in paths(model_type, *rest)), sep="\t", flush=True)
    except Exception as failed:  # noqa: BLE001
        print(model_type, failed, file=sys.stderr)
