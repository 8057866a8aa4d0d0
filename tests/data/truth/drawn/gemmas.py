"""Gemma's newer families."""
from .common import R, VOCABS, ch, maybe, some


def gemma4_text(vocab=None):
    kv = ch(1, 2, 4); heads, d, layers = kv * ch(1, 2, 4), ch(64, 96, 128, 256), R.randint(2, 6); hidden = ch(512, 768, 1152, 1536)
    kinds = [ch("sliding_attention", "sliding_attention", "full_attention") for _ in range(layers - 1)] + ["full_attention"]
    # Layers that share keys and values need one of their kind before them.
    shared = ch(0, 0, *(n for n in range(1, layers) if set(kinds[layers - n:]) <= set(kinds[:layers - n])))
    c = dict(model_type="gemma4_text", vocab_size=vocab or R.choice(VOCABS), hidden_size=hidden, intermediate_size=hidden * ch(2, 3, 4), num_hidden_layers=layers, num_attention_heads=heads,
             num_key_value_heads=kv, head_dim=d, global_head_dim=ch(d, 2 * d, 64), hidden_activation=ch("gelu_pytorch_tanh", "gelu", "silu"), max_position_embeddings=4096, tie_word_embeddings=maybe(.6),
             layer_types=kinds, sliding_window=ch(64, 256, 1024), num_kv_shared_layers=shared, use_double_wide_mlp=maybe(.4), hidden_size_per_layer_input=ch(0, 64, 96, 256),
             **some(.3, attention_bias=[True], attention_dropout=[.1]), **some(.4, attention_k_eq_v=[True], final_logit_softcapping=[30.0]))
    if c.get("attention_k_eq_v"): c.update(some(.6, num_global_key_value_heads=[1, kv]))
    c["vocab_size_per_layer_input"] = c["vocab_size"]
    return c


TEXT = {"gemma4_text": gemma4_text}


def batch(config, given, case, ids, pixels):
    raise NotImplementedError
