"""Reads exported plans with the tools that they are for.

usage: load.py FOLDER
Each file of the folder is named FORM-NAME, after the form of `vramscope plan --export`; NAME.json beside them is the
plan itself. What a tool read is held against the plan. Nothing here has a GPU: that one is there is the only thing
pretended. Prints a line for each file that was read; ends with 1 where one was not.
"""
import json, os, sys, traceback, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_VERSION_CHECK="1")


def pretend_gpu():
    """transformers refuses bf16 where no GPU has it."""
    import transformers.training_args as module

    module.is_torch_bf16_gpu_available = lambda: True


def arguments(args, plan):
    best = plan["recommended"]["setup"]
    assert args.per_device_train_batch_size == best["batch"], args.per_device_train_batch_size
    assert args.gradient_accumulation_steps == best["accum"]
    assert args.bf16 == (best["precision"] in ("amp-bf16", "bf16-amp")) and args.fp16 == (best["precision"] == "amp-fp16")
    assert args.max_grad_norm == (1.0 if best["clip"] else 0.0)
    names = {"adamw": "adamw_torch", "adamw_fused": "adamw_torch_fused", "sgd": "sgd", "adafactor": "adafactor", "adamw_8bit": "adamw_8bit"}
    optim = getattr(args.optim, "value", args.optim)
    assert optim in (names[best["optim"]], {"adamw_8bit": "adamw_bnb_8bit"}.get(best["optim"])), optim


def hf_yaml(path, plan):
    from transformers import HfArgumentParser, TrainingArguments

    pretend_gpu()
    (args,) = HfArgumentParser(TrainingArguments).parse_yaml_file(path)
    arguments(args, plan)
    assert args.gradient_checkpointing == (plan["recommended"]["setup"]["ckpt"] == "full")


def hf_python(path, plan):
    pretend_gpu()
    names = {}
    exec(compile(open(path).read(), path, "exec"), names)
    arguments(names["args"], plan)
    assert names["model_kwargs"]["attn_implementation"] == plan["recommended"]["setup"]["attn"]
    parts = (plan["recommended"].get("parallel") or {}).get("strategy") == "tensor"
    assert ("distributed_config" in names["model_kwargs"]) == parts
    if parts:
        assert names["model_kwargs"]["distributed_config"].tp_size == plan["gpus"]
    if "lora" in names:
        from peft import LoraConfig

        assert LoraConfig(**names["lora"]).r == plan["recommended"]["setup"]["rank"]
    if "quantization" in names:
        from transformers import BitsAndBytesConfig

        assert BitsAndBytesConfig(**names["quantization"]).load_in_4bit


def accelerate(path, plan):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(path)
    assert config.num_processes == plan["gpus"]
    known = {action.dest for action in launch_command_parser()._actions}
    unknown = [key for key in (config.fsdp_config or {}) if key not in known]
    assert not unknown, unknown
    return config


def fsdp(path, plan):
    config = accelerate(path, plan)
    assert "FSDP" in str(config.distributed_type) and config.fsdp_config["fsdp_version"] == 2


def deepspeed(path, plan):
    from deepspeed.runtime import config as module

    # the GPUs that the plan is for
    module.dist.get_rank = lambda *_: 0
    module.dist.get_world_size = lambda *_: plan["gpus"]
    config, best = module.DeepSpeedConfig(path), plan["recommended"]["setup"]
    assert config.train_micro_batch_size_per_gpu == best["batch"]
    assert config.gradient_accumulation_steps == best["accum"]
    assert config.train_batch_size == best["batch"] * best["accum"] * plan["gpus"]
    assert config.gradient_clipping == (1.0 if best["clip"] else 0.0)


def lightning(path, plan):
    from pytorch_lightning.cli import LightningCLI
    from pytorch_lightning.demos.boring_classes import BoringModel

    # the one machine that has no GPU runs the same trainer on its processor
    args = ["--config", path, "--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.logger=false", "--trainer.strategy=auto"]
    trainer = LightningCLI(BoringModel, run=False, args=args, save_config_callback=None).trainer
    best = plan["recommended"]["setup"]
    assert trainer.accumulate_grad_batches == best["accum"]
    precision = {"fp32": "32-true", "bf16": "bf16-true", "bf16-amp": "bf16-mixed", "amp-bf16": "bf16-mixed", "amp-fp16": "16-mixed"}
    assert trainer.precision == precision[best["precision"]], trainer.precision


def trl(path, plan):
    from trl import ModelConfig, SFTConfig, TrlParser

    pretend_gpu()
    args, model = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config(["--config", path])
    arguments(args, plan)
    best = plan["recommended"]["setup"]
    assert args.max_length == best["seq"] and model.attn_implementation == best["attn"]
    assert model.use_peft == (best["freeze"] in ("lora", "qlora")) and model.load_in_4bit == (best["freeze"] == "qlora")


def llama_factory(path, plan):
    from llamafactory.hparams import get_train_args, read_args
    from llamafactory.hparams import parser

    pretend_gpu()
    parser.is_torch_bf16_gpu_available = lambda: True
    # a person names the data beside the file, as here
    sys.argv = ["llamafactory-cli", path, "dataset=identity", "template=default"]
    model, _, args, tuning, _ = get_train_args(read_args())
    best = plan["recommended"]["setup"]
    assert args.per_device_train_batch_size == best["batch"] and args.gradient_accumulation_steps == best["accum"]
    assert tuning.finetuning_type == ("lora" if best["freeze"] in ("lora", "qlora") else "full")
    assert (model.quantization_bit == 4) == (best["freeze"] == "qlora")


def ms_swift(path, plan):
    import yaml
    from swift.arguments import SftArguments
    from transformers import HfArgumentParser

    # what swift makes of the arguments afterwards wants the model itself; its parser takes names and types
    entries, words = yaml.safe_load(open(path)), ["--dataset", "own.jsonl"]
    for key, value in entries.items():
        words += [f"--{key}", *([str(v) for v in value] if isinstance(value, list) else [str(value)])]
    args, unknown = HfArgumentParser(SftArguments).parse_known_args(words)
    assert not unknown, unknown
    best = plan["recommended"]["setup"]
    assert args.per_device_train_batch_size == best["batch"] and args.gradient_accumulation_steps == best["accum"]
    assert args.max_length == best["seq"]


READERS = {"hf-yaml": hf_yaml, "hf-python": hf_python, "accelerate": accelerate, "fsdp": fsdp, "deepspeed": deepspeed,
           "lightning": lightning, "trl": trl, "llama-factory": llama_factory, "ms-swift": ms_swift}


def main():
    folder, failed = sys.argv[1], False
    for name in sorted(os.listdir(folder)):
        form = next((form for form in READERS if name.startswith(form + "-")), None)
        if not form:
            continue
        plan = json.load(open(os.path.join(folder, name[len(form) + 1 :].rsplit(".", 1)[0] + ".json")))
        try:
            READERS[form](os.path.join(folder, name), plan)
            print("read", name, flush=True)
        except (Exception, SystemExit):
            failed = True
            print("FAILED", name, traceback.format_exc()[-1500:], flush=True)
    sys.exit(failed)


main()
