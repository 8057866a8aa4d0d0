"""Models with images whose modules are mostly their own."""
from .common import R, V, ch, clip_vision, decoder, encoder, maybe, side, siglip_vision, some


def kosmos_text(**more):
    e = encoder(); h = e["hidden_size"]
    return dict(vocab_size=ch(32064, 50001), embed_dim=h, attention_heads=e["num_attention_heads"], layers=e["num_hidden_layers"], ffn_dim=e["intermediate_size"], max_position_embeddings=ch(1024, 2048), activation_function=ch("gelu", "relu", "gelu_new"),
                **some(.5, dropout=[0.0, .2], attention_dropout=[0.0, .2]), **some(.3, activation_dropout=[.1], scale_embedding=[False], pad_token_id=[0, 3]), **more)

def kosmos2():
    """Its projection goes by a name that `freeze` does not know."""
    v, k, tie = clip_vision(), ch(4, 17, 64), maybe(.6); v["model_type"] = "kosmos_2_vision_model"; del v["projection_dim"]
    config = dict(vision_config=v, text_config=kosmos_text(tie_word_embeddings=tie), latent_query_num=k, tie_word_embeddings=tie)
    return config, dict(per=k, image=v["image_size"]), dict(freeze=ch("none", "none", "vision"))


IMAGES = {"kosmos-2": kosmos2}


def batch(config, given, case, ids, pixels):
    t, n = config["model_type"], given["n"]; count, i = case["batch"] * n, given.get("image")
    if t == "kosmos-2":
        mask = (ids == 32000).long()
        return dict(image_embeds_position_mask=mask, pixel_values=pixels(count, 3, i, i))
    return dict(pixel_values=pixels(count, 3, i, i))
