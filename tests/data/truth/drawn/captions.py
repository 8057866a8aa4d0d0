"""Captioning models, and others whose towers or text are of their own kind."""
from .common import R, V, ch, encoder, maybe, some


def opt():
    heads, d = ch(4, 8, 12, 16), ch(32, 64, 80, 128); h = heads * d
    return dict(model_type="opt", vocab_size=50304, hidden_size=h, num_attention_heads=heads, num_hidden_layers=R.randint(1, 5), ffn_dim=h * ch(2, 4), max_position_embeddings=2048, word_embed_proj_dim=ch(h, h, h // 2),
                do_layer_norm_before=maybe(.7), activation_function=ch("relu", "gelu"), tie_word_embeddings=maybe(.7), **some(.4, dropout=[0.0, .2]), **some(.3, attention_dropout=[.1]), **some(.2, enable_bias=[False], layer_norm_elementwise_affine=[False]))

def instructblip(t="instructblip"):
    """The querying transformer reads what the language model reads beside the image."""
    p, s, k, frames = ch(14, 16), ch(8, 16), ch(8, 16, 32), 4 if t == "instructblipvideo" else 1
    vision = dict(model_type=t + "_vision_model", **encoder(2), image_size=p * s, patch_size=p, qkv_bias=maybe(.7), hidden_act=ch("gelu", "quick_gelu"), **some(.2, attention_dropout=[.1]))
    queries = dict(model_type=t + "_qformer", **encoder(2), cross_attention_frequency=ch(1, 2, 3), vocab_size=ch(1000, 30523), max_position_embeddings=ch(256, 512), hidden_act=ch("gelu", "relu"), **some(.4, hidden_dropout_prob=[0.0], attention_probs_dropout_prob=[0.0]))
    config = dict(vision_config=vision, qformer_config=queries, text_config=opt(), num_query_tokens=k, **{"video_token_index" if frames > 1 else "image_token_index": 50265})
    return config, dict(per=k * frames, token=50265, image=p * s), {}

def blip():
    """Attention is written out in both parts, which have no names for adapters."""
    p, s = ch(14, 16), ch(8, 16); t = dict(model_type="blip_text_model", **encoder(), vocab_size=V, max_position_embeddings=512, hidden_act=ch("gelu", "relu"), bos_token_id=1, **some(.4, hidden_dropout_prob=[.1], attention_probs_dropout_prob=[.1]))
    v = dict(model_type="blip_vision_model", **encoder(), patch_size=p, image_size=p * s, hidden_act=ch("gelu", "quick_gelu"), **some(.3, attention_dropout=[.1]))
    return dict(vision_config=v, text_config=t), dict(image=p * s), dict(freeze=ch("none", "none", "vision"), seq=ch(33, 64, 100, 257, 384))

def git():
    """The image comes before the text; attention of the text is written out."""
    p, s = ch(14, 16), ch(8, 16); v = dict(model_type="git_vision_model", **encoder(), patch_size=p, image_size=p * s, hidden_act=ch("quick_gelu", "gelu"), **some(.3, attention_dropout=[.1]))
    config = dict(vision_config=v, **encoder(), vocab_size=V, max_position_embeddings=ch(512, 1024), hidden_act=ch("gelu", "relu"), tie_word_embeddings=maybe(.4), **some(.4, hidden_dropout_prob=[0.0], attention_probs_dropout_prob=[0.0]))
    return config, dict(image=p * s), dict(freeze=ch("none", "none", "vision"), seq=ch(33, 64, 100, 257, 384))


IMAGES = {"git": git, "blip": blip, "instructblip": instructblip, "instructblipvideo": lambda: instructblip("instructblipvideo")}

CASES = {"git": dict(attn="eager"), "blip": dict(attn="eager")}


def batch(config, given, case, ids, pixels):
    import torch
    t, i, size = config["model_type"], given.get("image"), case["batch"]
    if t.startswith("instructblip"):
        frames = (4,) if t.endswith("video") else (); q = config["qformer_config"]
        x = pixels(size, *frames, 3, i, i); text = torch.randint(1, q["vocab_size"], (size, case["seq"] - given["per"]), device="cuda")
        return dict(pixel_values=x, qformer_input_ids=text, qformer_attention_mask=torch.ones_like(text))
    return dict(pixel_values=pixels(size, 3, i, i))
