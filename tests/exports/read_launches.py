"""Draws launch files and compares what `vramscope estimate --launch` reads with what the tools' own parsers read.

usage: read_launches.py PROGRAM [SEED [COUNT]]
A file is a command or YAML of transformers, TRL, LLaMA-Factory or ms-swift, with keys and values drawn from the fields of the
tool's own dataclasses, in the spellings that shells, argparse and YAML allow. The tool's parser reads the words that bash
passes to it, or the file; what a class checks or derives after parsing is left out, since it asks for GPUs and files. Prints
a line for each file; ends with 1 if one is read otherwise, or too few could be compared.
"""

import dataclasses, json, os, pathlib, random, shlex, subprocess, sys, tempfile, typing

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_VERSION_CHECK="1")
MODELS = ["Qwen/Qwen2.5-0.5B", "HuggingFaceTB/SmolVLM-256M-Instruct"]
# types of the weights of models that `AutoModelForCausalLM` loads
STORED = {"Qwen/Qwen2.5-0.5B": "bf16", "openai-community/gpt2": "fp32"}
# name of transformers, word of the setup
OPTIMIZERS = {"adamw_torch": "adamw", "adamw_torch_fused": "adamw_fused", "sgd": "sgd", "adafactor": "adafactor", "adamw_bnb_8bit": "adamw_8bit", "adamw_8bit": "adamw_8bit"}
# keys that other keys contradict, name files, or make another run, which has no setup to compare
PASSED_OVER = {"deepspeed", "fsdp", "fsdp_config", "accelerator_config", "parallelism_config", "resume_from_checkpoint", "output_dir", "config", "config_file"}


def without_checks(classes):
    """Switches off what classes do after parsing."""
    for one in (own for each in classes for own in each.__mro__):
        if "__post_init__" in vars(one):
            one.__post_init__ = lambda self, *args, **more: None
    return classes


def plain(value):
    return getattr(value, "value", value)


class Drawn:
    """A launch file: keys with values, for a tool."""

    def __init__(self, rng):
        self.rng, self.keys = rng, {}

    def maybe(self, key, values, chance=0.5):
        if self.rng.random() < chance:
            self.keys[key] = self.rng.choice(values)

    def without_effect(self, classes, known):
        """Adds some fields whose value is a number or a truth value, of those that change no memory by the tables."""
        fields = {f.name: f for one in classes for f in dataclasses.fields(one)}
        names = [name for name in sorted(fields) if name in known and name not in PASSED_OVER and name not in self.keys]
        for name in self.rng.sample(names, min(len(names), self.rng.randint(2, 8))):
            default = fields[name].default
            kind = {str(t) for t in typing.get_args(fields[name].type)} or {str(fields[name].type)}
            if isinstance(default, bool):
                self.keys[name] = self.rng.random() < 0.5
            elif isinstance(default, int):
                self.keys[name] = self.rng.choice([1, 3, 200])
            elif isinstance(default, float) and not any("str" in one for one in kind):
                self.keys[name] = self.rng.choice([0.1, 2e-5, 1e-4, 0.0])

    def command(self, program, settings=""):
        """The file as a script of bash."""
        rng, lines, variables = self.rng, [], []
        keys = list(self.keys.items())
        rng.shuffle(keys)
        for key, value in keys:
            name = key.replace("_", "-") if rng.random() < 0.15 else key
            if value is True and rng.random() < 0.4:
                lines.append(f"--{name}")
                continue
            if isinstance(value, list):
                lines.append(" ".join([f"--{name}", *map(shlex.quote, value)]))
                continue
            text = rng.choice([str(value), str(value).lower()]) if isinstance(value, bool) else str(value)
            word = rng.choice([text, f'"{text}"', f"'{text}'", None])
            if word is None:
                variable = f"V{len(variables)}"
                if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
                    variables.append(f"{variable}={value - 1}")
                    word = f"$(({variable} + 1))"
                else:
                    variables.append(f"{rng.choice(['', 'export '])}{variable}={shlex.quote(text)}")
                    word = rng.choice([f"${{{variable}}}", f'"${variable}"', f"${{{variable}:-other}}"])
            lines.append(f"--{name}{rng.choice([' ', '='])}{word}")
        joined = " \\\n    ".join(lines)
        head = rng.choice(["", "#!/bin/bash\nset -e\n", "# a run\n\n"])
        return head + "".join(line + "\n" for line in variables) + f"{settings}{program} \\\n    {joined}\n"

    def yaml(self):
        """The file as YAML."""
        rng, lines = self.rng, []
        for key, value in self.keys.items():
            if isinstance(value, bool):
                text = rng.choice([str(value), str(value).lower()])
            elif isinstance(value, list):
                text = rng.choice(["[" + ", ".join(value) + "]", "".join(f"\n  - {word}" for word in value)])
            else:
                text = str(value)
            lines.append(f"{key}: {text}{rng.choice(['', '', '  # here'])}\n")
        rng.shuffle(lines)
        return rng.choice(["", "### a run\n"]) + "".join(lines)


