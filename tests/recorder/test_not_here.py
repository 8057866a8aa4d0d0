"""Dry runs of a script that names a model and data which are not there.

Apart from what imports these libraries here: a run is a fork, which their threads do not survive.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

from test_dry_run import Folder, needs, stand_ins  # noqa: E402

# A small model, as its configuration file has it.
TEXT = dict(
    model_type="qwen2",
    vocab_size=1024,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=512,
    eos_token_id=1002,
    torch_dtype="bfloat16",
)

# Stands for the program that a dry run asks for models: it knows one id.
PROGRAM = """#!/bin/sh
test "$1 $3" = "models --folder" || exit 9
test "$2" = "maker/small" && echo "note: known by name" >&2 && echo "$(dirname "$0")/known" && exit 0
echo "error: there is no model $2" >&2
exit 2
"""

TRAIN = """
    import torch
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from huggingface_hub import snapshot_download
    import os
    assert os.listdir(snapshot_download("maker/small"))
    name = "NAME"
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    assert model.dtype is torch.bfloat16 and len(tokenizer) == 1024
    data = load_dataset("maker/words", split="train")
    optimizer = torch.optim.AdamW(model.parameters())
    for row in list(data)[:2]:
        batch = tokenizer(row["text"], return_tensors="pt").to("cuda")
        assert batch["input_ids"].shape == (1, 48), batch["input_ids"].shape
        model(**batch, labels=batch["input_ids"]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@needs("transformers", "datasets", "huggingface_hub")
class Runs(unittest.TestCase):
    """Whole runs of a script that names a model and data which are not there."""

    def folder(self, name: str) -> Folder:
        """With a program that knows `maker/small`."""
        made = Folder(**{"train.py": TRAIN.replace("NAME", name), "program": PROGRAM})
        os.mkdir(os.path.join(made.path, "known"))
        made.write("known/config.json", json.dumps(TEXT))
        path = os.path.join(made.path, "program")
        os.chmod(path, os.stat(path).st_mode | stat.S_IEXEC)
        return made

    def test_a_model_by_its_id_and_made_up_data(self) -> None:
        """Weights in the dtype of the configuration, the vocabulary of its size, samples of the asked length."""
        with self.folder("maker/small") as f:
            flags = ("--data", "made-up:tokens=48")
            status, said = f.run("python", "train.py", flags=flags, VRAMSCOPE_PROGRAM=os.path.join(f.path, "program"))
            self.assertEqual(status, 0, said)
            told = stand_ins(f.lines())
        self.assertEqual(told["maker/small"], "known by name")
        self.assertIn("made of the configuration", told["maker/small: tokenizer"])
        self.assertEqual(told["data: maker/words"], "made up: tokens=48")

    def test_what_is_not_found_says_what_to_do(self) -> None:
        """A model that nobody knows, and a data set that is not here."""
        with self.folder("maker/unknown") as f:
            program = os.path.join(f.path, "program")
            status, said = f.run("python", "train.py", VRAMSCOPE_PROGRAM=program)
            self.assertEqual(status, 2, said)
            self.assertIn("there is no model maker/unknown", said)
            status, said = f.run("python", "train.py", VRAMSCOPE_PROGRAM=program + "-taken-away")
            self.assertEqual(status, 2, said)
            self.assertIn("program-taken-away does not start", said)
            f.write("train.py", TRAIN.replace("NAME", "maker/small"))
            status, said = f.run("python", "train.py", VRAMSCOPE_PROGRAM=program)
            self.assertEqual(status, 2, said)
            self.assertIn("vramscope dry-run --data made-up:", said)
            f.write("train.py", TRAIN.replace("NAME", "maker/small").replace('"text"', '"question"'))
            flags = ("--data", "made-up:tokens=48")
            status, said = f.run("python", "train.py", flags=flags, VRAMSCOPE_PROGRAM=program)
            self.assertEqual(status, 2, said)
            self.assertIn("columns=question", said)


if __name__ == "__main__":
    unittest.main()
