"""Measure training steps of configurations that nobody published: each family's sizes and switches drawn by chance.

usage: configurations.py draw SEED PER_FAMILY CASES.jsonl [trainer|alone|adapted|trl_sft|trl_dpo|trl|deepspeed|shared|combined|parts|shared_parts|bits|trl_bits|saved]
       configurations.py run CASES.jsonl OUT.jsonl [deadline_s]
Each line of CASES: `config`, what a config.json would hold; `case`, as in measure.py, whose steps these are; `inputs`, what
the batch is made from. With `trainer` the steps are those of transformers' Trainer, with `trl_sft` and `trl_dpo` those of
TRL's trainers, of families that these take, with `trl` SFT of each and DPO of every second; with `alone`, vision-language
models get no image; with `adapted`, decoders with experts get LoRA adapters, on experts too; with `deepspeed`, one of several GPUs runs DeepSpeed's engine; with `shared`, transformers' Trainer on one of several, as `two_gpus.py` starts it, and with `combined` TRL's trainers too. With `parts` the model is changed as tools change it: parts and parameters frozen by name, DoRA, NEFTune, smoothed labels, Muon; with `shared_parts` that on one of several; with `bits` weights are in 4 bits and optimizers are those of bitsandbytes, with `trl_bits` the same under TRL's trainers; with `saved` tables, heads and connectors train in full beside adapters. `run` measures each in a
process of its own, several at once: bytes do not depend on it.
"""
import copy, gc, glob, importlib, json, multiprocessing, os, shutil, sys, tempfile, time, traceback

from drawn.common import R, V, ch, clip_vision, decoder, encoder, maybe, side, siglip_vision, some

# Other modules of `drawn` add to TEXT, IMAGES and CASES below; their `batch(config, given, case, ids, pixels)` adds what a family's
# forward takes beside tokens, labels and mask.
GROUPS = [importlib.import_module("drawn." + os.path.basename(path)[:-3])
          for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "drawn", "*.py"))) if not path.endswith("common.py")]


def gpt2():
    heads, d = ch(4, 8, 12, 16), ch(32, 64, 80, 128); h = heads * d
    return dict(model_type="gpt2", vocab_size=ch(1000, 50257, 50304), n_embd=h, n_head=heads, n_layer=R.randint(1, 6), n_positions=ch(1024, 2048),
                activation_function=ch("gelu_new", "gelu", "relu", "gelu_pytorch_tanh"), tie_word_embeddings=maybe(.7),
                **some(.4, resid_pdrop=[0.0, .2], embd_pdrop=[0.0, .2], attn_pdrop=[0.0, .2], n_inner=[h * 2, h * 3]), **some(.2, scale_attn_by_inverse_layer_idx=[True], reorder_and_upcast_attn=[True]))