def words_of(text, program):
    """Words that bash passes to a program."""
    stub = f"{program}() {{ printf '%s\\0' \"$@\"; exit; }}\n"
    out = subprocess.run(["bash", "-c", stub + text], capture_output=True, check=True, text=True).stdout
    return out.rstrip("\0").split("\0")


def known_without_effect(tool):
    """Keys that the tables of src/launch/keys say to be without effect."""
    folder = pathlib.Path(__file__).parents[2] / "src/launch/keys"
    rows = [line.split("\t") for name in ("transformers", tool) for line in (folder / f"{name}.tsv").read_text().splitlines()]
    return {row[0] for row in rows if len(row) > 1 and row[1].startswith("-")}


def of_arguments(read):
    """What transformers' own settings come to."""
    return {
        "batch": read.per_device_train_batch_size,
        "accum": read.gradient_accumulation_steps,
        "optim": OPTIMIZERS[str(plain(read.optim))],
        "clip": bool(read.max_grad_norm and float(read.max_grad_norm) > 0),
    }


def training(drawn):
    drawn.maybe("per_device_train_batch_size", [1, 2, 3, 4], 0.8)
    drawn.maybe("gradient_accumulation_steps", [1, 2, 4, 7], 0.6)
    drawn.maybe("optim", list(OPTIMIZERS), 0.5)
    drawn.maybe("max_grad_norm", [0.0, 0.3, 1.0], 0.3)


def transformers_command(rng):
    from transformers import HfArgumentParser, TrainingArguments

    @dataclasses.dataclass
    class Model:
        model_name_or_path: str = None
        block_size: int = None
        torch_dtype: str = None

    drawn = Drawn(rng)
    drawn.keys.update(model_name_or_path=rng.choice(list(STORED)), block_size=rng.choice([128, 256]), output_dir="out", do_train=True)
    training(drawn)
    drawn.maybe("gradient_checkpointing", [True, False])
    stored = STORED[drawn.keys["model_name_or_path"]]
    # fp16's scaler takes no gradients in 16 bits
    drawn.maybe(rng.choice(["bf16", "fp16"]) if stored == "fp32" else "bf16", [True, False])
    drawn.without_effect([TrainingArguments], known_without_effect("transformers"))
    gpus = rng.choice([1, 2, 4])
    launcher, stub = rng.choice([(f"torchrun --nproc_per_node {gpus} run_clm.py", "torchrun"), (f"accelerate launch --num_processes={gpus} run_clm.py", "accelerate")])
    text = drawn.command(launcher)
    words = words_of(text, stub)
    words = words[words.index("run_clm.py") + 1 :]
    model, read = HfArgumentParser(without_checks((Model, TrainingArguments))).parse_args_into_dataclasses(args=words)
    compute = "bf16" if read.bf16 else "fp16" if read.fp16 else None
    return text, "run.sh", of_arguments(read) | {
        "model": model.model_name_or_path, "seq": model.block_size, "ckpt": read.gradient_checkpointing,
        "precision": stored if not compute else f"amp-{compute}" if stored == "fp32" else f"{stored}-amp",
        "world": gpus, "freeze": "none",
    }


