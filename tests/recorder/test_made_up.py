"""Dry runs without weights, data, tokenizer or processor: what is made up in their place, and what is said of it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

from vramscope.dry_run import commands, made_files, made_up  # noqa: E402
from vramscope.dry_run.notes import Notes  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from test_dry_run import needs  # noqa: E402

# A small model of each kind, as its configuration file has it.
TEXT = dict(
    model_type="qwen2",
    vocab_size=1024,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=512,
    eos_token_id=1002,
    torch_dtype="bfloat16",
)
QWEN = dict(
    model_type="qwen2_5_vl",
    text_config={**TEXT, "vocab_size": 151936, "eos_token_id": 151645, "model_type": "qwen2_5_vl_text"},
    vision_config=dict(depth=1, hidden_size=64, num_heads=2, intermediate_size=64, out_hidden_size=64, patch_size=14),
    image_token_id=151655,
    video_token_id=151656,
    vision_start_token_id=151652,
    vision_end_token_id=151653,
)
LLAVA = dict(
    model_type="llava",
    text_config={**TEXT, "model_type": "llama", "vocab_size": 32064, "eos_token_id": 2, "bos_token_id": 1},
    vision_config=dict(model_type="clip_vision_model", image_size=336, patch_size=14, hidden_size=64),
    image_token_index=32000,
    vision_feature_select_strategy="default",
)


def made(config: dict[str, Any], *more: str) -> str:
    """A model's folder with its configuration and these empty files."""
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    for name in more:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("{}")
    return folder


class Words(unittest.TestCase):
    """What `--data` says."""

    def test_samples_are_read(self) -> None:
        """Sizes by name, and lengths of a file in each of its forms."""
        data = made_up.read("made-up:tokens=2048,images=2x1280x720+64x32,labels=0.3,samples=7,columns=q+a")
        self.assertEqual(data.samples[0], made_up.Sample(2048, [(1280, 720), (1280, 720), (64, 32)], 0.3))
        self.assertEqual((data.count, data.columns, data.is_uniform), (7, ["q", "a"], True))
        for text in (
            "300\n40\n",
            "tokens,images\n300,64x32\n40,\n",
            '{"tokens": 300, "images": ["64x32"]}\n{"tokens": 40}\n',
        ):
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(text)
                file.flush()
                data = made_up.read(f"made-up:lengths={file.name}")
            self.assertEqual([s.tokens for s in data.samples], [300, 40], text)
            self.assertEqual(data.samples[0].images, [(64, 32)] if "64" in text else [], text)
            self.assertFalse(data.is_uniform)

    def test_what_is_no_sample_is_refused_with_what_is(self) -> None:
        """What was given, and what is taken."""
        for words, said in {
            "alpaca": "made-up:tokens=2048",
            "made-up:tokens=many": "a whole number from 2",
            "made-up:images=big": "COUNTxWIDTHxHEIGHT",
            "made-up:images=1x99999x1": "at most 32768 pixels a side",
            "made-up:labels=3": "a share between 0 and 1",
            "made-up:lenght=3": 'there is no "lenght"',
            "made-up:lengths=/no/such": "cannot be read",
        }.items():
            with self.subTest(words), self.assertRaises(RecordingError) as caught:
                made_up.read(words)
            self.assertIn(said, str(caught.exception))

    def test_samples_have_the_form_that_the_trainer_asks_for(self) -> None:
        """By the tool's command, its file, or the trainer that a script names."""
        for (words, text), feed in {
            ("swift sft --model m", ""): "messages",
            ("swift rlhf --rlhf_type grpo", ""): "prompt",
            ("swift rlhf", "rlhf_type: kto\n"): "kto",
            ("llamafactory-cli train a.yaml", "stage: dpo\n"): "preference",
            ("llamafactory-cli train a.yaml", "stage: pt\n"): "text",
            ("trl dpo", ""): "preference",
            ("train.py", "from trl import GRPOTrainer"): "prompt",
            ("train.py", "loader = DataLoader(x)"): "anything",
        }.items():
            name, *args = words.split()
            program = commands.Program("entry", name, args)
            self.assertEqual(made_up.feed(program, [text]), feed, words)

    def test_rows_hold_what_tools_read(self) -> None:
        """Messages with images, a chosen and a rejected answer, a prompt alone; as many words as tokens."""
        data = made_up.read("made-up:tokens=10,images=1x64x32,labels=0.3")
        maker = made_up.MadeUp(data, commands.Program("entry", "trl", ["sft"]), [], Notes())
        self.addCleanup(maker.remove)
        row = maker.row("swift messages", data.samples[0])
        self.assertEqual([len(m["content"].split()) for m in row["messages"]], [7, 3])
        self.assertTrue(row["messages"][0]["content"].startswith("<image>the"))
        self.assertTrue(os.path.exists(row["images"][0]))
        self.assertEqual(set(maker.row("lf preference", data.samples[0])), {"messages", "chosen", "rejected", "images"})
        self.assertEqual(set(maker.row("trl prompt", data.samples[0])), {"prompt", "images"})
        self.assertEqual(set(maker.row("trl preference", data.samples[0])), {"prompt", "chosen", "rejected", "images"})
        told = maker.row("axolotl messages", data.samples[0])
        self.assertEqual([len(told[name].split()) for name in ("instruction", "output", "text")], [7, 3, 10])
        self.assertEqual([turn["from"] for turn in told["conversations"]], ["human", "gpt"])
        preferred = maker.row("axolotl preference", data.samples[0])
        self.assertEqual([len(preferred[name].split()) for name in ("prompt", "chosen", "rejected")], [7, 3, 3])

    def test_columns_of_a_script_are_asked_for_until_all_are_named(self) -> None:
        """The hint keeps what was said, the answer last; an image is no text."""

        def hint(said: str, column: str) -> str:
            made = made_up.MadeUp(made_up.read("made-up:" + said), commands.Program("script", "a.py", []), [], Notes())
            self.addCleanup(made.remove)
            made.tell("any")
            return str(made.explain(KeyError(f"'{column}'"))).rpartition("made-up:")[2]

        self.assertEqual(hint("tokens=64", "answer"), "tokens=64,columns=answer")
        self.assertEqual(hint("tokens=64,columns=answer", "question"), "tokens=64,columns=question+answer")
        self.assertEqual(hint("tokens=64,columns=answer", "image"), "tokens=64,columns=answer,images=1x640x480")
        data = made_up.read("made-up:tokens=64,images=1x32x24,columns=q+a")
        made = made_up.MadeUp(data, commands.Program("script", "a.py", []), [], Notes())
        self.addCleanup(made.remove)
        row = made.row("trl prompt", made.data.samples[0])
        self.assertEqual(row["image"], row["images"][0])

    @needs("PIL")
    def test_images_have_their_size(self) -> None:
        """As a library opens them."""
        import io

        from PIL import Image

        self.assertEqual(Image.open(io.BytesIO(made_up.png(130, 70))).size, (130, 70))


