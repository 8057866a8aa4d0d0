"""Trains one step of each exported LLaMA-Factory file with LLaMA-Factory's own `run_exp`, on the processor and a small model.

usage: train_llama_factory.py FOLDER
The file is read by LLaMA-Factory's own parser as it was exported. What stands in SWITCHED comes after it, as on
`llamafactory-cli train`'s command line, because a processor cannot do it or a test must not; model, data and template are
named there too, as a person names them. Prints a line for each file that trained; ends with 1 where one did not.
"""
import json, os, sys, tempfile, traceback, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_VERSION_CHECK="1", TQDM_DISABLE="1")

import train_trl

# what a machine without a GPU, or a test, has to switch: (key, value, where the exported value is one of these)
SWITCHED = [
    ("use_cpu", "true", None),
    ("flash_attn", "sdpa", {"fa2"}),  # its kernels are CUDA's
    ("optim", "adamw_torch", {"adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit", "paged_adamw"}),  # bitsandbytes' are too
    ("quantization_bit", "null", {4}),  # likewise
    ("enable_liger_kernel", "false", {True}),  # likewise
    ("max_steps", "1", None),
    ("report_to", "none", None),
    ("save_strategy", "no", None),
]


def pretend_gpu():
    """What refuses bf16 where no GPU has it."""
    import transformers.training_args
    from llamafactory.hparams import parser

    transformers.training_args.is_torch_bf16_gpu_available = parser.is_torch_bf16_gpu_available = lambda: True


def train(path, plan, folder):
    import transformers
    import yaml
    from llamafactory.hparams import read_args
    from llamafactory.train.tuner import run_exp

    exported, best = yaml.safe_load(open(path)), plan["recommended"]["setup"]
    local = os.path.join(folder, "model")
    train_trl.small(plan["model"]).save_pretrained(local)
    train_trl.tokenizer().save_pretrained(local)
    json.dump({"own": {"file_name": "own.json"}}, open(os.path.join(folder, "dataset_info.json"), "w"))
    words = [" ".join(f"w{(i + k) % 199}" for k in range(12)) for i in range(best["batch"] * best["accum"])]
    json.dump([{"instruction": text, "input": "", "output": text} for text in words], open(os.path.join(folder, "own.json"), "w"))
    given = {"model_name_or_path": local, "dataset": "own", "dataset_dir": folder, "template": "default"}
    given["output_dir"] = os.path.join(folder, "out")
    for key, value, only in SWITCHED:
        if only is None or exported.get(key) in only:
            given[key] = value
    sys.argv = ["llamafactory-cli", path, *(f"{key}={value}" for key, value in given.items())]
    losses, step = [], transformers.Trainer.training_step

    def training_step(self, *args, **kwargs):
        loss = step(self, *args, **kwargs)
        losses.append(loss.item())
        return loss

    transformers.Trainer.training_step = training_step
    try:
        run_exp(read_args())
    finally:
        transformers.Trainer.training_step = step
    assert len(losses) == best["accum"] and all(loss > 0 for loss in losses), losses


def main():
    folder, failed = sys.argv[1], False
    train_trl.without_libraries()
    pretend_gpu()
    for name in sorted(os.listdir(folder)):
        if not name.startswith("llama-factory-"):
            continue
        plan = json.load(open(os.path.join(folder, name[14:].rsplit(".", 1)[0] + ".json")))
        if "-vl-" in plan["model"]:
            continue  # its templates want the processor of a published model
        try:
            with tempfile.TemporaryDirectory() as work:
                train(os.path.join(folder, name), plan, work)
            print("trained", name, flush=True)
        except (Exception, SystemExit):
            failed = True
            print("FAILED", name, traceback.format_exc()[-2500:], flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