def of_trl(objects):
    _, read, model = objects
    # `_BaseConfig.__post_init__`: bf16 unless fp16 is asked for.
    bf16 = not read.fp16 if read.bf16 is None else read.bf16
    out = of_arguments(read) | {
        "model": model.model_name_or_path, "seq": read.max_length, "ckpt": read.gradient_checkpointing,
        "compute": "bf16" if bf16 else "fp16" if read.fp16 else "fp32" if model.dtype in (None, "float32") else "bf16",
        "freeze": ("qlora" if model.load_in_4bit else "lora") if model.use_peft else "none",
    }
    return out | ({"rank": model.lora_r, "lora_dropout": model.lora_dropout} if model.use_peft else {})


def trl_keys(rng):
    from trl import ModelConfig, ScriptArguments, SFTConfig

    drawn = Drawn(rng)
    drawn.keys.update(model_name_or_path=rng.choice(MODELS), dataset_name="a/b", output_dir="out", max_length=rng.choice([128, 192, 512]))
    training(drawn)
    drawn.maybe("gradient_checkpointing", [True, False])
    drawn.maybe("bf16", [True, False], 0.3)
    drawn.maybe("dtype", ["bfloat16", "float32", "auto"], 0.4)
    if rng.random() < 0.6:
        drawn.keys["use_peft"] = True
        drawn.maybe("lora_r", [4, 8, 64])
        drawn.maybe("lora_dropout", [0.0, 0.1])
        drawn.maybe("load_in_4bit", [True, False], 0.3)
        drawn.maybe("lora_target_modules", [["q_proj", "v_proj"], ["all-linear"]], 0.3)
    drawn.without_effect([SFTConfig], known_without_effect("trl_sft"))
    return drawn, (ScriptArguments, SFTConfig, ModelConfig)


def trl_command(rng):
    from trl import TrlParser

    drawn, classes = trl_keys(rng)
    text = drawn.command("trl sft")
    return text, "run.sh", of_trl(TrlParser(without_checks(classes)).parse_args_and_config(words_of(text, "trl")[1:]))


def trl_yaml(rng):
    from trl import TrlParser

    drawn, classes = trl_keys(rng)
    text = drawn.yaml()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        objects = TrlParser(without_checks(classes)).parse_args_and_config(["--config", file.name])
    return text, "sft.yaml", of_trl(objects)


def llama_factory(rng, form):
    from llamafactory.hparams.parser import _TRAIN_ARGS
    from omegaconf import OmegaConf
    from transformers import HfArgumentParser

    drawn = Drawn(rng)
    drawn.keys.update(model_name_or_path=rng.choice(MODELS), stage="sft", do_train=True, dataset="identity", template="qwen", output_dir="out")
    drawn.keys["finetuning_type"] = rng.choice(["lora", "full"])
    training(drawn)
    drawn.maybe("cutoff_len", [128, 256, 500], 0.8)
    drawn.maybe("bf16", [True, False])
    drawn.maybe("disable_gradient_checkpointing", [True, False], 0.3)
    if drawn.keys["finetuning_type"] == "lora":
        drawn.maybe("lora_rank", [4, 16])
        drawn.maybe("lora_dropout", [0.0, 0.1])
        drawn.maybe("lora_target", ["all", "q_proj,v_proj"])
        drawn.maybe("quantization_bit", [4], 0.3)
    drawn.without_effect(_TRAIN_ARGS, known_without_effect("llama_factory"))
    parser = HfArgumentParser(without_checks(_TRAIN_ARGS))
    if form == "yaml":
        text = drawn.yaml()
        # `read_args` in llamafactory/hparams/parser.py
        objects = parser.parse_dict(OmegaConf.to_container(OmegaConf.create(text)))
    else:
        text = drawn.command("llamafactory-cli train")
        objects = parser.parse_args_into_dataclasses(args=words_of(text, "llamafactory-cli")[1:])
    model, data, read, tuning, _ = objects
    lora = tuning.finetuning_type == "lora"
    out = of_arguments(read) | {
        "model": model.model_name_or_path, "seq": data.cutoff_len, "ckpt": not model.disable_gradient_checkpointing,
        # else that of the checkpoint (`infer_optim_dtype`)
        "compute": "bf16" if read.bf16 else None,
        "freeze": ("qlora" if model.quantization_bit else "lora") if lora else None,
    }
    out |= {"rank": tuning.lora_rank, "lora_dropout": tuning.lora_dropout} if lora else {}
    return text, "sft.yaml" if form == "yaml" else "run.sh", out


