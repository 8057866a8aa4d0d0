"""Trains one step of each exported LLaMA-Factory file with its own `llamafactory-cli train`, on the processor and a small
random model.

usage: train_llama_factory.py FOLDER
The file is read by LLaMA-Factory's own parser as it was exported. What stands in SWITCHED comes after it, as on its command
line, because a processor cannot do it or a test must not; nothing else is changed. Its packages are those of its own
requirements (llama-factory/), since it refuses newer ones. Prints a line for each file that trained; ends with 1 where one
did not.
"""
import json, os, sys, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
# its requirements name pages to show and to serve with, which training imports nothing of
os.environ["DISABLE_VERSION_CHECK"] = "1"
sys.path.insert(0, os.path.join(sys.prefix, "llama-factory"))

import train_trl

# what a machine without a GPU, or a test, has to switch: (key, value, where the exported value is one of these)
SWITCHED = [
    ("use_cpu", "true", None),
    ("flash_attn", "sdpa", {"fa2"}),  # its kernels are CUDA's
    ("optim", "adamw_torch", train_trl.OF_BITSANDBYTES),
    ("quantization_bit", "null", {4}),  # bitsandbytes' kernels are CUDA's
    ("enable_liger_kernel", "false", {True}),  # Liger's kernels are CUDA's
    ("max_steps", "1", None),
    ("report_to", "none", None),
    ("save_strategy", "'no'", None),  # in quotes: YAML takes a plain no for false
]


def train(path, plan, folder):
    import transformers
    import yaml
    from llamafactory.train.tuner import run_exp
    from llamafactory.hparams import parser, read_args

    # it asks CUDA alone; a processor computes in bf16 too
    parser.is_torch_bf16_gpu_available = lambda: True
    exported, best = yaml.safe_load(open(path)), plan["recommended"]["setup"]
    local = train_trl.save_small(plan["model"], folder)
    data = os.path.join(folder, "data")
    os.makedirs(data)
    with open(os.path.join(data, "own.jsonl"), "w") as out:
        for i in range(best["batch"] * best["accum"]):
            text = " ".join(f"w{(i + k) % 199}" for k in range(12))
            out.write(json.dumps({"instruction": text, "input": "", "output": text}) + "\n")
    with open(os.path.join(data, "dataset_info.json"), "w") as out:
        json.dump({"own": {"file_name": "own.jsonl"}}, out)
    words = {"model_name_or_path": local, "dataset": "own", "dataset_dir": data, "template": "default", "output_dir": os.path.join(folder, "out")}
    words.update(train_trl.switched(SWITCHED, exported))
    sys.argv = ["llamafactory-cli", path, *(f"{key}={value}" for key, value in words.items())]
    with train_trl.counted_steps(transformers) as losses:
        run_exp(read_args())
    train_trl.check_step(losses, best, os.path.join(folder, "out"))


if __name__ == "__main__":
    train_trl.train_all(sys.argv[1], {"llama-factory": train})
