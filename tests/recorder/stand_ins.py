"""What stands in for hub ids and datasets where there is no network: small folders of the same form, generated."""

from __future__ import annotations

import json
import os
import pickle
import struct
from typing import Any

WORDS = [f"w{i}" for i in range(500)]


def text(words: int, first: int = 0) -> str:
    """So many words of the vocabulary."""
    return " ".join(WORDS[(first + i) % len(WORDS)] for i in range(words))


def tokenizer(folder: str) -> int:
    """A tokenizer with a token for each word; returns the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<s>", "</s>", "<unk>", "user", "assistant", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
    )
    made.chat_template = (
        "{% for m in messages %}{{ m['role'] + ' ' + m['content'] + ' </s> ' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant {% endif %}"
    )
    made.save_pretrained(folder)
    return len(names)


def model(folder: str, kind: str, **sizes: Any) -> None:
    """A folder with config.json and a tokenizer, no weights: what `from_pretrained` of a hub id stands for."""
    from transformers import AutoConfig

    vocabulary = tokenizer(folder)
    config = AutoConfig.for_model(kind, vocab_size=vocabulary, pad_token_id=0, bos_token_id=1, eos_token_id=2, **sizes)
    config.save_pretrained(folder)


def llama(folder: str) -> None:
    """A small Llama."""
    sizes = dict(hidden_size=256, intermediate_size=704, num_hidden_layers=2, num_attention_heads=4)
    model(folder, "llama", num_key_value_heads=2, architectures=["LlamaForCausalLM"], **sizes)


def gpt2(folder: str) -> None:
    """A small GPT-2."""
    model(folder, "gpt2", n_embd=256, n_layer=2, n_head=4, architectures=["GPT2LMHeadModel"])


def bert(folder: str) -> None:
    """A small BERT."""
    sizes = dict(hidden_size=256, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=4)
    model(folder, "bert", architectures=["BertForMaskedLM"], **sizes)


def rows(path: str, made: list[dict[str, Any]]) -> None:
    """A dataset as JSON lines."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in made)


def dataset(folder: str, row: Any, count: int = 64, splits: tuple[str, ...] = ("train", "test")) -> None:
    """A dataset folder with `row(i)` in each split."""
    for split in splits:
        rows(os.path.join(folder, f"{split}.jsonl"), [row(i) for i in range(count)])


def mnist(folder: str) -> None:
    """The files of MNIST, 256 digits of noise each."""
    raw = os.path.join(folder, "MNIST", "raw")
    os.makedirs(raw, exist_ok=True)
    for split in ("train", "t10k"):
        with open(os.path.join(raw, f"{split}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, 256, 28, 28) + os.urandom(256 * 28 * 28))
        with open(os.path.join(raw, f"{split}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 2049, 256) + bytes(i % 10 for i in range(256)))


def images(folder: str, name: str = "{kind}/{i}.jpg", kinds: tuple[str, ...] = ("cat", "dog"), count: int = 16) -> None:
    """Small JPEG files, `count` of each kind."""
    from PIL import Image

    for k, kind in enumerate(kinds):
        for i in range(count):
            path = os.path.join(folder, name.format(kind=kind, i=i))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Image.new("RGB", (96, 80), (37 * i % 256, 80 * k, 99)).save(path)


def characters(folder: str, vocabulary: int = 65, length: int = 20000) -> None:
    """nanoGPT's `train.bin`, `val.bin` and `meta.pkl`."""
    os.makedirs(folder, exist_ok=True)
    ids = struct.pack(f"<{length}H", *(i * 7919 % vocabulary for i in range(length)))
    for split in ("train", "val"):
        with open(os.path.join(folder, f"{split}.bin"), "wb") as file:
            file.write(ids)
    with open(os.path.join(folder, "meta.pkl"), "wb") as file:
        pickle.dump({"vocab_size": vocabulary, "itos": {}, "stoi": {}}, file)


def corpus(folder: str) -> None:
    """Texts named as wikitext-2's."""
    os.makedirs(folder, exist_ok=True)
    for split in ("train", "valid", "test"):
        with open(os.path.join(folder, f"{split}.txt"), "w", encoding="utf-8") as file:
            file.writelines(text(20, i) + "\n" for i in range(200))
