"""Trains one step of each exported TRL file with TRL's own `trl sft`, on the processor and a small random model.

usage: train_trl.py FOLDER
The file is read by TRL's own parser as it was exported. What stands in SWITCHED comes after it, as on `trl sft`'s command
line, because a processor cannot do it or a test must not; nothing else is changed. Prints a line for each file that
trained; ends with 1 where one did not.
"""
import contextlib, json, os, sys, tempfile, traceback, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")

# optimizers of bitsandbytes as the tools name them; their kernels are CUDA's
OF_BITSANDBYTES = {"adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit", "paged_adamw"}

# what a machine without a GPU, or a test, has to switch: (key, value, where the exported value is one of these)
SWITCHED = [
    ("use_cpu", "true", None),
    ("attn_implementation", "sdpa", {"flash_attention_2"}),  # its kernels are CUDA's
    ("optim", "adamw_torch", OF_BITSANDBYTES),
    ("load_in_4bit", "false", {True}),  # bitsandbytes' kernels are CUDA's
    ("max_steps", "1", None),
    ("report_to", "none", None),
    ("save_strategy", "no", None),
    ("logging_steps", "1", None),
]


def switched(entries, exported):
    """Keys and values of `entries`, such as SWITCHED, that apply to what was exported."""
    return {key: value for key, value, only in entries if only is None or exported.get(key) in only}


def options(entries, exported):
    """The same as words of a command line."""
    return [word for key, value in switched(entries, exported).items() for word in (f"--{key}", value)]


def small(name):
    """A model of the plan's kind with few, narrow layers: LLaVA for all with a vision tower, whose processor is the one that
    needs neither torchvision nor a video reader, and a Llama for decoders, which reads the tokenizer that stands here."""
    import transformers as t

    text = dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    if name.startswith("gpt2"):
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=256, n_embd=64, n_layer=2, n_head=4))
    if name.startswith(("llama", "qwen")) and "-vl-" not in name:
        return t.LlamaForCausalLM(t.LlamaConfig(**text))
    if "-vl-" in name:
        vision = dict(model_type="clip_vision_model", hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=14, projection_dim=32)
        return t.LlavaForConditionalGeneration(t.LlavaConfig(text_config=dict(text, model_type="llama"), vision_config=vision, image_token_index=202))
    raise SystemExit(f"no small model stands in for {name}: add one to small()")


def tokenizer():
    """One token for each of 200 words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", *(f"w{i}" for i in range(199)), "<image>"]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def save_small(name, folder):
    """Saves small(name) with what reads its input, as the hub has them; returns the folder."""
    local, reader = os.path.join(folder, "model"), tokenizer()
    small(name).save_pretrained(local)
    if "-vl-" in name:
        import transformers as t

        reader = t.LlavaProcessor(image_processor=t.CLIPImageProcessor(), tokenizer=reader, patch_size=14, vision_feature_select_strategy="default", image_token="<image>")
    reader.save_pretrained(local)
    return local


@contextlib.contextmanager
def counted_steps(transformers):
    """Collects the loss of each micro-batch of any Trainer."""
    losses, step = [], transformers.Trainer.training_step

    def training_step(self, *args, **kwargs):
        loss = step(self, *args, **kwargs)
        losses.append(loss.item())
        return loss

    transformers.Trainer.training_step = training_step
    try:
        yield losses
    finally:
        transformers.Trainer.training_step = step


def check_step(losses, best, folder):
    """Holds one step, and what it saved, against the plan."""
    assert len(losses) == best["accum"] and all(loss > 0 for loss in losses), losses
    saved = [name for name in os.listdir(folder) if name.endswith(".safetensors")]
    assert saved, "nothing was saved"
    if best["freeze"] in ("lora", "qlora") and best["lora_targets"] in ("projections", "attention"):
        from safetensors import safe_open

        adapted = list(safe_open(os.path.join(folder, saved[0]), "pt").keys())
        assert adapted and not any("vision_tower" in key for key in adapted), adapted


def without_libraries():
    """NVIDIA's libraries are stood in for here (cuda_stand_ins.py of the recorder): what PyTorch would ask them is answered before."""
    import torch

    torch.cuda.graphs.is_current_stream_capturing = torch.cuda.is_current_stream_capturing = lambda: False


def without_network():
    """Fails a tool that leaves the machine: a test must not, and offline it would only wait."""
    import socket

    connect = socket.socket.connect

    def local(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise SystemExit(f"it asks {address} on the network")
        return connect(self, address)

    def resolve(host, *args, **kwargs):
        if host not in (None, "127.0.0.1", "::1", "localhost", socket.gethostname()):
            raise SystemExit(f"it asks for {host} on the network")
        return getaddrinfo(host, *args, **kwargs)

    getaddrinfo, socket.getaddrinfo, socket.socket.connect = socket.getaddrinfo, resolve, local


def train(path, plan, folder):
    import transformers
    import yaml
    from trl.scripts import sft

    exported, best = yaml.safe_load(open(path)), plan["recommended"]["setup"]
    local = save_small(plan["model"], folder)
    data = os.path.join(folder, "data")
    os.makedirs(data)
    rows = best["batch"] * best["accum"]
    with open(os.path.join(data, "train.jsonl"), "w") as out:
        for i in range(rows):
            out.write(json.dumps({"text": " ".join(f"w{(i + k) % 199}" for k in range(24))}) + "\n")
    words = ["--config", path, "--model_name_or_path", local, "--dataset_name", data, "--output_dir", os.path.join(folder, "out")]
    sys.argv = ["sft", *words, *options(SWITCHED, exported)]
    script, args, model, mixture = sft.make_parser().parse_args_and_config()
    assert args.per_device_train_batch_size == best["batch"] and args.gradient_accumulation_steps == best["accum"]
    with counted_steps(transformers) as losses:
        sft.main(script, args, model, mixture)
    check_step(losses, best, os.path.join(folder, "out"))


def train_all(folder, forms):
    """Trains a step of each export in a folder. `forms` has the function for each beginning of a file's name."""
    failed = False
    without_libraries()
    without_network()
    for name in sorted(os.listdir(folder)):
        form = next((form for form in forms if name.startswith(form + "-")), None)
        if not form:
            continue
        plan = json.load(open(os.path.join(folder, name[len(form) + 1 :].rsplit(".", 1)[0] + ".json")))
        try:
            with tempfile.TemporaryDirectory() as work:
                forms[form](os.path.join(folder, name), plan, work)
            print("trained", name, flush=True)
        except (Exception, SystemExit):
            failed = True
            print("FAILED", name, traceback.format_exc()[-2500:], flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    train_all(sys.argv[1], {"trl": train})
