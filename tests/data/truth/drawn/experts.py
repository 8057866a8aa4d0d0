"""Mixture-of-experts decoders."""
from .common import HEAD_DIMS, R, VOCABS, ch, maybe, rope, some

def moe(t, heads_fill=False, kinds=True):
    """What decoders with experts share: sizes, heads, rotary positions."""
    kv, times = ch(1, 2, 4, 8), ch(1, 1, 2, 3, 4)
    while kv * times > 32: kv //= 2
    heads, d = kv * times, R.choice(HEAD_DIMS)
    while heads * d > 2048: d //= 2
    d -= d % 2; hidden = heads * d if heads_fill else ch(256, 512, 576, 768, 1024, 1536); hidden = -(-hidden // (heads * 8)) * heads * 8
    return dict(model_type=t, vocab_size=R.choice(VOCABS), hidden_size=hidden, intermediate_size=ch(hidden * 2, 704, 1408), num_hidden_layers=R.randint(1, 5), num_attention_heads=heads, num_key_value_heads=kv,
                max_position_embeddings=ch(1024, 2048, 4096), tie_word_embeddings=maybe(.5), hidden_act=ch("silu", "silu", "gelu"), **({} if heads_fill else dict(head_dim=d)), **some(.25, attention_dropout=[0.1]), **(rope() if kinds else {}))

def chosen(most=4): return ch(2, 1, 3, 4, 8) if most > 4 else R.randint(1, most)

def qwen3_moe():
    c = moe("qwen3_moe"); layers = c["num_hidden_layers"]
    return dict(c, num_experts=ch(8, 16, 32, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 96, 128, 256, 768), norm_topk_prob=maybe(.5), **some(.3, attention_bias=[True]),
                **some(.3, decoder_sparse_step=[2]), **some(.3, mlp_only_layers=[[0], [layers - 1]]), **some(.3, use_sliding_window=[True], sliding_window=[128, 512]))

def mixtral():
    c = moe("mixtral")
    return dict(c, num_local_experts=ch(4, 8, 16), num_experts_per_tok=chosen(), intermediate_size=ch(256, 704, 1408), **some(.4, sliding_window=[128, 512]))

def qwen2_moe():
    c = moe("qwen2_moe", heads_fill=True); layers = c["num_hidden_layers"]
    return dict(c, num_experts=ch(8, 16, 60), num_experts_per_tok=chosen(8), moe_intermediate_size=ch(64, 128, 256, 768), shared_expert_intermediate_size=ch(256, 704, 1408), norm_topk_prob=maybe(.5), **some(.3, qkv_bias=[False]),
                **some(.3, decoder_sparse_step=[2]), **some(.3, mlp_only_layers=[[0], [layers - 1]]))

def olmoe():
    c = moe("olmoe", heads_fill=True)
    return dict(c, intermediate_size=ch(64, 128, 256, 768), num_experts=ch(8, 16, 64), num_experts_per_tok=chosen(8), norm_topk_prob=maybe(.5), **some(.3, attention_bias=[True]))

def flex_olmo():
    c = moe("flex_olmo", heads_fill=True)
    return dict(c, intermediate_size=ch(64, 128, 256, 768), num_experts=ch(7, 8, 16), num_experts_per_tok=chosen(5), norm_topk_prob=maybe(.5), pad_token_id=1, **some(.3, attention_bias=[True]))

TEXT = {"flex_olmo": flex_olmo, "qwen3_moe": qwen3_moe, "mixtral": mixtral, "qwen2_moe": qwen2_moe, "olmoe": olmoe}
