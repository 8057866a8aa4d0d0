"""Training scripts of public repositories, recorded unchanged: python3 scripts.py CHECKOUTS [NAME,...]

CHECKOUTS is a folder with a checkout of each repository named in COMMITS, as OWNER+NAME. Each script runs in a copy of
its own folder, under `python -m vramscope.record --steps 2`, with generated stand-ins for hub ids and datasets: a
folder whose relative path is the id is what transformers and datasets take before they ask the hub. Prints a table in
Markdown.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "src", "recorder"), HERE]

import stand_ins  # noqa: E402
from player import lines  # noqa: E402

DEADLINE_SECONDS = 600

# The commits at which the scripts were recorded.
COMMITS = {
    "pytorch/examples": "77f55b9",
    "karpathy/nanoGPT": "3adf61e",
    "karpathy/minGPT": "37baab7",
    "huggingface/trl": "f2cd577",
    "huggingface/peft": "5d602fd",
    "huggingface/accelerate": "16cb6eb",
    "huggingface/diffusers": "58eb52c",
    "huggingface/pytorch-image-models": "aa4b585",
}


@dataclass
class Script:
    """A script of a repository: the folder it runs in, its words, and what must lie there."""

    name: str
    repository: str
    folder: str
    words: str
    prepare: Callable[[], None] = lambda: None


def conversation(i: int) -> dict[str, object]:
    """A row for supervised training."""
    return {"messages": [{"role": "user", "content": stand_ins.text(8, i)}, answer(24, i)]}


def answer(words: int, i: int) -> dict[str, str]:
    """What an assistant says."""
    return {"role": "assistant", "content": stand_ins.text(words, i)}


def preference(i: int) -> dict[str, object]:
    """A row with a better and a worse answer."""
    asked = {"role": "user", "content": stand_ins.text(8, i)}
    return {"chosen": [asked, answer(24, i)], "rejected": [asked, answer(20, i + 1)]}


def graded(i: int) -> dict[str, object]:
    """A row with an answer that is good or not."""
    asked = {"role": "user", "content": stand_ins.text(8, i)}
    return {"prompt": [asked], "completion": [answer(20, i)], "label": i % 2 == 0}


def chat() -> None:
    """A model and conversations."""
    stand_ins.llama("meta-llama/Llama-3.2-1B")
    stand_ins.dataset("trl-lib/Capybara", conversation)


def preferences() -> None:
    """A model and pairs of answers."""
    stand_ins.llama("Qwen/Qwen2-0.5B-Instruct")
    stand_ins.dataset("trl-lib/ultrafeedback_binarized", preference)


def grades() -> None:
    """A model and graded answers."""
    stand_ins.llama("Qwen/Qwen2-0.5B-Instruct")
    stand_ins.dataset("trl-lib/kto-mix-14k", graded)


def peft_chat() -> None:
    """A model and conversations whose column and splits are named as peft's example wants."""
    stand_ins.llama("meta-llama/Llama-2-7b-hf")
    stand_ins.dataset("smangrul/ultrachat-10k-chatml", conversation)


TRL = "--output_dir out --per_device_train_batch_size 2 --report_to none --save_strategy no"

