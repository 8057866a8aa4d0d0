"""Samples that are made up: so many tokens, images, labels, in the form that a tool asks for."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from vramscope.dry_run.commands import Program
from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError
from vramscope.record.patches import Patches

FORM = "made-up:tokens=2048,images=1x1280x720,labels=0.3"
# Samples where nobody says how many: enough for a few steps of many ranks that accumulate.
SAMPLES = 128
# A word that is one token of every vocabulary in use.
WORD = " the"
MOST_TOKENS = 10_000_000
MOST_SIDE = 32_768


@dataclass
class Sample:
    """One sample: text tokens, sizes of images in pixels (width, height), share of the text that is the answer."""

    tokens: int = 512
    images: list[tuple[int, int]] = field(default_factory=list)
    labels: float = 0.5


@dataclass
class Data:
    """Made-up samples, in order, over and over; `columns` are those that a script of its own asks for."""

    samples: list[Sample]
    count: int
    columns: list[str]
    said: str

    @property
    def is_uniform(self) -> bool:
        """True if every sample is like the first."""
        return all(sample == self.samples[0] for sample in self.samples)


def read(text: str) -> Data:
    """Reads `made-up:tokens=2048,images=2x1280x720,labels=0.3,samples=128` or `made-up:lengths=FILE`."""
    name, _, rest = text.partition(":")
    if name != "made-up":
        raise RecordingError(f'--data: "{text}" was given; it takes made-up samples, such as {FORM}')
    base, count, columns, lengths = Sample(), 0, [], None
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        try:
            if key == "tokens":
                base.tokens = whole(value, 2, MOST_TOKENS)
            elif key == "images":
                base.images = images(value)
            elif key == "labels":
                base.labels = float(value)
                if not 0 < base.labels <= 1:
                    raise ValueError("a share between 0 and 1")
            elif key == "samples":
                count = whole(value, 1, 10_000_000)
            elif key == "columns":
                columns = [c for c in value.split("+") if c]
            elif key == "lengths":
                lengths = value
            else:
                raise RecordingError(
                    f'--data: there is no "{key}"; tokens, images, labels, samples, columns and lengths are known, '
                    f"such as {FORM}"
                )
        except ValueError as e:
            raise RecordingError(f'--data: {key} takes {e}; "{value}" was given, such as {FORM}') from None
    samples = [base] if lengths is None else of_file(lengths, base)
    return Data(samples, count or max(SAMPLES, len(samples)), columns, rest or "tokens=512")


def whole(value: str, least: int, most: int) -> int:
    """A whole number within bounds."""
    if not re.fullmatch(r"\d{1,9}", value) or not least <= int(value) <= most:
        raise ValueError(f"a whole number from {least} to {most:,}")
    return int(value)


def images(value: str) -> list[tuple[int, int]]:
    """`2x1280x720`, `1280x720`, or several with `+` between them."""
    sizes = []
    for part in value.split("+"):
        numbers = part.lower().split("x")
        if part in ("0", ""):
            continue
        if len(numbers) not in (2, 3) or not all(re.fullmatch(r"\d{1,5}", n) for n in numbers):
            raise ValueError("images as COUNTxWIDTHxHEIGHT")
        *many, width, height = map(int, numbers)
        if not (0 < width <= MOST_SIDE and 0 < height <= MOST_SIDE and (many or [1])[0] <= 1000):
            raise ValueError(f"images of at most {MOST_SIDE} pixels a side")
        sizes += [(width, height)] * (many or [1])[0]
    return sizes


def of_file(path: str, base: Sample) -> list[Sample]:
    """Lengths of real samples: a number a line, CSV with a heading, or JSON Lines with tokens, images, labels."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError as e:
        raise RecordingError(f'--data: "{path}" cannot be read ({e.strerror}).') from e
    rows: list[dict[str, Any]] = []
    try:
        if lines and lines[0].startswith("{"):
            rows = [json.loads(line) for line in lines]
        elif lines and not lines[0].isdigit():
            rows = [{k.strip(): v for k, v in row.items() if k} for row in csv.DictReader(lines)]
        else:
            rows = [{"tokens": line} for line in lines]
        made = []
        for row in rows:
            pictures = row.get("images", base.images)
            if isinstance(pictures, str):
                pictures = images(pictures)
            elif pictures and isinstance(pictures[0], str):
                pictures = [size for text in pictures for size in images(text)]
            share = float(row.get("labels") or base.labels)
            made.append(Sample(whole(str(row["tokens"]), 2, MOST_TOKENS), [tuple(p) for p in pictures or []], share))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise RecordingError(
            f'--data: a line of "{path}" is no length ({e}). Give a number of tokens a line, or CSV or JSON Lines with '
            'tokens and, if there are, images ("1280x720") and labels (0.3).'
        ) from None
    if not made:
        raise RecordingError(f'--data: "{path}" has no line; give a number of tokens a line.')
    return made


