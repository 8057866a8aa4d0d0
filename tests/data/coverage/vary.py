"""Random variations of the default configurations of configs.jsonl.gz, with their true parameter counts.
Writes variations.jsonl.gz: {"kind", "type", "set": {path: value}, "drop": [path], "params" or null, "why"}, and before
them {"kind", "type", "base"} for families that configs.jsonl.gz lacks. Needs torch and transformers 5.17, no GPU."""
import copy, gzip, json, random, signal, sys, warnings, torch, transformers
warnings.filterwarnings("ignore"); transformers.logging.set_verbosity_error()
from transformers import (AutoModel, AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForImageTextToText,
                          AutoModelForVideoClassification)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

CLASSES = {"itt": AutoModelForImageTextToText, "lm": AutoModelForCausalLM, "pair": AutoModel,
           "image": AutoModelForImageClassification, "video": AutoModelForVideoClassification}
# Families beside those of configs.jsonl.gz that are simulated, with the class that is trained.
FURTHER = {"clip": ("pair", "CLIPModel"), "siglip": ("pair", "SiglipModel"), "vit": ("image", "ViTForImageClassification"),
           "videomae": ("video", "VideoMAEForVideoClassification")}
# How many variations of each family: most of those that are simulated, a few of those that are not.
KNOWN = {"blip-2", "gemma3", "idefics3", "internvl", "llava", "llava_next", "mllama", "paligemma", "qwen2_5_vl", "qwen2_vl",
         "qwen3_vl", "smolvlm", "cwm", "ernie4_5", "gemma", "gemma2", "gemma3_text", "gpt2", "granite", "helium", "llama",
         "ministral3", "mistral", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "vaultgemma", *FURTHER}
OTHERS = {"aria_text", "diffllama", "ernie4_5_moe", "exaone4", "gemma4_text", "gemma4_unified_text", "glm", "glm4", "granite_swa",
          "hrm_text", "hyperclovax", "olmo2", "olmo3", "olmo_hybrid", "qwen3_5_text", "recurrent_gemma", "seed_oss", "zamba",
          "zamba2", "mixtral", "qwen3_moe", "mamba2", "dots1", "ministral", "hunyuan_v1_dense", "arcee", "stablelm", "olmo"}
# Those that were simulated later, drawn after all others, so that these stay as they were.
LATER = {"bamba", "falcon_h1", "granitemoe_swa", "granitemoehybrid", "jamba", "mistral4", "nemotron_h"}
SECTIONS = ("text_config", "vision_config", "qformer_config")
LAYERS = {"num_hidden_layers", "n_layer", "depth", "num_global_layers", "num_layers"}
HEADS = {"num_attention_heads", "num_key_value_heads", "n_head", "num_heads", "attention_heads"}
WIDTHS = {"hidden_size", "intermediate_size", "n_embd", "n_inner", "ffn_dim", "word_embed_proj_dim", "embed_dim", "projection_dim",
          "out_hidden_size", "vision_output_dim", "encoder_hidden_size", "projection_size"}
ACTIVATIONS = ["gelu", "gelu_pytorch_tanh", "gelu_new", "quick_gelu", "silu", "relu"]
KEPT = {"model_type", "architectures", "transformers_version", "dtype", "torch_dtype", "_name_or_path", "id2label", "label2id"}


class Slow(Exception):
    """A model took too long to build."""


def alarm(*_):
    raise Slow("slow")


def places(config):
    """(path, value) of each key, one section deep."""
    for key, value in config.items():
        if key in SECTIONS and isinstance(value, dict):
            yield from (((key, inner), held) for inner, held in value.items() if inner not in KEPT)
        elif key not in KEPT:
            yield (key,), value


