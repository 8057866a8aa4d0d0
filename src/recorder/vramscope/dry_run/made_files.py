"""Tokenizers and processors that are not there, made of a model's configuration: their sizes and ids, not the words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

# Files of which one makes a tokenizer, or a processor of images.
TOKENIZER = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
    "tokenizer_config.json",
    "sentencepiece.bpe.model",
    "tiktoken.model",
    "qwen.tiktoken",
)
PROCESSOR = ("preprocessor_config.json", "processor_config.json", "image_processor_config.json")

# Where a piece of text ends, about as often as in a trained vocabulary: English words of up to eight letters, numbers
# of three digits, two characters of scripts without spaces.
PIECES = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]{1,2}| ?\p{L}{1,8}| ?\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]{1,3}|\s*\n+|\s+"
)

QWEN = """endoftext im_start im_end object_ref_start object_ref_end box_start box_end quad_start quad_end vision_start
    vision_end vision_pad image_pad video_pad""".split()

CHATML = """{% for m in messages %}<|im_start|>{{ m['role'] }}
{% if m['role'] == 'assistant' %}{% generation %}{{ text(m) }}<|im_end|>
{% endgeneration %}{% else %}{{ text(m) }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

GEMMA = """{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}
{{ text(m) }}<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}"""

# What a message says: a string, or parts of which some are images.
TEXT = (
    "{%- macro text(m) -%}{%- if m['content'] is string -%}{{ m['content'] }}{%- else -%}{%- for c in m['content'] -%}"
    "{%- if 'image' in c or c['type'] == 'image' -%}IMAGE{%- elif c['type'] == 'video' -%}VIDEO{%- else -%}"
    "{{ c['text'] }}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endmacro -%}"
)


class Specials:
    """Special tokens by their ids, what processors call them, and how a prompt shows an image."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Reads the ids of a configuration, by the names that the model's kin give their tokens."""
        self.config = config
        self.kind = str(config.get("model_type", ""))
        self.text: dict[str, Any] = next(
            (config[k] for k in ("text_config", "llm_config", "language_config") if isinstance(config.get(k), dict)), {}
        )
        self.at: dict[str, int] = {}
        self.called: dict[str, str] = {}
        self.image, self.video = "<image>", "<video>"
        self.size = int(self.find("vocab_size") or 32000)
        self.of_kin()
        self.rest()

    def find(self, *keys: str) -> Any:
        """The first of these keys that the configuration, or its text part, has."""
        for part in (self.config, self.text):
            for key in keys:
                if part.get(key) is not None:
                    return part[key]
        return None

    def id_of(self, role: str) -> int | None:
        """The id of the token in a role, such as `image` or `eos`."""
        found = self.find(f"{role}_token_id", f"{role}_token_index")
        if isinstance(found, list):
            found = found[0] if found else None
        return int(found) if isinstance(found, int) and found >= 0 else None

    def put(self, token: str, number: int | None, *names: str) -> None:
        """Places a token, which processors ask for by these names."""
        if number is not None and token not in self.at and number not in self.at.values():
            self.at[token] = number
        if token in self.at:
            self.called.update(dict.fromkeys(names, token))

    def of_kin(self) -> None:
        """Tokens whose words a library has in its code, or whose ids do not stand in a configuration."""
        kind = self.kind
        image = self.id_of("image")
        if kind.startswith("internvl"):
            place = image if image is not None else 151667
            for token, number, name in (
                ("<IMG_CONTEXT>", place, "context_image_token"),
                ("<img>", place - 2, "start_image_token"),
                ("</img>", place - 1, "end_image_token"),
            ):
                self.put(token, number, name)
            self.qwen()
            self.put("<video>", next(self.free()), "video_token")
            self.image = "<IMG_CONTEXT>\n"
        elif kind.startswith(("qwen", "video_llama", "colqwen", "exaone4_5")):
            for role, token in (
                ("image", "image_pad"),
                ("video", "video_pad"),
                ("vision_start", "vision_start"),
                ("vision_end", "vision_end"),
            ):
                self.put(f"<|{token}|>", self.id_of(role), *([f"{role}_token"] if role in ("image", "video") else []))
            self.qwen()
            self.image, self.video = (f"<|vision_start|><|{n}_pad|><|vision_end|>" for n in ("image", "video"))
        elif kind.startswith(("gemma", "paligemma")):
            for token, number in {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}.items():
                self.put(token, number)
            self.put("<start_of_turn>", 105)
            self.put("<end_of_turn>", 106)
            if kind.startswith("paligemma"):
                self.put("<image>", image, "image_token")
            else:
                self.put("<start_of_image>", self.id_of("boi"), "boi_token")
                self.put("<end_of_image>", self.id_of("eoi"), "eoi_token")
                self.put("<image_soft_token>", image, "image_token")
                self.image = "<start_of_image>" if self.id_of("boi") is not None else "<image_soft_token>"
        elif kind in ("idefics3", "smolvlm", "idefics2"):
            self.put("<image>", image, "image_token")
            self.put("<end_of_utterance>", self.id_of("eos"), "end_of_utterance_token")
        elif kind.startswith(("glm4v", "glm46v")):
            for role, token in {
                "image_start": "<|begin_of_image|>",
                "image_end": "<|end_of_image|>",
                "video_start": "<|begin_of_video|>",
                "video_end": "<|end_of_video|>",
                "image": "<|image|>",
                "video": "<|video|>",
            }.items():
                self.put(token, self.id_of(role), f"{role}_token")
            self.image, self.video = (f"<|begin_of_{n}|><|{n}|><|end_of_{n}|>" for n in ("image", "video"))
        elif kind in ("mistral3", "pixtral", "lighton_ocr"):
            for token, number, name in (
                ("[IMG]", image, "image"),
                ("[IMG_BREAK]", 12, "image_break"),
                ("[IMG_END]", 13, "image_end"),
            ):
                self.put(token, number, f"{name}_token")
            self.image = "[IMG]"
        elif kind.startswith("mllama"):
            self.put("<|image|>", image, "image_token")
            self.image = "<|image|>"

    def qwen(self) -> None:
        """Tokens of Qwen's vocabulary, which follow each other; that which ends a turn is the configuration's."""
        eos = self.id_of("eos")
        base = eos - 2 if eos is not None and eos > 2 else max(0, min(151643, self.size - len(QWEN) - 1))
        for i, name in enumerate(QWEN):
            self.put(f"<|{name}|>", base + i)

    def free(self) -> Iterator[int]:
        """Ids that no special token has, the last first."""
        return (i for i in range(self.size - 1, 0, -1) if i not in set(self.at.values()))

    def rest(self) -> None:
        """Tokens in roles that the configuration names, and those that every prompt here needs."""
        for role in ("image", "video", "audio", "image_start", "image_end", "boi", "eoi"):
            if f"{role}_token" not in self.called and self.id_of(role) is not None:
                number = self.id_of(role)
                known = next((t for t, n in self.at.items() if n == number), None)
                self.put(known or f"<{role}>", number, f"{role}_token")
        for role in ("bos", "eos", "pad", "unk"):
            number = self.id_of(role)
            known = next((t for t, n in self.at.items() if n == number), None)
            if known is None and number is not None:
                self.put(f"<{role}>", number)
        named = ["<|im_start|>", "<|im_end|>", "<unk>"]
        if self.kind in ("idefics3", "smolvlm", "idefics2"):
            named += ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
            named += [f"<row_{r}_col_{c}>" for r in range(1, 7) for c in range(1, 7)]
        for token in named:
            if token not in self.at:
                self.put(token, next(self.free()))

    def role(self, role: str) -> str | None:
        """The word of a role's token."""
        number = self.id_of(role)
        found = next((t for t, n in self.at.items() if n == number), None)
        if found is None and role == "eos":
            return "<|im_end|>"
        return (found or self.role("eos")) if role == "pad" else found


def tokenizer(config: dict[str, Any]) -> dict[str, str]:
    """Files of a tokenizer with this model's vocabulary size and special tokens; each piece of text is one token."""
    specials = Specials(config)
    size = max(specials.size, max(specials.at.values(), default=0) + 1)
    words = {number: token for token, number in specials.at.items()}
    vocabulary = {words.get(i, f"~{i}~"): i for i in range(size)}
    added = [
        dict(id=n, content=t, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
        for t, n in sorted(specials.at.items(), key=lambda x: x[1])
    ]
    first = (
        specials.role("bos")
        if config.get("model_type", "").startswith(("gemma", "llama", "llava", "mistral", "paligemma"))
        else None
    )
    processor = None
    if first is not None:
        single = [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
        special = {first: {"id": first, "ids": [specials.at[first]], "tokens": [first]}}
        pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
        processor = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": PIECES}, "behavior": "Isolated", "invert": False},
        "post_processor": processor,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    # Without one no library cuts at the model's own length; the configuration's may be far longer than a sample.
    length = specials.find("max_position_embeddings", "n_positions") or 1 << 20
    roles = {f"{r}_token": specials.role(r) for r in ("bos", "eos", "pad", "unk") if specials.role(r)}
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": length,
        "extra_special_tokens": specials.called,
        **roles,
    }
    # The older place of what a processor asks for by name.
    told.update(specials.called)
    text = TEXT.replace("IMAGE", specials.image).replace("VIDEO", specials.video)
    template = text + (GEMMA if config.get("model_type", "").startswith("gemma") else CHATML)
    return {
        "tokenizer.json": json.dumps(made),
        "tokenizer_config.json": json.dumps(told),
        "chat_template.jinja": template,
    }


def processor(config: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Files of the processor of images that transformers has for this model, with its own defaults; and its class."""
    from transformers.models.auto import image_processing_auto, processing_auto

    kind = config.get("model_type", "")
    vision = config.get("vision_config") if isinstance(config.get("vision_config"), dict) else {}
    names = image_processing_auto.IMAGE_PROCESSOR_MAPPING_NAMES
    named = names.get(kind) or names.get(vision.get("model_type", ""))
    if isinstance(named, dict):
        named = named.get("pil") or next(iter(named.values()))
    if isinstance(named, (list, tuple)):
        named = next((n for n in named if n), None)
    if not named:
        return {}, ""
    named = str(named).removesuffix("Fast").removesuffix("Pil")
    told: dict[str, Any] = {"image_processor_type": named}
    for ours, key in (
        ("patch_size", "patch_size"),
        ("merge_size", "spatial_merge_size"),
        ("temporal_patch_size", "temporal_patch_size"),
    ):
        if kind.startswith(("qwen2", "qwen3", "glm4v", "glm46v", "video_llama")) and isinstance(vision.get(key), int):
            told[ours] = vision[key]
    size = vision.get("image_size")
    size = size[0] if isinstance(size, list) and size else size
    if kind.startswith(("gemma3", "paligemma", "internvl", "aya_vision")) and isinstance(size, int):
        told["size"] = {"height": size, "width": size}
        if kind.startswith("paligemma"):
            told["image_seq_length"] = (
                vision.get("num_image_tokens") or config.get("text_config", {}).get("num_image_tokens") or 256
            )
    elif kind in ("idefics3", "smolvlm") and isinstance(size, int):
        # An image is cut into squares of what the tower takes, of at most four a side, as in transformers' defaults
        # (364 and four times 364) and in the published files of towers of 384 and 512.
        told |= {"max_image_size": {"longest_edge": size}, "size": {"longest_edge": 4 * size}}
    elif kind.startswith("llava") and isinstance(size, int) and "clip" in str(vision.get("model_type", "clip")):
        told |= {"size": {"shortest_edge": size}, "crop_size": {"height": size, "width": size}}
    whole = processing_auto.PROCESSOR_MAPPING_NAMES.get(kind)
    files = {"preprocessor_config.json": json.dumps(told)}
    if whole:
        files["processor_config.json"] = json.dumps({"processor_class": whole, **options(config, vision, size)})
    return files, named


def options(config: dict[str, Any], vision: dict[str, Any], size: Any) -> dict[str, Any]:
    """Numbers that a processor needs beside its parts, from the configuration."""
    kind, patch = config.get("model_type", ""), vision.get("patch_size")
    patch = patch[0] if isinstance(patch, list) and patch else patch
    if kind.startswith(("llava", "vipllava", "mistral3", "pixtral")):
        told = {"patch_size": patch}
        if kind.startswith(("llava", "vipllava")):
            told["vision_feature_select_strategy"] = config.get("vision_feature_select_strategy", "default")
            told["num_additional_image_tokens"] = 1 if "clip" in str(vision.get("model_type", "clip")) else 0
        if kind == "mistral3":
            told["spatial_merge_size"] = config.get("spatial_merge_size", 2)
        return told
    if kind.startswith(("gemma3", "paligemma")):
        return {"image_seq_length": config.get("mm_tokens_per_image") or vision.get("num_image_tokens") or 256}
    if kind.startswith("internvl") and isinstance(patch, int) and isinstance(size, int):
        return {
            "image_seq_length": config.get("image_seq_length")
            or int((size // patch) ** 2 * config.get("downsample_ratio", 0.5) ** 2)
        }
    if kind in ("idefics3", "smolvlm") and isinstance(patch, int) and isinstance(size, int):
        return {"image_seq_len": int((size // patch) ** 2 / config.get("scale_factor", 2) ** 2)}
    return {}


def missing(folder: str) -> list[str]:
    """Which of tokenizer and processor a model's folder lacks."""
    config = read(folder)
    if config is None:
        return []
    lacking = []
    if not any(os.path.exists(os.path.join(folder, name)) for name in TOKENIZER):
        lacking.append("tokenizer")
    takes_images = (
        any(isinstance(config.get(k), dict) for k in ("vision_config", "vision_tower_config"))
        or "vision_tower" in config
    )
    if takes_images and not any(os.path.exists(os.path.join(folder, name)) for name in PROCESSOR):
        lacking.append("processor")
    return lacking


def whole(folder: str) -> dict[str, Any]:
    """The configuration of a model in a folder, with what its class leaves out of the file."""
    config = read(folder) or {}
    try:
        from transformers import AutoConfig

        return {**AutoConfig.from_pretrained(folder).to_dict(), "model_type": config.get("model_type", "")}
    except Exception:
        # A class that this transformers does not have: what the file says must do.
        return config


def read(folder: str) -> dict[str, Any] | None:
    """The configuration of a model in a folder, if it is one of transformers'."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError):
        return None
    return config if isinstance(config, dict) and config.get("model_type") else None