# What a trainer is fed with, by its name.
FEEDS = {
    "dpo": "preference",
    "orpo": "preference",
    "cpo": "preference",
    "simpo": "preference",
    "rm": "preference",
    "reward": "preference",
    "kto": "kto",
    "grpo": "prompt",
    "rloo": "prompt",
    "ppo": "prompt",
    "online_dpo": "prompt",
    "onlinedpo": "prompt",
    "gkd": "messages",
    "sft": "messages",
    "pt": "text",
}


def feed(program: Program, texts: list[str]) -> str:
    """What the command's trainer is fed with: messages, preference, kto, prompt, text; anything for a plain script."""
    words = [program.target, *program.args]
    said = "\n".join(texts)
    tool = os.path.basename(program.target)
    if tool == "swift":
        method = flag(words, "rlhf_type") or keyed(said, "rlhf_type")
        if program.args[:1] == ["rlhf"]:
            return FEEDS.get(method or "dpo", "messages")
        return "messages"
    if tool in ("llamafactory-cli", "lmf"):
        return FEEDS.get(keyed(said, "stage") or flag(words, "stage") or "sft", "messages")
    if tool == "trl" and program.args:
        return FEEDS.get(program.args[0], "messages")
    if tool == "axolotl":
        method = keyed(said, "rl")
        return FEEDS.get(method, "messages") if method else "messages"
    named = re.search(r"\b(SFT|DPO|GRPO|KTO|Reward|RLOO|ORPO|CPO|OnlineDPO|PPO|GKD)(?:Trainer|Config)\b", said)
    if named:
        return FEEDS[named[1].lower()]
    module = re.match(r"trl\.scripts\.(\w+)", program.target)
    if module:
        return FEEDS.get(module[1], "messages")
    return "anything"


def flag(words: list[str], name: str) -> str | None:
    """The value of a flag among words."""
    for i, word in enumerate(words):
        plain = word.lstrip("-").replace("-", "_")
        if plain == name and i + 1 < len(words):
            return words[i + 1]
        if plain.startswith(name + "="):
            return plain.partition("=")[2]
    return None


def keyed(text: str, name: str) -> str | None:
    """The value of a key in YAML or JSON."""
    found = re.search(rf"^\s*[\"']?{name}[\"']?\s*:\s*[\"']?([\w-]+)", text, re.MULTILINE)
    return found[1] if found else None