def varied(rng, key, value):
    """Another value for a key, or None for one that is left alone."""
    if isinstance(value, bool):
        return not value
    if key in LAYERS:
        return rng.randint(1, 6)
    if key in HEADS:
        return rng.choice([1, 2, 4, 4, 8, 8, 12, 16, 16, 20, 32, 64])
    if key in WIDTHS:
        return rng.choice([64, 128, 192, 256, 512, 512, 768, 1000, 1024, 1280, 1536, 2048, 2304, 3584, 4096])
    if key == "vocab_size":
        return rng.choice([32000, 50304, 65536, 128256, 151936, 262208, 300000, 1000])
    if key == "head_dim":
        return rng.choice([16, 32, 64, 80, 96, 128, 256])
    if key == "patch_size":
        return rng.choice([4, 8, 14, 14, 16, 16, 28, 32, 50])
    if key == "image_size":
        return rng.choice([112, 224, 224, 336, 384, 448, 30, 500])
    if key in ("sliding_window", "max_position_embeddings", "n_positions", "original_max_position_embeddings"):
        return rng.choice([128, 512, 1024, 4096, 8192])
    if key.endswith("hidden_act") or key in ("activation_function", "hidden_activation"):
        return rng.choice(ACTIVATIONS)
    if isinstance(value, int) and not key.endswith(("_id", "_index")):
        return rng.choice([1, 2, 3, 4, 8, 16, max(1, value // 2), value + 1, value * 2])
    if isinstance(value, float) and "dropout" in key:
        return rng.choice([0.0, 0.1, 0.5])
    if key == "downsample_ratio":
        return rng.choice([0.25, 0.5, 1.0])
    if key in ("vision_feature_layer",):
        return rng.choice([-1, -2, [-1, -2], 0])
    return None


def variation(rng, config):
    """Changes of some keys, {path: value}, and keys that are dropped."""
    keys = list(places(config))
    changes, dropped = {}, []
    for path, value in keys:
        if path[-1] in LAYERS and isinstance(value, int):
            changes[path] = rng.randint(1, 6)
            if value > 6 or rng.random() < 0.5:
                dropped += [p for p, _ in keys if p[:-1] == path[:-1] and p[-1] in ("layer_types", "no_rope_layers")]
    wanted, tries = rng.choice([0, 1, 1, 2, 2, 3, 4]), 0
    while wanted and tries < 200:
        tries += 1
        path, value = rng.choice(keys)
        new = varied(rng, path[-1], value)
        if new is not None and new != value and path not in changes:
            changes[path] = new
            wanted -= 1
    if rng.random() < 0.15:
        dropped.append(rng.choice(keys)[0])
    if rng.random() < 0.1:
        changes[(rng.choice(["num_experts", "mlp_bias", "attention_bias", "qk_norm", "use_qk_norm", "num_local_experts", "head_dim"]),)] = rng.choice([True, 8])
    return changes, [path for path in dict.fromkeys(dropped) if path not in changes]


def applied(config, changes, dropped):
    config = copy.deepcopy(config)
    for path, value in changes.items():
        place = config
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    for path in dropped:
        place = config
        for key in path[:-1]:
            place = place[key]
        place.pop(path[-1], None)
    return config


def true_params(kind, name, config):
    """The number of parameters and None, or None and why the model is not built."""
    try:
        signal.alarm(30)
        config = CONFIG_MAPPING[name].from_dict(copy.deepcopy(config))
        with torch.device("meta"):
            model = CLASSES[kind].from_config(config)
        return sum(p.numel() for p in model.parameters()), None
    except BaseException as error:  # a configuration class may raise anything
        if isinstance(error, KeyboardInterrupt):
            raise
        return None, repr(error)[:120]
    finally:
        signal.alarm(0)


def main(known, others, seed):
    signal.signal(signal.SIGALRM, alarm)
    rng = random.Random(seed)
    rows = [json.loads(line) for line in gzip.open("configs.jsonl.gz", "rt")]
    later = [row for row in rows if row["config"] and row["type"] in LATER]
    rows = [row for row in rows if row["config"] and row["type"] in KNOWN | OTHERS]
    with gzip.GzipFile("variations.jsonl.gz", "wb", mtime=0) as out:
        def write(row):
            out.write((json.dumps(row, separators=(",", ":")) + "\n").encode())
        for name, (kind, architecture) in FURTHER.items():
            config = json.loads(json.dumps(CONFIG_MAPPING[name]().to_dict(), default=str))
            config |= {"model_type": name, "architectures": [architecture]}
            write({"kind": kind, "type": name, "base": config})
            rows.append({"kind": kind, "type": name, "config": config})
        for row in rows + later:
            for _ in range(known if row["type"] in KNOWN else 2 * others if row["type"] in LATER else others):
                changes, dropped = variation(rng, row["config"])
                params, why = true_params(row["kind"], row["type"], applied(row["config"], changes, dropped))
                write({"kind": row["kind"], "type": row["type"], "set": {".".join(p): v for p, v in changes.items()},
                       "drop": [".".join(p) for p in dropped], "params": params, "why": why})
            print(row["kind"], row["type"], file=sys.stderr)


if __name__ == "__main__":
    main(*(int(n) for n in (sys.argv[1:] + ["40", "6", "1"][len(sys.argv) - 1:])))
