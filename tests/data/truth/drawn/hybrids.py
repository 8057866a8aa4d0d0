"""Decoders whose layers scan Mamba 2's states, attend, or do both."""
from .common import R, ch, decoder, maybe, some

def sizes(t):
    """A decoder's sizes, with mixers of `expand` times its width."""
    c = decoder("llama"); heads, groups = ch(4, 8, 16), ch(1, 2, 4); expand = ch(1, 2); c["model_type"] = t
    for key in ("rope_scaling", "head_dim", "mlp_bias", "attention_bias"): c.pop(key, None)
    attention = c["num_key_value_heads"] * ch(1, 2, 4); hidden = max(heads, attention) * 8 * ch(2, 3, 4)
    c.update(hidden_size=hidden, num_attention_heads=attention, intermediate_size=hidden * ch(2, 3) + 40)
    return c, dict(heads=heads, groups=groups, expand=expand)

def usual(t):
    """Keys of Bamba, which the Granite hybrids share."""
    c, m = sizes(t); layers = c["num_hidden_layers"] = R.randint(2, 4)
    c.update(mamba_n_heads=m["heads"], mamba_n_groups=m["groups"], mamba_expand=m["expand"], mamba_d_state=ch(16, 32, 40), mamba_d_conv=ch(2, 4, 4), mamba_chunk_size=ch(8, 19, 64),
             **some(.4, mamba_proj_bias=[True]), **some(.3, mamba_conv_bias=[False]), **some(.3, attention_bias=[True]))
    return c, [ch("mamba", "mamba", "attention") for _ in range(layers)]

def bamba():
    c, kinds = usual("bamba")
    return dict(c, attn_layer_indices=[i for i, kind in enumerate(kinds) if kind == "attention"], **some(.3, mlp_bias=[True]))

def granitemoehybrid():
    c, kinds = usual("granitemoehybrid"); experts = ch(0, 4, 8)
    return dict(c, layer_types=kinds, num_local_experts=experts, num_experts_per_tok=ch(1, 2, 3), intermediate_size=ch(64, 128, 256), shared_intermediate_size=ch(64, 200, 512), position_embedding_type=ch(None, "rope"))

def nemotron_h():
    c, m = sizes("nemotron_h"); layers = R.randint(2, 6); experts = ch(4, 8, 16); groups = ch(1, 1, 2); c.pop("hidden_act"); c.pop("num_hidden_layers")
    d = ch(16, 32, 64)
    return dict(c, hybrid_override_pattern="".join(ch("M", "M", "*", "-", "E") for _ in range(layers)), head_dim=d, mamba_num_heads=m["heads"], mamba_head_dim=ch(16, 32, 48), n_groups=m["groups"], ssm_state_size=ch(16, 32, 40),
                conv_kernel=ch(2, 4, 4), chunk_size=ch(8, 19, 64), mlp_hidden_act=ch("relu2", "relu2", "silu"), n_routed_experts=experts, num_experts_per_tok=ch(1, 2), moe_intermediate_size=ch(64, 128), moe_shared_expert_intermediate_size=ch(96, 256),
                n_group=groups, topk_group=R.randint(1, groups), **some(.4, moe_latent_size=[64, 128]), **some(.3, use_bias=[True]), **some(.3, mlp_bias=[True]), **some(.3, use_conv_bias=[False]), **some(.3, norm_topk_prob=[False]))

def falcon_h1():
    c, m = sizes("falcon_h1"); c["num_hidden_layers"] = R.randint(1, 3)
    return dict(c, mamba_n_heads=m["heads"], mamba_n_groups=m["groups"], mamba_d_ssm=ch(None, m["heads"] * 16, m["heads"] * 32), mamba_expand=m["expand"], mamba_d_state=ch(16, 32, 40), mamba_d_conv=ch(2, 4, 4), mamba_chunk_size=ch(8, 19, 64),
                mamba_rms_norm=maybe(.5), mamba_norm_before_gate=maybe(.5), **some(.4, mamba_proj_bias=[True]), **some(.3, projectors_bias=[True]), **some(.3, mamba_conv_bias=[False]), **some(.3, attention_bias=[True]), **some(.3, mlp_bias=[True]))