class MadeUp:
    """Answers libraries that load data with made-up samples."""

    def __init__(self, data: Data, program: Program, texts: list[str], notes: Notes) -> None:
        """For this command, whose configuration files and script say `texts`."""
        self.data, self.notes = data, notes
        self.feed = feed(program, texts)
        self.texts = texts
        self.folder = tempfile.TemporaryDirectory(prefix="vramscope-data-")
        self.pictures: dict[tuple[int, int], str] = {}
        self.told: set[str] = set()

    def remove(self) -> None:
        """Takes the files away."""
        self.folder.cleanup()

    def picture(self, size: tuple[int, int]) -> str:
        """Path of an image of this size."""
        if size not in self.pictures:
            path = os.path.join(self.folder.name, f"{size[0]}x{size[1]}.png")
            with open(path, "wb") as file:
                file.write(png(*size))
            self.pictures[size] = path
        return self.pictures[size]

    def parts(self, sample: Sample) -> tuple[str, str, list[str]]:
        """Question and answer of as many words as tokens, and paths of images."""
        answer = max(1, min(sample.tokens - 1, round(sample.tokens * sample.labels)))
        return (
            WORD.lstrip() + WORD * (sample.tokens - answer - 1),
            WORD.lstrip() + WORD * (answer - 1),
            [self.picture(size) for size in sample.images],
        )

    def rows(self, form: str) -> list[dict[str, Any]]:
        """All samples in a form."""
        each = [self.row(form, sample) for sample in self.data.samples]
        return [each[i % len(each)] for i in range(self.data.count)]

    def row(self, form: str, sample: Sample) -> dict[str, Any]:
        """A sample as a tool asks for it: of ms-swift, LLaMA-Factory (`lf`), axolotl, TRL, or a script."""
        question, answer, pictures = self.parts(sample)
        tool, _, kind = form.partition(" ")
        said = {"role": "user", "content": question}
        reply, other = ({"role": "assistant", "content": answer} for _ in range(2))
        if tool in ("swift", "lf"):
            # Their images stand in the text as words.
            said = {"role": "user", "content": "<image>" * len(pictures) + question}
            row: dict[str, Any] = {"messages": [said, reply]}
            if kind == "prompt" and tool == "swift":
                row = {"messages": [said]}
            if kind == "preference":
                row = (
                    {"messages": [said], "chosen": reply, "rejected": other}
                    if tool == "lf"
                    else {
                        "messages": [said, reply],
                        "rejected_response": answer,
                    }
                )
            if kind == "kto":
                row["label"] = True
            if kind == "text" and tool == "lf":
                row = {"text": "<image>" * len(pictures) + question + " " + answer}
            return row | ({"images": pictures} if pictures else {})
        if tool == "axolotl" and kind == "preference":
            # Its templates take replies as text, and the question under any of these names.
            asked = dict.fromkeys(("question", "instruction", "input", "prompt"), question)
            return {"messages": [said], "system": "", "chosen": answer, "rejected": answer} | asked
        row = {}
        if tool == "axolotl":
            row = axolotl_columns(question, answer)
        if kind in ("messages", "anything"):
            row["messages"] = [said, reply]
        if kind in ("preference", "anything"):
            row |= {"prompt": [said], "chosen": [reply], "rejected": [other]}
        if kind == "prompt":
            row["prompt"] = [said]
        if kind == "kto":
            row |= {"prompt": [said], "completion": [reply], "label": True}
        if kind in ("text", "anything"):
            row["text"] = question + " " + answer
        for column in self.data.columns:
            row[column] = answer if column == self.data.columns[-1] else question
        if pictures:
            row["images"] = pictures
            # A script that reads columns of its own may read its image by this name.
            if kind == "anything" or self.data.columns:
                row["image"] = pictures[0]
        return row

    def dataset(self, form: str, split: Any, streaming: bool) -> Any:
        """A data set of the `datasets` library, by split as it was asked for."""
        import datasets

        if isinstance(split, (list, tuple)):
            return [self.dataset(form, part, streaming) for part in split]
        made = datasets.Dataset.from_list(self.rows(form))
        if "images" in made.column_names:
            made = made.cast_column("images", listed(datasets))
        if "image" in made.column_names:
            made = made.cast_column("image", datasets.Image())
        if streaming:
            made = made.to_iterable_dataset()
        if split is not None:
            return made
        group = datasets.IterableDatasetDict if streaming else datasets.DatasetDict
        return group({"train": made, "test": made, "validation": made})

    def file(self, form: str) -> str:
        """Samples as JSON Lines, for tools that read files."""
        path = os.path.join(self.folder.name, form.replace(" ", "_") + ".jsonl")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in self.rows(form))
        return path

    def tell(self, asked: str) -> None:
        """Says once that these samples stand for a data set."""
        if asked not in self.told:
            self.told.add(asked)
            self.notes.tell(f"data: {asked}", f"made up: {self.data.said}")

    # Libraries

    def actions(self, patches: Patches) -> dict[str, Any]:
        """What is done as soon as one of these modules is imported."""
        return {
            "datasets.load": lambda m: self.of_datasets(m, patches),
            "swift.dataset.loader": lambda m: self.of_swift(m, patches),
            "swift.llm.dataset.loader": lambda m: self.of_swift(m, patches),
            "llamafactory.data.loader": lambda m: self.of_llama_factory(m, patches),
            "axolotl.utils.data.shared": lambda m: self.of_axolotl(m, patches),
        }

    def of_datasets(self, module: ModuleType, patches: Patches) -> None:
        """`load_dataset` and `load_from_disk`."""
        real = module.load_dataset

        def load_dataset(path: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
            files = kwargs.get("data_files")
            ours = files if isinstance(files, list) else [files]
            if any(isinstance(f, str) and f.startswith(self.folder.name) for f in ours):
                return real(path, name, *args, **kwargs)
            self.tell(str(path if files is None else ours[0]))
            return self.dataset(f"trl {self.feed}", kwargs.get("split"), bool(kwargs.get("streaming")))

        patches.set(module, "load_dataset", load_dataset)
        patches.set_existing(module, load_from_disk=lambda path, *args, **kwargs: load_dataset(path, split="train"))

    def of_swift(self, module: ModuleType, patches: Patches) -> None:
        """ms-swift's own `load_dataset`, of one or several names."""
        real = module.load_dataset

        def load_dataset(datasets: Any, *args: Any, **kwargs: Any) -> Any:
            names = [datasets] if isinstance(datasets, str) else list(datasets)
            if not names:
                return real(datasets, *args, **kwargs)
            for name in names:
                self.tell(str(name))
            kwargs.update(columns=None)
            return real([self.file(f"swift {self.feed}")], *args, **kwargs)

        patches.set(module, "load_dataset", load_dataset)

    def of_llama_factory(self, module: ModuleType, patches: Patches) -> None:
        """The entries of LLaMA-Factory's `dataset_info.json`."""
        from llamafactory.data.parser import DatasetAttr

        def get_dataset_list(dataset_names: Any, dataset_dir: Any) -> list[Any]:
            if not dataset_names:
                return []
            for name in dataset_names:
                self.tell(str(name))
            made = DatasetAttr("file", dataset_name=self.file(f"lf {self.feed}"))
            pictured = any(sample.images for sample in self.data.samples)
            made.images = "images" if pictured else None
            if self.feed == "text":
                made.prompt, made.query, made.response = "text", None, None
                return [made]
            made.formatting, made.messages = "sharegpt", "messages"
            made.role_tag, made.content_tag, made.user_tag, made.assistant_tag = "role", "content", "user", "assistant"
            made.system_tag = "system"
            if self.feed == "preference":
                made.ranking, made.chosen, made.rejected = True, "chosen", "rejected"
            if self.feed == "kto":
                made.kto_tag = "label"
            return [made]

        patches.set(module, "get_dataset_list", get_dataset_list)

    def of_axolotl(self, module: ModuleType, patches: Patches) -> None:
        """Its loader of one entry of `datasets`, which looks at the hub and at several clouds before it loads."""

        def load_dataset_with_config(dataset_config: Any, use_auth_token: Any = None, streaming: bool = False) -> Any:
            self.tell(str(dataset_config.path))
            return self.dataset(f"axolotl {self.feed}", dataset_config.split or None, streaming)

        patches.set_existing(module, load_dataset_with_config=load_dataset_with_config)

    def explain(self, error: BaseException) -> RecordingError | None:
        """Why a script's own columns are not there."""
        if not self.told or not isinstance(error, (KeyError, ValueError)):
            return None
        named = re.search(r"'([\w.-]+)'", str(error)) if isinstance(error, KeyError) or "olumn" in str(error) else None
        if named is None:
            return None
        has = ", ".join(self.row(f"trl {self.feed}", self.data.samples[0]))
        asked = f'The command asks made-up samples for "{named[1]}"; they have {has}.'
        if named[1] in ("image", "images"):
            size = f"{self.data.said},images=1x640x480"
            return RecordingError(f"{asked} Give them one: --data made-up:{size}")
        # The answer stays last.
        rest = re.sub(r",?columns=[^,]*", "", self.data.said).strip(",")
        columns = "+".join([named[1], *self.data.columns])
        return RecordingError(
            f"{asked} Name the columns of its text, the last of them the answer: --data "
            f"made-up:{rest}{',' if rest else ''}columns={columns}"
        )


def axolotl_columns(question: str, answer: str) -> dict[str, Any]:
    """Columns of axolotl's usual types beside `messages`: alpaca's, sharegpt's, and plain text."""
    return {
        "instruction": question,
        "input": "",
        "output": answer,
        "conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": answer}],
        "text": question + " " + answer,
    }