def llama_factory_yaml(rng):
    return llama_factory(rng, "yaml")


def llama_factory_command(rng):
    return llama_factory(rng, "command")


def ms_swift(rng):
    from swift.arguments import SftArguments
    from transformers import HfArgumentParser

    drawn = Drawn(rng)
    drawn.keys.update(model=rng.choice(MODELS), dataset="a/b", max_length=rng.choice([128, 384]))
    training(drawn)
    drawn.maybe("tuner_type", ["lora", "full"], 0.7)
    drawn.maybe("gradient_checkpointing", [True, False])
    drawn.maybe("attn_impl", ["sdpa", "eager"], 0.3)
    drawn.maybe("torch_dtype", ["bfloat16", "float32"], 0.4)
    if drawn.keys.get("tuner_type", "lora") == "lora":
        drawn.maybe("lora_rank", [4, 32])
        drawn.maybe("lora_dropout", [0.0, 0.2])
        drawn.maybe("target_modules", [["all-linear"], ["q_proj", "k_proj"]], 0.4)
    drawn.without_effect([SftArguments], known_without_effect("ms_swift"))
    gpus = rng.choice([1, 2, 4])
    settings = rng.choice([f"NPROC_PER_NODE={gpus} ", f"export NPROC_PER_NODE={gpus}\n"])
    text = drawn.command("swift sft", settings)
    (read,) = HfArgumentParser(without_checks([SftArguments])).parse_args_into_dataclasses(args=words_of(text, "swift")[1:])
    lora = read.tuner_type == "lora"
    out = of_arguments(read) | {
        "model": read.model, "seq": read.max_length, "ckpt": read.gradient_checkpointing, "world": gpus,
        "attn": read.attn_impl, "freeze": "lora" if lora else None,
    }
    if out["accum"] is None:
        # `_init_gradient_accumulation_steps`
        out["accum"] = max(1, -(-16 // (read.per_device_train_batch_size * gpus)))
    return text, "run.sh", out | ({"rank": read.lora_rank, "lora_dropout": read.lora_dropout} if lora else {})


DRAWN = [transformers_command, trl_command, trl_yaml, llama_factory_yaml, llama_factory_command, ms_swift]


def said(program, folder, name):
    """The setup that the program reads, and what it leaves out; or why there is none."""
    command = [program, "estimate", "--launch", name, "--format", "json", "--ignore-not-simulated"]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if out.returncode not in (0, 3, 5):
        return None, out.stderr.strip()
    answer = json.loads(out.stdout)
    share = answer.get("parallel") or {}
    return answer["setup"] | {"model": answer["model"], "world": share.get("world", 1)}, [left.get("given") for left in answer["not_this_run"]]


def differs(theirs, ours, left_out):
    """What the program reads otherwise than the tool."""
    out = []
    for key, value in theirs.items():
        own = ours.get(key, 1 if key == "accum" else None)
        if value is None:
            continue
        if key == "ckpt":
            is_same = value == (ours.get("ckpt", "none") not in ("none", "vision"))
        elif key == "model":
            is_same = value.rsplit("/", 1)[-1].lower().removesuffix("-instruct") in own.lower() or own.lower() in value.lower()
        elif key == "compute":
            own = ours.get("precision")
            is_same = own.endswith(value) or own.startswith(value)
        elif key == "freeze" and value == "none":
            is_same = own in (None, "none")
        elif isinstance(value, float):
            is_same = abs((own or 0.0) - value) < 1e-9
        else:
            is_same = own == value
        if not is_same:
            out.append(f"{key}: {own!r}, not {value!r}")
    return out


def main():
    program, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 51
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    failed, compared = False, 0
    for number in range(count):
        draw = DRAWN[number % len(DRAWN)]
        text, name, theirs = draw(random.Random(f"{seed}/{number}"))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / name).write_text(text)
            ours, rest = said(program, folder, name)
        wrong = [f"no setup: {rest}"] if ours is None else differs(theirs, ours, rest)
        compared += ours is not None
        if wrong:
            failed = True
            print("DIFFERS", number, draw.__name__, "; ".join(wrong), "\n" + text, flush=True)
        else:
            print("read", number, draw.__name__, flush=True)
    print(f"compared {compared} of {count}")
    sys.exit(failed)


main()