def jamba():
    c, _ = sizes("jamba"); layers = c["num_hidden_layers"] = R.randint(1, 3); c["intermediate_size"] = ch(64, 128, 256); attention, experts = ch(2, 3), ch(1, 2)
    return dict(c, num_experts=ch(1, 4, 8), num_experts_per_tok=ch(1, 2), attn_layer_period=attention, attn_layer_offset=R.randrange(attention), expert_layer_period=experts, expert_layer_offset=R.randrange(experts), mamba_d_state=ch(8, 16, 33), mamba_d_conv=ch(2, 4, 4),
                mamba_expand=ch(1, 2), **some(.4, mamba_dt_rank=[7, 32]), **some(.4, mamba_proj_bias=[True]), **some(.3, mamba_conv_bias=[False]))

def olmo_hybrid():
    """Gated DeltaNet in most layers, attention in the others."""
    c = decoder("llama"); layers = c["num_hidden_layers"] = R.randint(2, 4); c["model_type"] = "olmo_hybrid"; heads = ch(2, 4, 6)
    for key in ("rope_scaling", "head_dim", "mlp_bias"): c.pop(key, None)
    kinds = [ch("linear_attention", "linear_attention", "full_attention") for _ in range(layers)]; kinds[0], kinds[-1] = "linear_attention", "full_attention"
    hidden = c["num_attention_heads"] * 8 * ch(4, 8, 12)
    return dict(c, pad_token_id=1, hidden_size=hidden, intermediate_size=hidden * 2 + 40, layer_types=kinds, linear_num_key_heads=heads, linear_num_value_heads=heads * ch(1, 2), linear_key_head_dim=ch(16, 24, 64), linear_conv_kernel_dim=ch(2, 4, 4), **some(.5, linear_value_head_dim=[32, 40]),
                **some(.3, linear_allow_neg_eigval=[False]), **some(.4, rope_parameters=[dict(rope_theta=None, rope_type="default")]))

def minimax():
    c = decoder("llama"); layers = R.randint(2, 4)
    for key in ("rope_scaling", "mlp_bias", "attention_bias"): c.pop(key, None)
    return dict(c, model_type="minimax", num_hidden_layers=layers, layer_types=[ch("linear_attention", "full_attention") for _ in range(layers)], block_size=ch(16, 50, 256), intermediate_size=ch(64, 128, 256), num_local_experts=ch(4, 8), num_experts_per_tok=ch(1, 2))

def zamba2():
    c, m = sizes("zamba2"); layers = R.randint(2, 5)
    for key in ("num_key_value_heads", "attention_dropout"): c.pop(key, None)
    return dict(c, num_hidden_layers=layers, layers_block_type=["hybrid"] + [ch("mamba", "hybrid") for _ in range(layers - 1)], num_mem_blocks=ch(1, 2), adapter_rank=ch(8, 32), n_mamba_heads=m["heads"], mamba_ngroups=m["groups"], mamba_expand=m["expand"] * 2, mamba_d_state=ch(16, 32, 40),
                chunk_size=ch(8, 19, 64), use_shared_attention_adapter=maybe(.4), use_mem_rope=maybe(.5), **some(.3, add_bias_linear=[True]))

TEXT = dict(minimax=minimax, zamba2=zamba2, bamba=bamba, granitemoehybrid=granitemoehybrid, nemotron_h=nemotron_h, falcon_h1=falcon_h1, olmo_hybrid=olmo_hybrid, jamba=jamba)
# Chunks of positions are many tensors each.
CASES = {t: dict(seq=33) for t in TEXT}; CASES["jamba"] = dict(seq=19)
