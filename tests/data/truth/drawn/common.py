"""Chance, and the sizes of decoders and vision towers that families share."""
import random

R = random.Random()
def ch(*of): return R.choice(of)
def maybe(p): return R.random() < p
def some(p, **keys): return {k: R.choice(v) for k, v in keys.items() if maybe(p)}

HEAD_DIMS = [32, 48, 64, 64, 72, 80, 88, 96, 128, 128, 160, 192, 256]
VOCABS = [1000, 32000, 32064, 50257, 49152, 64000, 100352, 151936]
V = 32064  # of language models within others; the image token is 32000

def rope():
    kind = ch(None, None, "linear", "dynamic", "yarn", "llama3")
    more = dict(linear=dict(factor=4.0), dynamic=dict(factor=2.0), yarn=dict(factor=4.0, original_max_position_embeddings=512),
                llama3=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=512))
    return {} if kind is None else dict(rope_scaling=dict(rope_type=kind, rope_theta=10000.0, **more[kind]))

def decoder(t, vocab=None, layers=None):
    kv, times = ch(1, 2, 4, 8), ch(1, 1, 2, 3, 4, 7)
    while kv * times > 32: kv //= 2
    heads, d = kv * times, R.choice(HEAD_DIMS)
    while heads * d > 4096: d //= 2
    explicit = t in ("qwen3", "gemma", "gemma2", "gemma3_text") or (t in ("llama", "mistral", "qwen2") and maybe(.3))
    hidden = heads * d
    if explicit:  # some classes ask for a multiple of the heads even so
        hidden = ch(512, 576, 768, 896, 1024, 1152, 1536, 2048, 2304)
        if t in ("llama", "gemma2", "gemma3_text"): hidden = -(-hidden // (heads * 8)) * heads * 8
    c = dict(model_type=t, vocab_size=vocab or R.choice(VOCABS), hidden_size=hidden,
             intermediate_size=ch(hidden * 2, hidden * 4, int(hidden * 2.75) // 8 * 8, hidden * 3 + 40),
             num_hidden_layers=layers or R.randint(1, 6), num_attention_heads=heads, num_key_value_heads=kv,
             max_position_embeddings=ch(1024, 2048, 4096, 8192), tie_word_embeddings=maybe(.5), **some(.25, attention_dropout=[0.1]))
    if explicit: c["head_dim"] = d
    if t in ("gemma2", "gemma3_text"): c.update(hidden_activation=ch("gelu_pytorch_tanh", "gelu", "silu"), query_pre_attn_scalar=d, sliding_window=ch(64, 256, 1024))
    else: c["hidden_act"] = ch("silu", "silu", "gelu", "gelu_pytorch_tanh", "relu")
    if t in ("llama", "qwen3", "gemma", "gemma2", "gemma3_text"): c.update(some(.4, attention_bias=[True]))
    if t == "llama": c.update(some(.3, mlp_bias=[True]))
    if t in ("llama", "mistral", "qwen2", "qwen3"): c.update(rope())
    if t == "mistral": c["sliding_window"] = ch(None, 128, 512, 4096)
    if t in ("qwen2", "qwen3") and maybe(.5):
        full = R.randint(0, c["num_hidden_layers"])
        c.update(use_sliding_window=True, sliding_window=ch(128, 512), max_window_layers=full,
                 layer_types=["sliding_attention" if i >= full else "full_attention" for i in range(c["num_hidden_layers"])])
    if t == "gemma2": c.update(some(.5, final_logit_softcapping=[None, 30.0], attn_logit_softcapping=[None, 50.0]))
    if t == "phi3": c.update(pad_token_id=0, bos_token_id=1, eos_token_id=2, hidden_act=ch("silu", "silu", "gelu"), **some(.4, sliding_window=[128, 512]), **some(.3, resid_pdrop=[.1], partial_rotary_factor=[.5]))
    return c

def encoder(least=1):
    heads, d = ch(4, 8, 12, 16), ch(32, 64, 72, 80, 88, 128); h = heads * d
    return dict(hidden_size=h, num_attention_heads=heads, intermediate_size=ch(h * 2, h * 4, h * 4 - 304), num_hidden_layers=R.randint(least, 6))

def clip_vision():
    p = ch(14, 14, 16, 16, 32)
    return dict(model_type="clip_vision_model", **encoder(3), patch_size=p, image_size=p * (ch(7, 8) if p == 32 else ch(8, 12, 16, 24)), projection_dim=ch(256, 512, 768),
                hidden_act=ch("quick_gelu", "gelu"), **some(.2, attention_dropout=[.1]))

def siglip_vision():
    p = ch(14, 16)
    return dict(model_type="siglip_vision_model", **encoder(2), patch_size=p, image_size=p * ch(8, 14, 16, 24), hidden_act=ch("gelu_pytorch_tanh", "gelu"), vision_use_head=False, **some(.2, attention_dropout=[.1]))

def side(v): return v["image_size"] // v["patch_size"]
