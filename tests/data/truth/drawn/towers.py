"""Models of images whose queries, relative positions or convolutions are their own."""
from .common import R, V, ch, encoder, maybe, some
from .dense import dense

def aria():
    """Queries attend to what the tower makes of an image."""
    t = dense("aria_text"); t.update(vocab_size=V, pad_token_id=0, intermediate_size=ch(64, 128), moe_num_experts=ch(4, 8), moe_topk=ch(1, 2), moe_num_shared_experts=ch(1, 2)); e, p, s, k = encoder(2), ch(14, 16), ch(4, 8), ch(4, 16)
    vision = dict(e, model_type="idefics3_vision", patch_size=p, image_size=p * s, hidden_act=ch("gelu_pytorch_tanh", "gelu"), **some(.3, attention_dropout=[.1]))
    return dict(vision_config=vision, text_config=t, projector_patch_to_query_dict={str(s * s): k, "4": ch(1, 32)}, image_token_index=32000, vision_feature_layer=ch(-1, -1, -2), tie_word_embeddings=maybe(.3)), dict(per=k, image=p * s, n=ch(1, 1, 2)), dict(freeze="none")

def pix2struct():
    """The decoder's projections are as wide as the stream, and the patches are as many as its processor makes."""
    heads, d = ch(4, 8), ch(32, 64); h = heads * d; act = ch("gelu_new", "gelu_new", "relu", "gelu")
    text = dict(model_type="pix2struct_text_model", vocab_size=ch(1000, 50244), hidden_size=h, d_kv=d, d_ff=ch(128, 704), num_layers=R.randint(1, 3), num_heads=heads, dense_act_fn=act, relative_attention_num_buckets=ch(16, 32), tie_word_embeddings=maybe(.4), **some(.4, dropout_rate=[0.0]))
    vision = dict(model_type="pix2struct_vision_model", hidden_size=h, d_kv=ch(d, d, 32, 64), d_ff=ch(128, 704), num_hidden_layers=R.randint(1, 3), num_attention_heads=ch(heads, 2 * heads), patch_embed_hidden_size=ch(300, 768), dense_act_fn=ch("gelu_new", "gelu"), seq_len=ch(1024, 4096), **some(.3, dropout_rate=[.1]), **some(.3, attention_dropout=[.1]))
    return dict(text_config=text, vision_config=vision, is_vqa=maybe(.5), tie_word_embeddings=text["tie_word_embeddings"]), dict(patch=vision["patch_embed_hidden_size"]), dict(freeze="none", ckpt="none", batch=ch(1, 2), seq=ch(33, 64, 100))

def made_pix2struct(config, given, case, generator):
    """Its batch has no ids: the decoder's are made of the labels."""
    import measure, torch, transformers
    c = transformers.AutoConfig.for_model("pix2struct", **{k: v for k, v in config.items() if k != "model_type"}); B, S = case["batch"], case["seq"]
    torch.set_default_dtype(measure.DT["fp32" if case["precision"].startswith("amp") else case["precision"]])
    with torch.device("cuda"): model = transformers.Pix2StructForConditionalGeneration._from_config(c, attn_implementation=case["attn"])
    torch.set_default_dtype(torch.float32); model.train(); dtype = measure.DT.get(case["precision"], torch.float32)
    def inp():
        x = torch.randn(B, 2048, 2 + given["patch"], device="cuda", generator=generator).to(dtype)
        return dict(flattened_patches=x, attention_mask=torch.ones(B, 2048, device="cuda"), labels=measure.ids(B, S, config["text_config"]["vocab_size"], generator))
    return model, inp

def pp_formulanet():
    """SAM's tower and MBart's decoder."""
    heads, h, side = ch(2, 4, 8), ch(128, 256), ch(8, 12, 16); out = ch(64, 256); layers = R.randint(2, 4); e = ch(64, 96, 128)
    vision = dict(model_type="pp_formulanet_vision", hidden_size=2 * e, output_channels=out, num_hidden_layers=layers, num_attention_heads=ch(2, 4), image_size=16 * side, patch_size=16, hidden_act=ch("gelu", "gelu", "relu"), qkv_bias=maybe(.7), use_abs_pos=maybe(.7), use_rel_pos=maybe(.7), window_size=ch(4, 7, 14),
                  global_attn_indexes=sorted(R.sample(range(layers), ch(1, 2))), mlp_dim=ch(256, 704), post_conv_in_channels=out, post_conv_mid_channels=ch(64, 128), post_conv_out_channels=ch(128, 256), decoder_hidden_size=h, **some(.3, attention_dropout=[.1]))
    text = dict(model_type="pp_formulanet_text", vocab_size=V, d_model=h, decoder_layers=R.randint(1, 3), decoder_attention_heads=heads, decoder_ffn_dim=ch(256, 704), max_position_embeddings=ch(1024, 2560), activation_function=ch("gelu", "gelu", "relu"), scale_embedding=maybe(.5), **some(.4, dropout=[0.0]), **some(.3, attention_dropout=[.1], activation_dropout=[.1]))
    return dict(text_config=text, vision_config=vision), dict(image=16 * side), dict(freeze="none", seq=ch(33, 64, 100))

def batch(config, given, case, ids, pixels):
    return dict(pixel_values=pixels(case["batch"] * given["n"], 3, given["image"], given["image"]))

IMAGES = dict(aria=aria, pix2struct=pix2struct, pp_formulanet=pp_formulanet)
BUILD = dict(pix2struct=made_pix2struct)
CASES = {t: dict(freeze="none") for t in IMAGES}