def opt(vocab=None):
    heads, d = ch(4, 8, 12, 16), ch(32, 64, 80, 128); h = heads * d
    return dict(model_type="opt", vocab_size=vocab or ch(1000, 50272), hidden_size=h, num_attention_heads=heads, num_hidden_layers=R.randint(1, 6), ffn_dim=h * ch(2, 4),
                max_position_embeddings=2048, word_embed_proj_dim=ch(h, h, h // 2), do_layer_norm_before=maybe(.7), activation_function=ch("relu", "gelu"), tie_word_embeddings=maybe(.7),
                **some(.4, dropout=[0.0, .2]), **some(.3, attention_dropout=[.1]), **some(.2, enable_bias=[False], layer_norm_elementwise_affine=[False]))

def phi():
    kv = ch(2, 4, 8); heads = kv * ch(1, 1, 2); h = heads * ch(32, 64, 80, 96)
    return dict(model_type="phi", vocab_size=ch(1000, 51200), hidden_size=h, num_attention_heads=heads, num_key_value_heads=kv, num_hidden_layers=R.randint(1, 6), intermediate_size=h * ch(2, 4),
                hidden_act=ch("gelu_new", "gelu", "relu"), tie_word_embeddings=maybe(.3), max_position_embeddings=2048,
                **some(.4, partial_rotary_factor=[.25, 1.0]), **some(.3, qk_layernorm=[True], resid_pdrop=[.1], embd_pdrop=[.1], attention_dropout=[.1]))

def classes(n): return dict(id2label={str(i): str(i) for i in range(n)}, label2id={str(i): i for i in range(n)})

def llava():
    v, select = clip_vision(), ch("default", "default", "full"); t = decoder(ch("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"), V); per = side(v) ** 2 + (select == "full")
    config = dict(vision_config=v, text_config=t, image_token_index=32000, image_seq_length=per, vision_feature_select_strategy=select, vision_feature_layer=ch(-2, -1, -3, 1, [-2, -1], [1, 2, -1]),
                  projector_hidden_act=ch("gelu", "relu", "silu"), multimodal_projector_bias=maybe(.7), tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=per, image=v["image_size"], n=ch(1, 1, 2)), {}

def llava_next():
    v, t = clip_vision(), decoder(ch("llama", "mistral", "qwen2", "gemma", "gemma2"), V); i = v["image_size"]
    pins = [[i, 2 * i], [2 * i, i], [2 * i, 2 * i]] + ch([], [[3 * i, i], [i, 3 * i]]); pixels = ch(i, 2 * i, int(1.5 * i), i // 2)
    def kept(p): return min(int(pixels * min(p[0] / pixels, p[1] / pixels)) ** 2, pixels * pixels)
    best = max(pins, key=lambda p: (kept(p), kept(p) - p[0] * p[1])); rows, columns = (n // i * side(v) for n in best)
    if columns > rows: columns -= (columns - rows) // 2 * 2
    else: rows -= (rows - columns) // 2 * 2
    config = dict(vision_config=v, text_config=t, image_token_index=32000, image_grid_pinpoints=pins, vision_feature_layer=ch(-2, -1, [-2, -1]), vision_feature_select_strategy="default",
                  projector_hidden_act=ch("gelu", "relu"), multimodal_projector_bias=maybe(.7), tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=side(v) ** 2 + rows * (columns + 1), image=i, pixels=pixels, tiles=best[0] // i * (best[1] // i) + 1), dict(image=pixels)

def qwen_vl(t):
    text, p, e = decoder("qwen3" if t == "qwen3_vl" else "qwen2", ch(V, 151936)), ch(14, 16), encoder(3)
    for key in ("layer_types", "use_sliding_window", "sliding_window", "max_window_layers", "rope_scaling"): text.pop(key, None)
    if t != "qwen3_vl" and "head_dim" in text: text["hidden_size"] = text["num_attention_heads"] * text.pop("head_dim")
    half = (text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]) // 2; x = (half - half // 4) // 2
    text["rope_parameters"] = dict(rope_type="default", mrope_section=[half - 2 * x, x, x], rope_theta=1e6, **(dict(mrope_interleaved=True) if t == "qwen3_vl" else {}))
    text["model_type"] = t + "_text"; width, layers, out = e["hidden_size"], e["num_hidden_layers"], text["hidden_size"]
    vision = dict(depth=layers, num_heads=e["num_attention_heads"], in_channels=3, patch_size=p, spatial_merge_size=2, temporal_patch_size=2)
    if t == "qwen2_vl": vision.update(embed_dim=width, hidden_size=out, mlp_ratio=ch(2, 4))
    else: vision.update(hidden_size=width, intermediate_size=e["intermediate_size"], out_hidden_size=out)
    if t == "qwen2_5_vl": vision.update(window_size=ch(112, 8 * p), fullatt_block_indexes=sorted(R.sample(range(layers), R.randint(0, 2))), hidden_act="silu")
    if t == "qwen3_vl": vision.update(num_position_embeddings=ch(256, 2304), deepstack_visual_indexes=sorted(R.sample(range(layers - 1), R.randint(1, 2))))
    grid = [2 * R.randint(2, 14), 2 * R.randint(2, 14)]; last = text["vocab_size"]
    config = dict(text_config=text, vision_config=vision, image_token_id=last - 3, vision_start_token_id=last - 5, vision_end_token_id=last - 4, video_token_id=last - 2, tie_word_embeddings=text["tie_word_embeddings"])
    return config, dict(per=grid[0] * grid[1] // 4, token=last - 3, patch=6 * p * p, n=ch(1, 1, 2, 3)), dict(grid=grid)

def internvl():
    p, s = ch(14, 16), ch(16, 24, 32); t = decoder(ch("qwen2", "llama", "qwen3"), V)
    vision = dict(model_type="internvl_vision", **encoder(2), image_size=[p * s] * 2, patch_size=[p] * 2, attention_bias=maybe(.6), use_qk_norm=maybe(.3), use_mean_pooling=maybe(.6),
                  norm_type=ch("layer_norm", "layer_norm", "rms_norm"), use_mask_token=maybe(.2), hidden_act="gelu", **some(.2, use_absolute_position_embeddings=[False]))
    config = dict(vision_config=vision, text_config=t, image_token_id=32000, image_seq_length=(s // 2) ** 2, downsample_ratio=.5, projector_hidden_act="gelu", tie_word_embeddings=t["tie_word_embeddings"])
    return config, dict(per=(s // 2) ** 2, image=p * s, n=ch(1, 2)), {}

def paligemma():
    v, t = siglip_vision(), decoder(ch("gemma", "gemma2"), V); del t["tie_word_embeddings"]
    return dict(vision_config=v, text_config=t, image_token_index=32000, projection_dim=t["hidden_size"], hidden_size=t["hidden_size"]), dict(per=side(v) ** 2, image=v["image_size"]), {}

def idefics3(t):
    p, k = ch(14, 16), ch(2, 3, 4); s = k * ch(4, 6, 8); text = dict(decoder(ch("llama", "mistral"), V), pad_token_id=2)
    vision = dict(model_type=t + "_vision", **encoder(2), patch_size=p, image_size=p * s, hidden_act="gelu_pytorch_tanh")
    config = dict(vision_config=vision, text_config=text, image_token_id=32000, scale_factor=k, pad_token_id=2, tie_word_embeddings=text["tie_word_embeddings"], use_cache=False)
    return config, dict(per=(s // k) ** 2, image=p * s, n=ch(1, 2, 3)), {}

def gemma3():
    s, k = ch(8, 16, 24), ch(2, 4); t = decoder("gemma3_text", V); del t["tie_word_embeddings"]
    config = dict(vision_config=dict(siglip_vision(), image_size=14 * s, patch_size=14), text_config=t, mm_tokens_per_image=(s // k) ** 2, image_token_index=32000, boi_token_index=32001, eoi_token_index=32002)
    return config, dict(per=(s // k) ** 2, image=14 * s, n=ch(1, 2)), {}

def shieldgemma2():
    config, inputs, more = gemma3(); config["text_config"].update(some(.4, tie_word_embeddings=[False])); return dict(config, **some(.3, tie_word_embeddings=[False, True])), inputs, more

def mllama():
    t, e, s, tiles = decoder("llama", V, R.randint(3, 6)), encoder(2), ch(16, 24, 32), ch(1, 2, 4)
    for key in ("attention_bias", "mlp_bias", "attention_dropout", "rope_scaling"): t.pop(key, None)
    if "head_dim" in t: t["hidden_size"] = t["num_attention_heads"] * t.pop("head_dim")
    t.update(model_type="mllama_text_model", tie_word_embeddings=False, pad_token_id=0, hidden_act="silu", cross_attention_layers=sorted(R.sample(range(t["num_hidden_layers"]), ch(1, 2))))
    joined = sorted(R.sample(range(e["num_hidden_layers"]), ch(1, 2)))
    ratios = {1: [[1, 1]], 2: [[1, 1], [1, 2], [2, 1]], 4: [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]}[tiles]
    vision = dict(model_type="mllama_vision_model", hidden_size=e["hidden_size"], intermediate_size=e["intermediate_size"], num_hidden_layers=e["num_hidden_layers"], attention_heads=e["num_attention_heads"],
                  num_global_layers=ch(1, 2, 3), image_size=14 * s, patch_size=14, max_num_tiles=tiles, vision_output_dim=e["hidden_size"] * (1 + len(joined)), intermediate_layers_indices=joined, supported_aspect_ratios=ratios)
    return dict(vision_config=vision, text_config=t, image_token_index=32000), dict(image=14 * s, tiles=tiles, ratio=min(len(ratios), 6)), {}

def blip2():
    p, s, k = ch(14, 16), ch(8, 16), ch(16, 32, 64)
    vision = dict(model_type="blip_2_vision_model", **encoder(2), image_size=p * s, patch_size=p, qkv_bias=maybe(.7), hidden_act=ch("gelu", "quick_gelu"))
    queries = dict(model_type="blip_2_qformer", **encoder(2), cross_attention_frequency=ch(1, 2, 3), vocab_size=1000, encoder_hidden_size=vision["hidden_size"], **some(.4, hidden_dropout_prob=[0.0], attention_probs_dropout_prob=[0.0]))
    config = dict(vision_config=vision, qformer_config=queries, text_config=opt(50304), num_query_tokens=k, image_token_index=50265)
    return config, dict(per=k, token=50265, image=p * s), {}

def clip():
    v, longest, vocab = clip_vision(), ch(77, 64, 128), ch(1000, 49408)
    t = dict(model_type="clip_text_model", **encoder(), vocab_size=vocab, max_position_embeddings=longest, hidden_act=ch("quick_gelu", "gelu"), **some(.5, eos_token_id=[2]))
    return dict(vision_config=v, text_config=t, projection_dim=ch(256, 512, 768)), dict(image=v["image_size"], vocab=vocab), dict(seq=longest, batch=ch(2, 4, 8, 33))

def siglip():
    v = dict(siglip_vision(), vision_use_head=True)
    t = dict(encoder(), model_type="siglip_text_model", vocab_size=32000, max_position_embeddings=64, hidden_act="gelu_pytorch_tanh", hidden_size=v["hidden_size"], num_attention_heads=v["num_attention_heads"], projection_size=v["hidden_size"])
    return dict(vision_config=v, text_config=t), dict(image=v["image_size"], vocab=32000), dict(seq=64, batch=ch(2, 4, 8, 33))

def vit():
    p, n = ch(8, 14, 16, 32), ch(2, 10, 51); v = dict(encoder(), patch_size=p, image_size=p * ch(7, 14, 16), qkv_bias=maybe(.7), hidden_act=ch("gelu", "gelu_new"), **some(.3, hidden_dropout_prob=[.1], attention_probs_dropout_prob=[.1]))
    return dict(v, **classes(n)), dict(image=v["image_size"], labels=n), dict(seq=0, batch=ch(1, 4, 8, 17))

def videomae():
    p, n, frames = ch(14, 16), ch(2, 10, 51), ch(8, 12, 16)
    v = dict(encoder(), patch_size=p, image_size=p * ch(7, 10, 14), num_frames=frames, tubelet_size=ch(2, 2, 4), qkv_bias=maybe(.7), use_mean_pooling=maybe(.7), **some(.3, hidden_dropout_prob=[.1], attention_probs_dropout_prob=[.1]))
    return dict(v, **classes(n)), dict(image=v["image_size"], frames=frames, labels=n), dict(seq=0)

DECODERS = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"]
TEXT = {**{t: (lambda t=t: decoder(t)) for t in DECODERS}, "gpt2": gpt2, "opt": opt, "phi": phi}
IMAGES = {"llava": llava, "llava_next": llava_next, **{t: (lambda t=t: qwen_vl(t)) for t in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")}, "cosmos3_omni": lambda: qwen_vl("qwen3_vl"), "internvl": internvl, "paligemma": paligemma,
          **{t: (lambda t=t: idefics3(t)) for t in ("idefics3", "smolvlm")}, "gemma3": gemma3, "shieldgemma2": shieldgemma2, "mllama": mllama, "blip-2": blip2}
OTHERS = {"clip": clip, "siglip": siglip, "vit": vit, "videomae": videomae}

# Families whose steps without images are simulated.
ALONE = ["llava", "llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "cosmos3_omni", "gemma3", "shieldgemma2"]

# Families left out: heads that TRL's does not replace, and decoders of translation models, which nobody tunes so.
NOT_TRL = ["bart", "plbart", "mbart", "pegasus", "marian", "blenderbot", "blenderbot-small", "bigbird_pegasus", "mvp", "trocr", "whisper", "bert", "roberta", "camembert", "xlm-roberta", "data2vec-text",
           "electra", "ernie", "bert-generation", "roberta-prelayernorm", "megatron-bert", "rembert", "xlm-roberta-xl", "roc_bert", "roformer", "big_bird", "modernbert-decoder", "cpmant", "prophetnet", "git", "blip", "blip-2", "instructblip", "instructblipvideo", "pp_chart2table"]

MORE, CASES, BUILD = {}, {}, {}  # CASES: settings that a family cannot draw; BUILD: models that transformers does not have, with what makes their batch
for group in GROUPS:
    CASES.update(getattr(group, "CASES", {}))
    TEXT.update(getattr(group, "TEXT", {})); IMAGES.update(getattr(group, "IMAGES", {})); OTHERS.update(getattr(group, "OTHERS", {})); BUILD.update(getattr(group, "BUILD", {}))
    ALONE += getattr(group, "ALONE", [])
    MORE.update({t: group.batch for t in getattr(group, "IMAGES", {})})

def draw(t):
    case = dict(model=t, batch=ch(1, 1, 2, 3, 4)); config, inputs, more = (TEXT[t](), {}, {}) if t in TEXT else {**IMAGES, **OTHERS}[t]()
    if t in IMAGES: case["images"] = inputs.setdefault("n", 1)
    n, per = inputs.get("n", 1), inputs.get("per")
    case["seq"] = ch(33, 64, 100, 128, 257, 384, 512, 777) if per is None else n * (per + 2) + R.randint(4, 200)
    autocast = [] if t in ("idefics3", "smolvlm") else ["amp-bf16", "amp-bf16"]  # which fail under it
    case.update(more, precision=ch("fp32", "bf16", "bf16", *autocast), optim=ch("adamw", "adamw_fused", "adamw_loop", "sgd", "sgdm", "adafactor", "adafactor_torch"), ckpt=ch("none", "none", "full"), attn=ch("sdpa", "sdpa", "eager"), accum=ch(1, 1, 1, 2), timed=0)
    if maybe(.25): case["clip"] = True
    if t in IMAGES: case["freeze"] = ch("none", "none", "vision", "all-but-connector", "lora"); case["freeze"] = more.get("freeze", case["freeze"])
    elif t in DECODERS[:-1]: case["freeze"] = ch("none", "none", "lora")
    if case.get("freeze") == "lora": case.update(rank=ch(8, 16), lora_dropout=ch(0.0, .05))
    case.update(CASES.get(t, {}))
    return dict(case=case, config=dict(config, model_type=t), inputs=inputs)

# Families whose fused weights of experts peft adapts.
EXPERTS = ["qwen3_moe", "mixtral", "gpt_oss", "qwen2_moe", "olmoe", "flex_olmo", "dots1", "glm4_moe", "ernie4_5_moe", "solar_open", "exaone_moe", "mellum", "qwen3_next", "qwen3_5_moe_text", "qwen3_vl_moe", "qwen3_5_moe"]

def adapted(line):
    """The same line with adapters, whose targets are names of transformers 4 and 5, and fused weights of experts."""
    names = [["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"], ["q_proj", "w1", "w2", "w3"]]
    line["case"].update(freeze="lora", rank=ch(8, 16), lora_dropout=0.0, lora_targets=ch("projections", "projections", "all-linear", "all-linear", "attention", *names), lora_experts=ch("targets", "targets", "all"), lora_dtype=ch("fp32", "fp32", "bf16"))
    return line

def trained(line):
    """The same line under transformers' Trainer."""
    c = line["case"]
    c.update(trainer="transformers", precision=ch("bf16-amp", "bf16-amp", "amp-bf16", "fp32"), optim=ch("adamw_fused", "adamw_fused", "adamw", "adafactor"), accum=ch(1, 1, 2, 3), clip=maybe(.8))
    return line

def trl(trainer):
    """The same line under a trainer of TRL; families with experts, whose balance loss it adds, and what is no language model are left out."""
    def changed(line):
        c, t = line["case"], line["config"]["model_type"]
        if t in OTHERS or "experts" in json.dumps(line["config"]) or t in NOT_TRL: return None
        c.update(trainer=trainer, precision=ch("amp-bf16", "amp-bf16", "bf16-amp", "bf16-amp", "fp32", "bf16"), optim=ch("adamw_fused", "adamw_fused", "adamw", "adafactor"), ckpt=ch("full", "full", "none"), accum=ch(1, 1, 2), clip=maybe(.8))
        if t in ("idefics3", "smolvlm"): c["precision"] = ch("fp32", "bf16")
        if c.get("freeze") != "lora": c["freeze"] = "none"
        if trainer == "trl_dpo": c["batch"] = ch(1, 1, 2)
        if maybe(.5): c["completion"] = R.randint(4, c["seq"] - 2)
        if t in DECODERS and maybe(.3): c["lengths"] = [c["seq"], *(R.randint(8, c["seq"]) for _ in range(c["batch"] - 1))]
        if trainer == "trl_dpo" and t in TEXT and maybe(.2): c["reference"] = "precomputed"
        return line
    return changed

# Families that a step of DeepSpeed is drawn of.
SHARDED = ["gpt2", "opt", "llama", "mistral", "qwen2", "qwen3", "gemma2", "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "mllama", "smolvlm"]

def sharded(line):
    """The same line on one of several GPUs under DeepSpeed's engine."""
    c = line["case"]; stage = ch(0, 0, 1, 1, 1, 2, 2, 2, 3, 3)
    c.update(strategy=f"deepspeed{stage}", world=ch(1, 2, 2, 4, 8, 8, 16, 64), precision="bf16", optim=ch("adamw", "adamw", "adamw_fused", "adamw_fused", "sgd", "sgdm"), accum=ch(1, 1, 2, 3), clip=maybe(.8))
    zero = some(.5, reduce_bucket_size=[10**5, 10**6, 10**7, 5 * 10**7]) if stage else {}
    if stage in (1, 2): zero.update(some(.25, reduce_scatter=[False]), **some(.25, round_robin_gradients=[True]), **some(.25, overlap_comm=[True]))
    if stage == 3: zero.update(some(.4, stage3_param_persistence_threshold=[0, 10**4, 10**6]), **some(.4, stage3_prefetch_bucket_size=[0, 10**5, 10**6, 10**7]),
                               **some(.4, stage3_max_live_parameters=[0, 10**6, 10**7]), **some(.3, stage3_max_reuse_distance=[0, 10**6, 10**7]), **some(.3, sub_group_size=[10**6, 10**7]), **some(.2, overlap_comm=[False]), **some(.2, reduce_scatter=[False]))
    if zero: c["zero"] = zero
    offload = ch(None, None, None, "optimizer", "optimizer,param") if stage == 3 else ch(None, None, "optimizer") if stage else None
    if offload: c["offload"] = offload
    return line

def shared(line):
    """The same line under transformers' Trainer on one of several GPUs: DDP, DeepSpeed, FSDP2 and FSDP1."""
    line = sharded(trained(line)); c = line["case"]; t = line["config"]["model_type"]
    for key in ("zero", "offload"): c.pop(key, None)
    strategy = ch("ddp", "deepspeed1", "deepspeed2", "deepspeed2", "deepspeed3", "deepspeed3", "fsdp", "fsdp", "fsdp_no_reshard", "fsdp1")
    fp16 = [] if strategy.startswith("fsdp") else ["amp-fp16"]
    low = [] if t in ("idefics3", "smolvlm") and not strategy.startswith("deepspeed") else ["amp-bf16", "bf16-amp", *fp16]
    c.update(strategy=strategy, world=ch(2, 2, 2, 3, 4, 8, 8, 16, 64), precision=ch(*low, "bf16" if not strategy.startswith("deepspeed") else "bf16-amp"), accum=ch(1, 1, 2, 3), clip=maybe(.8),
             optim=ch("adamw_fused", "adamw_fused", "adamw", "sgd", *([] if strategy.startswith("fsdp") else ["adafactor"])))
    if strategy.startswith("deepspeed"):
        zero = dict(reduce_bucket_size=ch(10**5, 10**6, 10**7, 5 * 10**7), overlap_comm=maybe(.5))
        if strategy == "deepspeed3": zero.update(stage3_param_persistence_threshold=ch(0, 10**4, 10**5), stage3_prefetch_bucket_size=ch(0, 10**5, 10**6, 10**7))
        c["zero"] = zero
        offload = ch(None, None, None, "optimizer", "optimizer,param") if strategy == "deepspeed3" else ch(None, None, "optimizer")
        if offload: c["offload"] = offload
    elif strategy.startswith("fsdp") and maybe(.2): c["offload"] = True
    return line

def combined(line):
    """One of several GPUs with what `shared` leaves out: TRL's trainers, Liger's loss, samples without images, 8-bit AdamW, fp16 under FSDP."""
    t = line["config"]["model_type"]; of_trl = t not in NOT_TRL and t not in OTHERS and "experts" not in json.dumps(line["config"])
    trainer = ch("transformers", "trl_sft", "trl_sft", "trl_dpo", "trl_dpo") if of_trl else "transformers"
    line = shared(line); c = line["case"]
    if trainer != "transformers":
        kept = {k: c[k] for k in ("precision", "optim", "accum", "clip")}
        changed = trl(trainer)(line)
        if changed is None: return None
        c.update(kept, trainer=trainer)
        if trainer == "trl_dpo" and c["strategy"] == "fsdp1": c["strategy"] = "fsdp"
    elif t in TEXT and c["strategy"] == "deepspeed3" and maybe(.5): c["loss"] = "fused_linear"
    elif t in ALONE and maybe(.6): alone(line)
    if c["strategy"].startswith("deepspeed") and not c.get("offload") and maybe(.2): c["optim"] = "adamw_8bit"
    if c["strategy"].startswith("fsdp") and t not in ("idefics3", "smolvlm") and maybe(.2): c["precision"] = "amp-fp16"
    return line

# Families whose parameters and parts `parted` freezes and adapts.
PARTED = ["gpt2", "opt", "phi", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "llava", "llava_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "internvl", "paligemma",
          "idefics3", "smolvlm", "gemma3", "mllama"]

def parted(line):
    """The same line with parts of it changed as tools do: what is frozen, by part and by name, DoRA, smoothed labels, Muon, under a loop and under transformers' Trainer."""
    c = line["case"]; t = c["model"]; text = t in TEXT
    for key in ("rank", "lora_dropout"): c.pop(key, None)
    if maybe(.5):
        line = trained(line); c["ckpt"] = ch("none", "full")
        if t in ("idefics3", "smolvlm"): c["precision"] = ch("fp32", "bf16")
        if text and maybe(.3): c["loss"] = "smoothed"
        if maybe(.3): c["neftune"] = True
    elif maybe(.25): c["optim"] = "muon"
    if c["ckpt"] == "full" and maybe(.3): c["reentrant"] = True
    kind = ch("dora", "dora", "names", "names", "parts") if t != "gpt2" else "names"
    c["freeze"] = "none"
    if kind == "dora":
        targets = ch("all-linear", ["q_proj", "v_proj"]) if t in ("opt", "phi", "phi3") else ch("projections", "attention", "all-linear", ["q_proj", "v_proj", "down_proj"])
        if targets == "attention" and not text: targets = ["q_proj", "k_proj", "v_proj", "o_proj"]  # names, which towers have too
        if t == "phi3": targets = ch("all-linear", ["qkv_proj", "down_proj"])
        c.update(freeze="lora", dora=True, rank=ch(8, 16), lora_dropout=ch(0.0, 0.0, .05), lora_targets=targets, lora_dtype=ch("fp32", "fp32", "bf16"))
    elif not text: c["freeze"] = ch("none", "vision", "connector", "all-but-language", "language", "all-but-vision", "all-but-connector")
    if kind == "names":
        frozen = [r"(layers|h)\.0\.", r"(layers|h)\.[02]\.", "embed_tokens|wte", "norm|ln_", "mlp", "self_attn|attn", r"\.bias$"]
        names = [r"(layers|h)\.0\.", r"norm|ln_", "down_proj|c_proj|fc2", "v_proj|c_attn|qkv_proj"]
        if maybe(.5) or c["freeze"] == "none": c["frozen_names"] = " ".join(R.sample(frozen, R.randint(1, 2)))
        if c["freeze"] != "none" or maybe(.3): c["trained_names"] = ch(*names)
        if text and maybe(.3): c.update(frozen_names=".", trained_names=" ".join(R.sample(names, R.randint(1, 2))))
    return line

def shared_parted(line):
    """The same line with parts changed, under transformers' Trainer on one of several GPUs; FSDP1 takes no parameters of which only some train."""
    line = parted(line); c = line["case"]; kept = {k: c[k] for k in ("precision", "accum", "clip") if k in c}
    line = shared(line); c = line["case"]; c.update({k: v for k, v in kept.items() if k == "accum"})
    if c["strategy"] == "fsdp1" and (c.get("frozen_names") or c.get("trained_names") or c["freeze"] != "none"): c["strategy"] = "fsdp"
    if c.get("dora") and c.get("optim") == "adafactor" and c["strategy"].startswith("fsdp"): c["optim"] = "adamw_fused"
    c.setdefault("clip", True)
    return line

# bitsandbytes' optimizers.
BITS = ["adamw_8bit", "adamw_8bit", "paged_adamw_8bit", "paged_adamw", "lion_8bit", "lion_8bit", "lion", "paged_lion", "paged_lion_8bit"]

def bits(line):
    """The same line with what bitsandbytes does: weights in 4 bits or not, and its optimizers, under a loop and under transformers' Trainer."""
    c = line["case"]; t = c["model"]; text = t in TEXT
    for key in ("rank", "lora_dropout"): c.pop(key, None)
    is_trainers = maybe(.5)
    if is_trainers: line = trained(line); c["ckpt"] = ch("none", "full")
    c.update(optim=ch(*BITS), freeze="none")
    if t in ("idefics3", "smolvlm"): c["precision"] = "bf16"  # which fail under autocast
    elif maybe(.6) and t != "gpt2":  # whose projections are no linear layers
        c.update(freeze="qlora", rank=ch(8, 16), lora_dropout=ch(0.0, .05), lora_targets=ch("all-linear", ["q_proj", "v_proj"] if t != "phi3" else ["qkv_proj"]), precision=ch("amp-bf16", "bf16") if text and not is_trainers else "amp-bf16")
        if maybe(.4): c["optim"] = ch("adamw", "adamw_fused")
    if c["ckpt"] == "full" and maybe(.3): c["reentrant"] = True
    return line

def trl_bits(line):
    """The same line with weights in 4 bits under a trainer of TRL."""
    t = line["config"]["model_type"]
    if t == "gpt2" or t in NOT_TRL: return None
    line["case"].update(freeze="lora", rank=ch(8, 16), lora_dropout=ch(0.0, .05))
    line = trl(ch("trl_sft", "trl_sft", "trl_dpo"))(line)
    if line: line["case"].update(freeze="qlora", precision="bf16-amp", optim=ch("adamw_fused", "adamw", *BITS))
    return line

# Modules that families which adapters are put on have beside their tables and heads.
CONNECTORS = dict(llava="multi_modal_projector", llava_next="multi_modal_projector", internvl="multi_modal_projector", paligemma="multi_modal_projector", gemma3="multi_modal_projector", idefics3="connector", smolvlm="connector",
                  qwen2_vl="merger", qwen2_5_vl="merger")

def saved(line):
    """The same line with adapters, and tables, heads and connectors trained in full beside them, under a loop, transformers' Trainer and TRL's SFT."""
    c = line["case"]; t = c["model"]
    if t == "gpt2": return None  # whose projections are no linear layers
    for key in ("rank", "lora_dropout"): c.pop(key, None)
    trainer = ch("loop", "transformers", "trl_sft") if t not in NOT_TRL else ch("loop", "transformers")
    if trainer == "transformers": line = trained(line); c["ckpt"] = ch("none", "full")
    if t in ("idefics3", "smolvlm"): c["precision"] = ch("fp32", "bf16")  # which fail under autocast
    c.update(freeze="lora", rank=ch(8, 16), lora_dropout=ch(0.0, .05), lora_targets=ch("all-linear", ["q_proj", "v_proj"] if t != "phi3" else ["qkv_proj"]))
    if trainer == "trl_sft":
        c.pop("lora_targets")
        line = trl("trl_sft")(line)
        if line is None: return None
        c = line["case"]; c["freeze"] = "lora"
    c["saved_modules"] = ch("embed_tokens", "lm_head", "embed_tokens lm_head", "lm_head embed_tokens", CONNECTORS.get(t, "lm_head"), "embed_tokens " + CONNECTORS.get(t, "norm"))
    if trainer != "trl_sft" and maybe(.3): c["saved_dtype"] = "fp32"
    if c["ckpt"] == "full" and maybe(.3): c["reentrant"] = True
    return line

def alone(line):
    """The same line without images."""
    c = line["case"]; c.update(images=0, seq=ch(33, 64, 100, 257, 384), freeze=ch("none", "none", "vision", "lora")); line["inputs"]["n"] = 0
    if c["freeze"] == "lora": c.update(rank=ch(8, 16), lora_dropout=ch(0.0, .05))
    return line

def maker(line):
    """`build` of measure.py for this configuration."""
    import torch, transformers, measure
    config, given, t = line["config"], line["inputs"], line["config"]["model_type"]
    def build(c, g):
        if t in BUILD: return BUILD[t](config, given, c, g)
        rest = copy.deepcopy(config); rest.pop("model_type"); cfg = transformers.AutoConfig.for_model(t, **rest)
        for part in (cfg, getattr(cfg, "text_config", None)):
            if part is not None: part.use_cache = False
        cls = dict(clip=transformers.CLIPModel, siglip=transformers.SiglipModel, vit=transformers.ViTForImageClassification, videomae=transformers.VideoMAEForVideoClassification, mistral4=getattr(transformers, "Mistral4ForCausalLM", None)).get(t)  # Mistral 4 has no AutoModelForCausalLM
        is_text = given.get("kind", "lm" if t in TEXT else "itt") == "lm"  # some are of both kinds
        auto = transformers.AutoModelForCausalLM if is_text else transformers.AutoModelForImageTextToText
        B, S, n, im = c["batch"], c["seq"], given.get("n", 1), given.get("image")
        pixels = lambda *shape: torch.randn(*shape, device="cuda", generator=g)
        full = lambda *shape: torch.ones(*shape, dtype=torch.long, device="cuda")
        def text(top, token=32000, start=1):
            x = measure.ids(B, S, top, g)
            if "per" in given: x = measure.put_images(x, n, given["per"], token, start=start)
            return x, dict(input_ids=x, labels=x.clone(), attention_mask=torch.ones_like(x))
        def inp():
            if t in ("vit", "videomae"):
                shape = (B, 3, im, im) if t == "vit" else (B, given["frames"], 3, im, im)
                return dict(pixel_values=pixels(*shape), labels=torch.randint(0, given["labels"], (B,), device="cuda", generator=g))
            if t in ("clip", "siglip"):
                x = measure.ids(B, S, given["vocab"], g)
                return dict(input_ids=x, pixel_values=pixels(B, 3, im, im), return_loss=True, **(dict(attention_mask=torch.ones_like(x)) if t == "clip" else {}))
            if t in TEXT: return text(given.get("vocab", config.get("vocab_size")))[1]
            x, o = text(min(31000, given.get("vocab", 31000)), given.get("token", 32000), 0 if t in ("paligemma", "blip-2") else 1)
            if n == 0: return dict(o, token_type_ids=torch.zeros_like(x)) if t in ("gemma3", "shieldgemma2") else o  # text alone
            if t in MORE: return dict(o, **MORE[t](config, given, c, x, pixels))
            if t.startswith("qwen") or t == "cosmos3_omni":
                h, w = c["grid"]; per = given["per"]
                for i in range(n): x[:, i * (per + 2)] = config["vision_start_token_id"]; x[:, i * (per + 2) + 1 + per] = config["vision_end_token_id"]
                return dict(o, labels=x.clone(), pixel_values=pixels(B * n * h * w, given["patch"]), image_grid_thw=torch.tensor([[1, h, w]] * (B * n), device="cuda"), mm_token_type_ids=(x == given["token"]).int())
            if t == "mllama":
                T = given["tiles"]
                return dict(o, pixel_values=pixels(B, 1, T, 3, im, im), aspect_ratio_ids=torch.full((B, 1), given["ratio"], device="cuda"), aspect_ratio_mask=full(B, 1, T), cross_attention_mask=full(B, S, 1, T))
            if t in ("gemma3", "shieldgemma2"): o["token_type_ids"] = (x == 32000).long()
            if t == "paligemma": o["token_type_ids"] = torch.zeros_like(x)
            if t == "llava_next": return dict(o, pixel_values=pixels(B, given["tiles"], 3, im, im), image_sizes=torch.tensor([[given["pixels"]] * 2] * B, device="cuda"))
            return dict(o, pixel_values=pixels(B, n, 3, im, im) if t in ("idefics3", "smolvlm") else pixels(B * n, 3, im, im))
        torch.set_default_dtype(measure.DT["fp32" if c["precision"].startswith("amp") else c["precision"]])
        with torch.device("cuda"):
            model = cls._from_config(cfg, attn_implementation=c["attn"]) if cls else auto.from_config(cfg, attn_implementation=c["attn"])
        torch.set_default_dtype(torch.float32)
        if c.get("freeze") == "qlora":
            folder = tempfile.mkdtemp(); model.save_pretrained(folder)
            del model; gc.collect(); torch.cuda.empty_cache()
            quantised = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
            model = (cls or auto).from_pretrained(folder, dtype=torch.bfloat16, attn_implementation=c["attn"], quantization_config=quantised, device_map={"": 0})
            shutil.rmtree(folder)
        model.train()
        return model, inp
    return build

def one(line, to):
    import torch, measure
    torch.backends.cuda.matmul.allow_tf32 = False; measure.build = maker(line)
    try:
        if line["case"].get("trainer", "").startswith("trl"):
            import trl_runs
            r = trl_runs.run(line["case"], measure.build)
        elif line["case"].get("trainer") or line["case"].get("strategy"):
            import fronts
            r = (fronts.run_deepspeed if line["case"].get("strategy") else fronts.run_trainer)(line["case"])
        else: r = measure.run(line["case"])
    except torch.cuda.OutOfMemoryError as e: r = dict(oom=str(e))
    except Exception as e: r = dict(error=repr(e)[:300], tb=traceback.format_exc()[-600:])
    # what the GPU holds outside PyTorch is of all that run at once
    with open(to, "w") as f: json.dump(dict(line, **{k: v for k, v in r.items() if k not in ("case", "outside_torch", "device_total")}, process="own"), f)

def run(cases, to, deadline):
    import torch, transformers, measure  # once, before each process is forked; CUDA only after it
    lines = [json.loads(l) for l in open(cases)]
    if any(l["case"].get("trainer", "").startswith("trl") and l["case"].get("freeze") != "qlora" for l in lines): import datasets, peft, trl  # peft imports bitsandbytes where it is, which makes a context of CUDA: not before a fork
    folder = tempfile.mkdtemp(); context = multiprocessing.get_context("fork"); live = {}; i = 0
    file = lambda i: os.path.join(folder, f"{i}.json")
    most = 6 if any("strategy" in line["case"] for line in lines) else 12  # DeepSpeed's buffers are of a gigabyte or two
    while i < len(lines) or live:
        for p in [p for p in live if not p.is_alive()]: p.join(); print(live.pop(p), end=" ", flush=True)
        if i < len(lines) and len(live) < most and time.time() < deadline:
            p = context.Process(target=one, args=(lines[i], file(i))); p.start(); live[p] = i; i += 1
        elif i < len(lines) and not live: print("deadline at", i, len(lines)); break
        time.sleep(.01)
    with open(to, "w") as out:
        out.write(json.dumps(dict(env=dict(torch=torch.__version__, transformers=transformers.__version__, cuda=torch.version.cuda, gpu=torch.cuda.get_device_name()))) + "\n")
        for n, line in enumerate(lines[:i]):
            r = open(file(n)).read() if os.path.exists(file(n)) else json.dumps(dict(line, error="the process ended without a result"))
            out.write(r + "\n"); r = json.loads(r)
            if "error" in r or "oom" in r: print("\n", n, r["case"]["model"], r.get("error", "out of memory"), flush=True)

if __name__ == "__main__":
    if sys.argv[1] == "draw":
        R.seed(int(sys.argv[2])); changed = {"trainer": trained, "alone": alone, "adapted": adapted, "trl_sft": trl("trl_sft"), "trl_dpo": trl("trl_dpo"), "trl": trl("trl_sft"), "deepspeed": sharded, "shared": shared, "combined": combined, "parts": parted, "shared_parts": shared_parted, "bits": bits, "trl_bits": trl_bits, "saved": saved}.get(sys.argv[5] if len(sys.argv) > 5 else None, lambda line: line)
        with open(sys.argv[4], "w") as out:
            families = ALONE if changed is alone else EXPERTS if changed is adapted else SHARDED if changed is sharded else PARTED if changed in (parted, shared_parted, bits, trl_bits, saved) else [*TEXT, *IMAGES] if changed in (shared, combined) else [*TEXT, *IMAGES, *OTHERS]
            for at, t in enumerate(families):
                for line in filter(None, (changed(draw(t)) for _ in range(int(sys.argv[3])))): out.write(json.dumps(line) + "\n")
                if sys.argv[5:] == ["trl"] and at % 2 == 0:
                    for line in filter(None, [trl("trl_dpo")(draw(t))]): out.write(json.dumps(line) + "\n")
    else: run(sys.argv[2], sys.argv[3], time.time() + float(sys.argv[4] if len(sys.argv) > 4 else 560))
