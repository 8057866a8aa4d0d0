"""Trains one step of each exported TrainingArguments file, and of each Lightning file, on the processor and a small model.

usage: train_trainer.py FOLDER
Files of the form hf-yaml and hf-python become TrainingArguments by transformers' own parser, or by running the Python that
was exported; `Trainer` then takes a step with them on a small random model of the plan's kind. Lightning's become a Trainer
by its own command line. What stands in SWITCHED is set afterwards, because a processor cannot do it or a test must not.
Prints a line for each file that trained; ends with 1 where one did not.
"""
import os, sys, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")

import train_trl

# what a machine without a GPU, or a test, has to switch: (key, value, where the exported value is one of these)
SWITCHED = [
    ("use_cpu", True, None),
    ("max_steps", 1, None),
    ("report_to", "none", None),
    ("save_strategy", "no", None),
    ("optim", "adamw_torch", train_trl.OF_BITSANDBYTES),
    ("use_liger_kernel", False, {True}),  # Liger's kernels are CUDA's
]


def exported(path):
    """Arguments of a file as keywords, and those of the model."""
    if path.endswith(".py"):
        # load.py runs the Python as it was exported; here its words are taken before they become arguments
        taken, line = {}, "from transformers import TrainingArguments\n"
        text = open(path).read()
        assert line in text
        names = {"TrainingArguments": lambda **words: taken.update(words)}
        exec(compile(text.replace(line, "\n"), path, "exec"), names)
        return taken, names
    import yaml

    return yaml.safe_load(open(path)), {}


def rows(plan):
    """Samples of one step: text of the plan's kind."""
    best = plan["recommended"]["setup"]
    for i in range(best["batch"] * best["accum"]):
        ids = [3 + (i + k) % 190 for k in range(16)]
        yield {"input_ids": ids, "labels": ids}


def trainer(path, plan, folder):
    import transformers as t

    words, names = exported(path)
    best = plan["recommended"]["setup"]
    words.update(train_trl.switched(SWITCHED, words))
    args = t.TrainingArguments(**{**words, "output_dir": folder})
    assert args.per_device_train_batch_size == best["batch"] and args.gradient_accumulation_steps == best["accum"]
    model = train_trl.small(plan["model"])
    if "lora" in names:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(**names["lora"]))
    before = [p.detach().clone() for p in model.parameters() if p.requires_grad]
    with train_trl.counted_steps(t) as losses:
        t.Trainer(model=model, args=args, train_dataset=list(rows(plan)), data_collator=t.default_data_collator).train()
    assert len(losses) == best["accum"] and all(loss > 0 for loss in losses), losses
    after = [p.detach() for p in model.parameters() if p.requires_grad]
    # The learning rate of the first step of a warmup is zero: gradients were there if the optimizer has states.
    assert len(before) == len(after) > 0


def lightning(path, plan, folder):
    from pytorch_lightning.cli import LightningCLI
    from pytorch_lightning.demos.boring_classes import BoringModel

    args = ["--config", path, "--trainer.accelerator=cpu", "--trainer.devices=1", "--trainer.logger=false"]
    args += ["--trainer.strategy=auto", "--trainer.max_steps=1", "--trainer.enable_checkpointing=false"]
    args += ["--trainer.limit_val_batches=0", f"--trainer.default_root_dir={folder}", "--trainer.enable_progress_bar=false"]
    if plan["recommended"]["setup"]["precision"] == "amp-fp16":
        args.append("--trainer.precision=32-true")  # a processor has no fp16 with a scaler
    cli = LightningCLI(BoringModel, run=False, args=args, save_config_callback=None)
    cli.trainer.fit(cli.model)
    assert cli.trainer.global_step == 1, cli.trainer.global_step


FORMS = {"hf-yaml": trainer, "hf-python": trainer, "lightning": lightning}


if __name__ == "__main__":
    train_trl.train_all(sys.argv[1], FORMS)
