"""Models with images whose modules are mostly their own."""
from .common import R, V, ch, clip_vision, encoder, maybe, some


def kosmos_text(**more):
    e = encoder(); h = e["hidden_size"]
    return dict(vocab_size=ch(32064, 50001), embed_dim=h, attention_heads=e["num_attention_heads"], layers=e["num_hidden_layers"], ffn_dim=e["intermediate_size"], max_position_embeddings=ch(1024, 2048), activation_function=ch("gelu", "relu", "gelu_new"),
                **some(.5, dropout=[0.0, .2], attention_dropout=[0.0, .2]), **some(.3, activation_dropout=[.1], scale_embedding=[False], pad_token_id=[0, 3]), **more)

def kosmos2():
    """Its projection goes by a name that `freeze` does not know."""
    v, k, tie = clip_vision(), ch(4, 17, 64), maybe(.6); v["model_type"] = "kosmos_2_vision_model"; del v["projection_dim"]
    config = dict(vision_config=v, text_config=kosmos_text(tie_word_embeddings=tie), latent_query_num=k, tie_word_embeddings=tie)
    return config, dict(per=k, image=v["image_size"]), dict(freeze=ch("none", "none", "vision"))


def kosmos2_5():
    """Its projection goes by a name that `freeze` does not know, and its patches by one that `cast` does not."""
    e, k, tie, p = encoder(), ch(4, 17, 64), maybe(.6), ch(192, 768); t = dict(kosmos_text(tie_word_embeddings=tie)); t.update(some(.3, attention_dropout=[.1]))
    v = dict(hidden_size=ch(256, 384, 640), intermediate_size=ch(512, 1000), num_attention_heads=e["num_attention_heads"], head_dim=ch(32, 64), num_hidden_layers=R.randint(1, 5), patch_embed_hidden_size=p, max_num_patches=ch(64, 100, 256, 333), dense_act_fn=ch("gelu_new", "gelu", "relu"),
             **some(.3, dropout_rate=[.1], attention_dropout=[.1]))
    return dict(vision_config=v, text_config=t, latent_query_num=k, tie_word_embeddings=tie), dict(per=k), dict(freeze=ch("none", "none", "vision"))

def llama4_text():
    """Few experts: all take every token."""
    kv = ch(1, 2, 4); heads, d, n, e = kv * ch(1, 2, 4), ch(32, 48, 64, 128), R.randint(1, 5), ch(1, 2, 4, 6); h = ch(256, 384, 520, 768)
    return dict(model_type="llama4_text", vocab_size=V, hidden_size=h, intermediate_size=ch(256, 500, 1024), intermediate_size_mlp=ch(512, 1000), num_hidden_layers=n, num_attention_heads=heads, num_key_value_heads=kv, head_dim=d, max_position_embeddings=4096,
                num_local_experts=e, num_experts_per_tok=R.randint(1, min(e, 3)), attention_chunk_size=ch(16, 64, 8192), tie_word_embeddings=maybe(.3), hidden_act=ch("silu", "silu", "gelu"), no_rope_layer_interval=ch(1, 2, 3, 4), interleave_moe_layer_step=ch(1, 1, 2),
                **some(.3, use_qk_norm=[False], attn_temperature_tuning=[False], attention_bias=[True], attention_dropout=[.1]), **some(.2, moe_layers=[[], [0]]))

def llama4():
    p, k = ch(14, 16), ch(2, 2, 4); s, heads, d, out = k * ch(3, 4, 6), ch(2, 4, 8), ch(32, 64, 80), ch(256, 384); h = heads * d; t = llama4_text()
    v = dict(hidden_size=h, num_attention_heads=heads, num_hidden_layers=R.randint(1, 4), intermediate_size=h * k * k, image_size=p * s, patch_size=p, pixel_shuffle_ratio=1 / k, projector_input_dim=out, projector_output_dim=out, vision_output_dim=out, **some(.3, projector_dropout=[.1], attention_dropout=[.1]))
    return dict(vision_config=v, text_config=t, image_token_index=32000, tie_word_embeddings=t["tie_word_embeddings"]), dict(per=(s // k) ** 2, image=p * s, n=ch(1, 2, 3)), dict(freeze=ch("none", "none", "vision", "all-but-connector"))


def idefics():
    """Its constructor freezes parts; `freeze` would choose others."""
    e, v, n = encoder(2), clip_vision(), R.randint(1, 4); h = e["hidden_size"]; del v["projection_dim"]; v["model_type"] = "idefics_vision"; v["embed_dim"] = v.pop("hidden_size")
    interval = ch(1, 1, 2); e["num_hidden_layers"] = n * interval
    config = dict(e, vision_config=v, vocab_size=V, cross_layer_interval=interval, max_position_embeddings=2048, hidden_act=ch("silu", "gelu"), tie_word_embeddings=maybe(.3), alpha_type=ch("float", "vector"), alpha_initializer=ch("zeros", "ones"), pad_token_id=0,
                  **some(.5, qk_layer_norms=[True], dropout=[.1], freeze_text_layers=[False], freeze_vision_layers=[False]), **some(.3, freeze_lm_head=[True]))
    return config, dict(image=v["image_size"], n=ch(1, 1, 2, 3)), dict(freeze="none")


TEXT = {"llama4_text": llama4_text}
IMAGES = {"kosmos-2": kosmos2, "kosmos-2.5": kosmos2_5, "llama4": llama4, "idefics": idefics}


def batch(config, given, case, ids, pixels):
    t, n = config["model_type"], given["n"]; count, i = case["batch"] * n, given.get("image")
    if t == "kosmos-2":
        mask = (ids == 32000).long()
        return dict(image_embeds_position_mask=mask, pixel_values=pixels(count, 3, i, i))
    if t == "idefics":
        import torch
        return dict(image_attention_mask=torch.ones(*ids.shape, n, dtype=torch.long, device="cuda"), pixel_values=pixels(case["batch"], n, 3, i, i))
    if t == "kosmos-2.5":
        v = config["vision_config"]; mask = (ids == 32000).long(); x = pixels(count, v["max_num_patches"], v["patch_embed_hidden_size"] + 2); x[:, :, :2] = 1
        return dict(image_embeds_position_mask=mask, flattened_patches=x.bfloat16() if case["precision"] == "bf16" else x)
    return dict(pixel_values=pixels(count, 3, i, i))