SCRIPTS = [
    Script("imagenet", "pytorch/examples", "imagenet", "main.py --dummy -a resnet50 -b 16 -j 2 --epochs 1"),
    Script("dcgan", "pytorch/examples", "dcgan", "main.py --dataset fake --accel --batchSize 16"),
    Script("mnist", "pytorch/examples", "mnist", "main.py", lambda: stand_ins.mnist("../data")),
    Script("vae", "pytorch/examples", "vae", "main.py", lambda: stand_ins.mnist("../data")),
    Script(
        "word_language_model",
        "pytorch/examples",
        "word_language_model",
        "main.py --accel --model Transformer --use-optimizer",
        lambda: stand_ins.corpus("data/wikitext-2"),
    ),
    Script(
        "nanoGPT",
        "karpathy/nanoGPT",
        ".",
        "train.py config/train_shakespeare_char.py --compile=False --eval_interval=100000 --eval_iters=1",
        lambda: stand_ins.characters("data/shakespeare_char"),
    ),
    Script("minGPT", "karpathy/minGPT", ".", "projects/adder/adder.py"),
    Script(
        "trl sft",
        "huggingface/trl",
        "trl/scripts",
        f"sft.py --model_name_or_path meta-llama/Llama-3.2-1B --dataset_name trl-lib/Capybara {TRL}",
        chat,
    ),
    Script(
        "trl sft lora",
        "huggingface/trl",
        "trl/scripts",
        f"sft.py --model_name_or_path meta-llama/Llama-3.2-1B --dataset_name trl-lib/Capybara {TRL} --use_peft "
        "--packing --dtype bfloat16",
        chat,
    ),
    Script(
        "trl dpo",
        "huggingface/trl",
        "trl/scripts",
        "dpo.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct --dataset_name trl-lib/ultrafeedback_binarized "
        f"{TRL} --use_peft",
        preferences,
    ),
    Script(
        "trl reward",
        "huggingface/trl",
        "examples/scripts",
        "reward_modeling.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct "
        f"--dataset_name trl-lib/ultrafeedback_binarized {TRL} --use_peft --lora_task_type SEQ_CLS",
        preferences,
    ),
    Script(
        "trl kto",
        "huggingface/trl",
        "trl/scripts",
        f"kto.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct --dataset_name trl-lib/kto-mix-14k {TRL}",
        grades,
    ),
    Script(
        "peft sft",
        "huggingface/peft",
        "examples/sft",
        "train.py --model_name_or_path meta-llama/Llama-2-7b-hf --dataset_name smangrul/ultrachat-10k-chatml "
        "--chat_template_format none --append_concat_token False --splits train,test --max_length 512 --bf16 True "
        "--output_dir out --per_device_train_batch_size 2 --gradient_accumulation_steps 2 "
        "--gradient_checkpointing True --use_reentrant False --dataset_text_field messages --use_peft_lora True "
        "--lora_r 8 --lora_alpha 16 --lora_dropout 0.1 --lora_target_modules all-linear --report_to none --max_steps 4",
        peft_chat,
    ),
    Script(
        "accelerate cv",
        "huggingface/accelerate",
        "examples",
        "cv_example.py --data_dir pets --mixed_precision bf16",
        lambda: stand_ins.images("pets", "{kind}_{i}.jpg", count=80),
    ),
    Script(
        "timm",
        "huggingface/pytorch-image-models",
        ".",
        "train.py --data-dir data --model vit_tiny_patch16_224 --num-classes 2 --batch-size 8 --amp --opt adamw "
        "--output out --epochs 1 --model-ema",
        lambda: (stand_ins.images("data/train", count=24), stand_ins.images("data/validation")),
    ),
    Script(
        "diffusers unconditional",
        "huggingface/diffusers",
        "examples/unconditional_image_generation",
        "train_unconditional.py --train_data_dir data --resolution 32 --train_batch_size 4 --num_epochs 1 "
        "--mixed_precision bf16 --save_images_epochs 1000 --save_model_epochs 1000 --output_dir out",
        lambda: stand_ins.images("data"),
    ),
]


def run(script: Script, checkouts: str) -> tuple[bool, str]:
    """Records one script; returns if it went well, and a row of the table or what went wrong."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as place:
        home = os.path.join(place, "checkout")
        source = os.path.join(checkouts, script.repository.replace("/", "+"), script.folder)
        shutil.copytree(source, home, ignore=shutil.ignore_patterns(".git"))
        out = os.path.join(place, "run.vram.gz")
        os.chdir(home)
        try:
            script.prepare()
        finally:
            os.chdir(before)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "vramscope.record", "--steps", "2", "-o", out, *script.words.split()],
            cwd=home,
            env={**os.environ, "PYTHONPATH": path(home), "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        seconds = time.monotonic() - began
        if done.returncode:
            return False, (done.stdout[-1500:] if "-v" in sys.argv else "") + done.stderr[-3500:]
        if keep := os.environ.get("KEEP"):
            shutil.copy(out, os.path.join(keep, script.name.replace(" ", "_") + ".vram.gz"))
        *_, end = lines(out)
        where = f"{script.repository}@{COMMITS[script.repository]}"
        words = f"`{script.folder}/{script.words}`".replace("./", "")
        return True, f"| {where} | {words} | {end['steps']} | {end['ops']} | {seconds:.0f} |"


def path(home: str) -> str:
    """Where Python looks: the recorder, then the checkout's own packages."""
    return os.pathsep.join([os.path.join(ROOT, "src", "recorder"), home, os.environ.get("PYTHONPATH", "")])


def main() -> int:
    """Records all scripts or those that are named."""
    checkouts = sys.argv[1]
    wanted = [w for w in sys.argv[2:] if w != "-v"]
    failed = 0
    print("| repository | script | steps | operations | seconds |\n| --- | --- | --- | --- | --- |", flush=True)
    for script in SCRIPTS:
        if wanted and script.name not in wanted[0].split(","):
            continue
        try:
            good, said = run(script, checkouts)
        except (OSError, subprocess.TimeoutExpired) as e:
            good, said = False, repr(e)
        failed += not good
        print(said if good else f"FAILED {script.name}: {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