class Files(unittest.TestCase):
    """Tokenizers and processors of a configuration."""

    def test_what_is_there_is_left_alone(self) -> None:
        """A tokenizer that a folder has, and a processor of a model without images."""
        self.assertEqual(made_files.missing(made(TEXT)), ["tokenizer"])
        self.assertEqual(made_files.missing(made(QWEN)), ["tokenizer", "processor"])
        self.assertEqual(made_files.missing(made(QWEN, "vocab.json", "preprocessor_config.json")), [])
        self.assertEqual(made_files.missing(tempfile.mkdtemp()), [])

    def test_special_tokens_stand_at_their_ids(self) -> None:
        """Those of the configuration, and Qwen's that follow each other."""
        at = made_files.Specials(QWEN).at
        self.assertEqual(at["<|image_pad|>"], 151655)
        self.assertEqual((at["<|im_start|>"], at["<|im_end|>"], at["<|endoftext|>"]), (151644, 151645, 151643))
        self.assertEqual(made_files.Specials(LLAVA).at["<image>"], 32000)
        self.assertEqual(made_files.Specials(TEXT).role("eos"), "<|im_end|>")

    @needs("tokenizers")
    def test_a_word_is_a_token(self) -> None:
        """So that made-up samples have as many tokens as were asked for, and the vocabulary its size."""
        from tokenizers import Tokenizer

        made = Tokenizer.from_str(made_files.tokenizer(TEXT)["tokenizer.json"])
        self.assertEqual(made.get_vocab_size(), 1024)
        self.assertEqual(len(made.encode("the" + made_up.WORD * 99).ids), 100)
        self.assertEqual(made.encode("<|im_end|>the").ids[0], 1002)

    @needs("transformers")
    def test_an_image_is_cut_into_squares_of_what_the_tower_takes(self) -> None:
        """SmolVLM's towers take 384 or 512 pixels, where transformers' defaults are those of 364."""
        for side in (384, 512):
            config = dict(model_type="smolvlm", scale_factor=3, vision_config=dict(image_size=side, patch_size=14))
            told = json.loads(made_files.processor(config)[0]["preprocessor_config.json"])
            self.assertEqual(
                (told["max_image_size"], told["size"]), ({"longest_edge": side}, {"longest_edge": 4 * side})
            )

    @needs("transformers", "torchvision", "PIL")
    def test_processors_count_an_image_as_the_real_ones(self) -> None:
        """391 positions of 640 by 480 pixels for Qwen2.5-VL, 576 for LLaVA 1.5."""
        from PIL import Image
        from transformers import AutoProcessor
        from vramscope.dry_run.hub import Hub
        from vramscope.record.imports import OnImport
        from vramscope.record.patches import Patches

        patches, hub = Patches(), Hub(Notes(), True)
        watcher = OnImport(hub.actions(patches))
        self.addCleanup(watcher.remove)
        self.addCleanup(patches.undo)
        self.addCleanup(hub.remove)
        for config, positions in ((QWEN, 391), (LLAVA, 576)):
            processor = AutoProcessor.from_pretrained(made(config))
            said = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what"}]}]
            text = processor.apply_chat_template(said, tokenize=False)
            batch = processor(text=[text], images=[Image.new("RGB", (640, 480))], return_tensors="pt")
            number = config.get("image_token_id", config.get("image_token_index"))
            self.assertEqual(int((batch["input_ids"] == number).sum()), positions, config["model_type"])


if __name__ == "__main__":
    unittest.main()