def listed(datasets: Any) -> Any:
    """The type of a list of images, as this version of the library writes it."""
    return datasets.List(datasets.Image()) if hasattr(datasets, "List") else datasets.Sequence(datasets.Image())


def png(width: int, height: int) -> bytes:
    """A grey image."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    line = b"\0" + b"\x80\x80\x80" * width
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    squeeze = zlib.compressobj(1)
    body = b"".join(squeeze.compress(line) for _ in range(height)) + squeeze.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


# Errors of the `datasets` library for a data set that is not on this machine.
NOT_HERE = ("DatasetNotFoundError", "DataFilesNotFoundError")


def absent(error: BaseException) -> RecordingError | None:
    """What to do where a data set is not there."""
    text = str(error)
    is_of_data = type(error).__name__ in NOT_HERE or (
        isinstance(error, (ConnectionError, FileNotFoundError, ValueError))
        and re.search(r"[Dd]ataset|on the Hub \(", text)
    )
    if not is_of_data or not re.search(
        "not find|n't find|n.t exist|n.t reach|offline|not exist|local path|Cannot open|Undefined", text
    ):
        return None
    return RecordingError(
        f"A data set is not on this machine: {text.splitlines()[0][:200]}\nA dry run uses no network. Give the path of "
        f"a file, or let samples be made up: vramscope dry-run --data {FORM} …"
    )


def texts_of(program: Program, texts: list[str]) -> list[str]:
    """What the command's configuration files and its script say."""
    if program.kind != "module":
        return texts
    found = sys.modules.get("importlib.util") or __import__("importlib.util").util
    try:
        spec = found.find_spec(program.target)
    except (ImportError, ValueError):
        return texts
    if spec is None or not spec.origin or not os.path.isfile(spec.origin):
        return texts
    with open(spec.origin, encoding="utf-8", errors="replace") as file:
        return [*texts, file.read(1 << 20)]
