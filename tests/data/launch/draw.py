"""Draws launch files, and writes them to `drawn.jsonl` with what the tools' own parsers take from them.

usage: draw.py SEED COUNT
Needs what `parsed.py` needs. Keys are drawn from the tools' own classes, values from their types, and both are written in
the many ways that bash, YAML and JSON have for them. A file that the tool itself refuses is drawn anew.
"""

import contextlib, dataclasses, io, json, pathlib, random, re, sys, tempfile, types, typing

import parsed

OWN = re.compile(r"V\d+")
WORDS = ["out", "runs/a-b", "./data/train.jsonl", "it is", "a#b", "v1.0", "/tmp/x y", "模型", "q_proj", "lm_head", "None-1", "on-line"]


def kind(hint):
    """`bool`, `int`, `float`, `str`, a tuple of allowed words, a list of one of these; `None` for anything else."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in (bool, int, float, str):
        return hint.__name__
    if origin is typing.Literal:
        return inner if all(isinstance(one, str) for one in inner) else None
    if origin in (typing.Union, types.UnionType):
        # Of a file's several forms the plainest is drawn.
        kinds = [kind(one) for one in inner if one is not type(None)]
        return next((one for one in kinds if one in ("bool", "int", "float")), None) if len(kinds) > 1 else kinds[0]
    if origin in (list, typing.List):
        of = kind(inner[0]) if inner else None
        return ["str"] if of == "str" else None
    return None


def fields(classes):
    """Keys of dataclasses that a file can give, with the kind of their values."""
    out = {}
    for one in classes:
        hints = typing.get_type_hints(one)
        for field in dataclasses.fields(one):
            of = kind(hints[field.name])
            # What a key names must not be read as a file, and a run must not be named by chance.
            if field.init and of and not any(part in field.name for part in ("config", "deepspeed", "fsdp", "path", "adapter")):
                out[field.name] = of
    return out


class Draw:
    def __init__(self, seed):
        self.dice = random.Random(seed)

    def one(self, *of):
        return self.dice.choice(of)

    def number(self, of):
        if of == "int":
            return str(self.one(0, 1, 2, 8, 64, 1024, 4096, 50257))
        return self.one("1e-4", "1.0E-4", "5e-05", ".1", "0.10", "3", "2.5", "1e5", "0.0")

    def value(self, of):
        """A value in its plain spelling."""
        if isinstance(of, tuple):
            return self.one(*of)
        if isinstance(of, list):
            return [self.value(of[0]) for _ in range(self.dice.randint(1, 3))]
        if of == "bool":
            return self.one(True, False)
        return self.number(of) if of in ("int", "float") else self.one(*WORDS)

    def word(self, text, variables):
        """A word of bash: bare, quoted, in parts, or behind a variable."""
        plain = all(c.isalnum() or c in "_-./=" for c in text)
        ways = ["'", '"'] + (["", "", "split"] if plain else []) + (["variable", "default"] if plain else [])
        way = self.one(*ways)
        if way == "":
            return text
        if way == "split":
            return text[:1] + '"' + text[1:] + '"'
        if way == "variable":
            name = f"V{len(variables)}"
            variables.append(f"{self.one('', 'export ', 'declare ')}{name}={self.one(text, repr(text))}")
            return self.one(f"${name}", f"${{{name}}}", f'"${name}"', f'"${{{name}}}"')
        if way == "default":
            return f"${{UNSET_BY_ALL:-{text}}}"
        return way + text + way

    def option(self, key, of, value, variables):
        """An option of a command: the words that give it."""
        dashed = "--" + key
        if of == "bool":
            spelled = self.one("true", "True", "TRUE", "1", "yes", "y", "t") if value else self.one("false", "False", "FALSE", "0", "no", "n", "f")
            if value and self.dice.random() < 0.3:
                return [dashed]
            return self.one([dashed, spelled], [f"{dashed}={spelled}"])
        if isinstance(value, list):
            return [dashed] + [self.word(one, variables) for one in value]
        word = self.word(value, variables)
        return self.one([dashed, word], [f"{dashed}={word}"])

    def script(self, start, given):
        """A script of bash that starts a run."""
        variables, options = [], []
        for key, (of, value) in given.items():
            options.append(" ".join(self.option(key, of, value, variables)))
        lines = ["#!/bin/bash", self.one("set -euo pipefail", "set -x 2>/dev/null", "# a run"), *variables]
        if self.dice.random() < 0.3:
            cut = len(options) // 2
            lines += ["ARGS=(", *(f"    {one}{self.one('', '  # of it')}" for one in options[:cut]), ")"]
            options = ['"${ARGS[@]}"', *options[cut:]]
        separator = self.one(" ", " \\\n    ")
        prefix = "".join(f"{name}={value}{self.one(' ', ' ' + chr(92) + chr(10))}" for name, value in self.environment())
        return "\n".join(lines) + "\n" + prefix + start + separator + separator.join(options) + self.one("\n", " \n", "")

    def environment(self):
        both = [("CUDA_VISIBLE_DEVICES", "0"), ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")]
        return [one for one in both if self.dice.random() < 0.4]

    def scalar(self, of, value):
        """A scalar of YAML."""
        if of == "bool":
            return (self.one("true", "True", "TRUE") if value else self.one("false", "False", "FALSE"))
        if of in ("int", "float"):
            return self.one(value, value, value + "  # a remark", f'"{value}"')
        ways = ["'", '"'] + ([""] if not any(c in value for c in "#: ") else [])
        way = self.one(*ways)
        return way + value + way

    def yaml(self, given):
        lines = [self.one("### a group", "---", "")]
        for key, (of, value) in given.items():
            if isinstance(value, list):
                many = [self.scalar("str", one) for one in value]
                lines += self.one([f"{key}: [{', '.join(many)}]"], [f"{key}:", *(f"  - {one}" for one in many)], [f"{key}:", *(f"- {one}" for one in many)])
                continue
            lines.append(f"{self.one('', '', '')}{key}:{self.one(' ', '  ')}{self.scalar(of, value)}")
            if self.dice.random() < 0.1:
                lines.append(self.one("", "# in between"))
        return "\n".join(lines) + self.one("\n", "")

    def json(self, given):
        indent = self.one(None, 2, 4)
        return json.dumps(given, indent=indent)

    def some(self, known, least, most):
        keys = self.dice.sample(sorted(known), min(len(known), self.dice.randint(least, most)))
        return {key: (known[key], self.value(known[key])) for key in keys}


DEEPSPEED = {
    "train_micro_batch_size_per_gpu": ["auto", 1, 4],
    "gradient_accumulation_steps": ["auto", 2, 16],
    "gradient_clipping": ["auto", 1.0, 0],
    "bf16": [{"enabled": "auto"}, {"enabled": True}],
    "fp16": [{"enabled": False}, {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 16}],
    "zero_allow_untested_optimizer": [True, False],
    "steps_per_print": [1e5, 2000],
    "wall_clock_breakdown": [False],
}
ZERO = {
    "stage": [0, 1, 2, 3],
    "overlap_comm": [True, False],
    "contiguous_gradients": [True, False],
    "reduce_scatter": [True],
    "reduce_bucket_size": ["auto", 5e8, 200000000, 2e8],
    "allgather_bucket_size": [5e8, 2e8],
    "stage3_prefetch_bucket_size": ["auto", 5e7],
    "stage3_max_live_parameters": [1e9],
    "sub_group_size": [1e9],
    "offload_optimizer": [{"device": "none"}, {"device": "cpu", "pin_memory": True}],
}


def draw(dice, tool, folder):
    """A file of a tool: its name and text."""
    if tool == "deepspeed":
        of = lambda known: {key: dice.one(*values) for key, values in known.items() if dice.dice.random() < 0.6}
        return "deepspeed_drawn.json", dice.json(of(DEEPSPEED) | {"zero_optimization": {"stage": 2} | of(ZERO)})
    known = fields(CLASSES[tool]())
    given = dice.some(known, 6, 18)
    if tool == "llama_factory":
        given = {"model_name_or_path": ("str", "Qwen/Qwen2.5-7B-Instruct"), "stage": ("str", "sft")} | given
        if dice.dice.random() < 0.5:
            return "llama_factory_drawn.yaml", dice.yaml(given)
        return "llama_factory_drawn.sh", dice.script("llamafactory-cli train", given)
    if tool == "ms_swift":
        given = {"model": ("str", "Qwen/Qwen2.5-VL-7B-Instruct")} | given
        return "ms_swift_drawn.sh", dice.script("swift sft", given)
    given = {"model_name_or_path": ("str", "Qwen/Qwen2.5-VL-7B-Instruct"), "dataset_name": ("str", "org/data")} | given
    if dice.dice.random() < 0.5:
        return "trl_drawn.yaml", dice.yaml(given)
    return "trl_drawn.sh", dice.script("accelerate launch --num_processes 2 sft.py", given)


def of_llama_factory():
    from llamafactory.hparams.parser import _TRAIN_ARGS

    return _TRAIN_ARGS


def of_ms_swift():
    from swift.arguments import SftArguments

    return [SftArguments]


def of_trl():
    from trl import ModelConfig, ScriptArguments, SFTConfig

    return [ScriptArguments, SFTConfig, ModelConfig]


CLASSES = {"llama_factory": of_llama_factory, "ms_swift": of_ms_swift, "trl": of_trl}


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    dice, here, out = Draw(seed), parsed.HERE, []
    while len(out) < count:
        tool = ["llama_factory", "ms_swift", "trl", "deepspeed"][len(out) % 4]
        with tempfile.TemporaryDirectory() as folder:
            parsed.HERE = pathlib.Path(folder)
            name, text = draw(dice, tool, folder)
            path = parsed.HERE / name
            path.write_text(text)
            said = io.StringIO()
            try:
                with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                    values = parsed.reader(path)(path)
                # A variable of the script's own is none of the tool's.
                values = {key: value for key, value in values.items() if not OWN.fullmatch(key)}
            except (Exception, SystemExit) as error:
                print("refused:", tool, repr(error)[:160], said.getvalue()[-200:], file=sys.stderr)
                continue
        out.append({"name": name, "text": text, "parsed": values})
    lines = [json.dumps(one, ensure_ascii=False, sort_keys=True) for one in out]
    (here / "drawn.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
