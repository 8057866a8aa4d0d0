"""Trains one step of each exported ms-swift file with its own `swift sft`, on the processor and a small random model.

usage: train_ms_swift.py FOLDER
The file is read by ms-swift's own parser as it was exported. What stands in SWITCHED comes after it, as on `swift sft`'s
command line, because a processor cannot do it or a test must not; nothing else is changed. Prints a line for each file that
trained; ends with 1 where one did not.
"""
import glob, json, os, sys, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
os.environ["USE_HF"] = "1"  # the hub that is offline here

import train_trl

# what a machine without a GPU, or a test, has to switch: (key, value, where the exported value is one of these)
SWITCHED = [
    ("use_cpu", "true", None),
    ("attn_impl", "sdpa", {"flash_attention_2"}),  # its kernels are CUDA's
    ("optim", "adamw_torch", train_trl.OF_BITSANDBYTES),
    ("use_liger_kernel", "false", {True}),  # Liger's kernels are CUDA's
    ("max_steps", "1", None),
    ("report_to", "none", None),
    ("save_steps", "1", None),
    ("split_dataset_ratio", "0", None),
    ("check_model", "false", None),  # asks ModelScope whether the model is its latest
]
# bitsandbytes' keys, which have no value that switches them off
DROPPED = ["quant_method", "quant_bits", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant"]


def train(path, plan, folder):
    import transformers
    import yaml
    from swift.cli.main import parse_yaml_args
    from swift.pipelines.train.sft import sft_main

    exported, best = yaml.safe_load(open(path)), plan["recommended"]["setup"]
    copy = os.path.join(folder, "exported.yaml")
    with open(path) as lines, open(copy, "w") as out:
        out.writelines(line for line in lines if line.split(":")[0] not in DROPPED)
    # ms-swift knows no GPT-2
    name, data = plan["model"].replace("gpt2", "llama"), os.path.join(folder, "own.jsonl")
    local = train_trl.save_small(name, folder)
    with open(data, "w") as out:
        for i in range(best["batch"] * best["accum"]):
            text = " ".join(f"w{(i + k) % 199}" for k in range(12))
            out.write(json.dumps({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}]}) + "\n")
    # an id says which prompt a model takes, a folder does not
    kind = ["--model_type", "llava1_5_hf", "--template", "llava1_5_hf"] if "-vl-" in name else ["--model_type", "llama", "--template", "dummy"]
    words = [copy, "--model", local, *kind, "--dataset", data, "--output_dir", os.path.join(folder, "out")]
    words += train_trl.options(SWITCHED, exported)
    parse_yaml_args(words)
    with train_trl.counted_steps(transformers) as losses:
        sft_main(words)
    (saved,) = glob.glob(os.path.join(folder, "out", "*", "checkpoint-1"))
    train_trl.check_step(losses, best, saved)


if __name__ == "__main__":
    train_trl.train_all(sys.argv[1], {"ms-swift": train})
