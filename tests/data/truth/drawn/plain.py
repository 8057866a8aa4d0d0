"""Language models whose blocks are not like Llama's: layer norms, biases, ALiBi, learned positions, encoders as decoders."""
from .common import R, ch, maybe, rope, some

VOCABS = [1000, 32000, 50257, 50304]

def sizes(t, heads="num_attention_heads", hidden="hidden_size", layers="num_hidden_layers", dims=(32, 48, 64, 80, 96, 128), counts=(2, 4, 6, 8, 12)):
    """Heads, width, layers and vocabulary under a family's keys."""
    n = ch(*counts); d = ch(*dims)
    while n * d > 1536: n //= 2
    return dict(model_type=t, vocab_size=ch(*VOCABS), **{heads: n, hidden: n * d, layers: R.randint(1, 6)}, tie_word_embeddings=maybe(.5))

def even(c, *shares):
    """Shares of a head that are an even number of its elements."""
    d = c["hidden_size"] // c["num_attention_heads"]
    return ch(*[x for x in shares if int(d * x) % 2 == 0])

def gpt_neox():
    c = sizes("gpt_neox"); h = c["hidden_size"]; pct = even(c, .25, .5, 1.0)
    scaled = rope()
    if scaled: scaled["rope_scaling"]["partial_rotary_factor"] = pct
    return dict(c, intermediate_size=ch(h * 2, h * 4, 704), max_position_embeddings=ch(1024, 2048), hidden_act=ch("gelu", "gelu_new", "gelu_pytorch_tanh", "relu"), use_parallel_residual=maybe(.6), rotary_pct=pct, **scaled,
                **some(.3, attention_bias=[False]), **some(.3, hidden_dropout=[.1]), **some(.3, attention_dropout=[.1]))

def stablelm():
    c = sizes("stablelm"); h, n = c["hidden_size"], c["num_attention_heads"]; part = even(c, .25, .5, 1.0)
    scaled = rope()
    if scaled: scaled["rope_scaling"]["partial_rotary_factor"] = part
    return dict(c, num_key_value_heads=ch(n, n // 2, 1), intermediate_size=ch(h * 2, h * 4, 704), max_position_embeddings=ch(1024, 4096), hidden_act=ch("silu", "silu", "gelu"), partial_rotary_factor=part, **scaled,
                use_parallel_residual=maybe(.4), **some(.4, use_qkv_bias=[True]), **some(.4, qk_layernorm=[True]), **some(.3, hidden_dropout=[.1]), **some(.3, attention_dropout=[.1]))

def persimmon():
    c = sizes("persimmon"); h = c["hidden_size"]; part = even(c, .25, .5, 1.0)
    scaled = rope()
    if scaled: scaled["rope_scaling"]["partial_rotary_factor"] = part
    return dict(c, intermediate_size=ch(h * 2, h * 4, 704), max_position_embeddings=ch(1024, 4096), hidden_act=ch("relu2", "relu2", "gelu"), partial_rotary_factor=part, **scaled,
                qk_layernorm=maybe(.6), **some(.3, hidden_dropout=[.1]), **some(.3, attention_dropout=[.1]))

def falcon():
    c = sizes("falcon"); n, new = c["num_attention_heads"], maybe(.4)
    more = dict(num_kv_heads=ch(n, n // 2, 1), **some(.5, num_ln_in_parallel_attn=[1, 2])) if new else dict(multi_query=maybe(.6))
    return dict(c, new_decoder_architecture=new, **more, parallel_attn=True if new else maybe(.6), alibi=maybe(.35), bias=maybe(.3), max_position_embeddings=2048, **rope(),
                **some(.4, ffn_hidden_size=[704, 1408], activation=["relu", "gelu_pytorch_tanh"]), **some(.3, hidden_dropout=[.1]), **some(.3, attention_dropout=[.1]))

def bloom():
    return dict(sizes("bloom", heads="n_head", layers="n_layer"), apply_residual_connection_post_layernorm=maybe(.3), **some(.4, hidden_dropout=[.1]), **some(.4, attention_dropout=[.1]))

def mpt():
    return dict(sizes("mpt", heads="n_heads", hidden="d_model", layers="n_layers"), max_seq_len=ch(1024, 2048), **some(.5, attn_config=[dict(clip_qkv=8.0), dict(softmax_scale=.1), dict(alibi_bias_max=16)]))

def gpt_bigcode():
    c = sizes("gpt_bigcode", heads="n_head", hidden="n_embd", layers="n_layer"); h = c["n_embd"]
    return dict(c, n_positions=ch(1024, 2048), multi_query=maybe(.6), activation_function=ch("gelu_pytorch_tanh", "gelu", "gelu_new", "relu"), **some(.4, n_inner=[h * 2, h * 3]), **some(.4, resid_pdrop=[0.0, .2], embd_pdrop=[0.0, .2], attn_pdrop=[0.0, .2]))

def gptj(t):
    counts = (4, 8, 12) if t == "codegen" else (2, 4, 6, 8, 12)
    c = sizes(t, heads="n_head", hidden="n_embd", layers="n_layer", counts=counts, dims=(64, 80, 96, 128)); h = c["n_embd"]
    return dict(c, n_positions=ch(1024, 2048), rotary_dim=ch(32, 64, 16), activation_function=ch("gelu_new", "gelu_new", "gelu", "relu"), **some(.4, n_inner=[h * 2, h * 3]), **some(.3, resid_pdrop=[.1]), **some(.3, embd_pdrop=[.1]), **some(.3, attn_pdrop=[.1]))

def gpt_neo():
    c = sizes("gpt_neo", heads="num_heads", layers="num_layers"); h, n = c["hidden_size"], c["num_layers"]
    types = ch([[["global"], n]], [[["local"], n]], [[["global", "local"], n // 2]] + ([[["global"], 1]] if n % 2 else []))
    return dict(c, attention_types=types, window_size=ch(16, 64, 256), max_position_embeddings=ch(1024, 2048), activation_function=ch("gelu_new", "gelu_new", "gelu", "relu"), **some(.4, intermediate_size=[h * 2, h * 3]),
                **some(.3, resid_dropout=[.1]), **some(.3, embed_dropout=[.1]), **some(.3, attention_dropout=[.1]))

def biogpt():
    c = sizes("biogpt"); h = c["hidden_size"]
    return dict(c, intermediate_size=ch(h * 2, h * 4), max_position_embeddings=ch(1024, 2048), hidden_act=ch("gelu", "gelu", "relu"), scale_embedding=maybe(.6), **some(.4, hidden_dropout_prob=[0.0]), **some(.4, attention_probs_dropout_prob=[0.0]), **some(.4, activation_dropout=[.1]))

def xglm():
    c = sizes("xglm", heads="attention_heads", hidden="d_model", layers="num_layers"); h = c["d_model"]
    return dict(c, ffn_dim=ch(h * 2, h * 4), max_position_embeddings=ch(1024, 2048), activation_function=ch("gelu", "gelu", "relu"), scale_embedding=maybe(.6), **some(.4, dropout=[0.0]), **some(.4, attention_dropout=[0.0]), **some(.4, activation_dropout=[.1]))

def bert(t):
    c = sizes(t); h = c["hidden_size"]
    if t == "electra": c["embedding_size"] = ch(h, 128, 96)
    if t == "rembert": c.update(input_embedding_size=ch(h, 128, 96), output_embedding_size=ch(h, 160))
    if t == "ernie": c.update(some(.4, use_task_id=[True]))
    if t == "roformer": c.update(some(.4, embedding_size=[96], rotary_value=[True]))
    if t == "roc_bert": c.update(pronunciation_embed_dim=ch(96, 128), shape_embed_dim=ch(64, 128), **some(.3, concat_input=[False]), **some(.3, enable_shape=[False]))
    if t == "big_bird": c.update(attention_type="original_full", **some(.4, use_bias=[False], rescale_embeddings=[True]))
    if t == "xmod": c.update(languages=ch(["en_XX"], ["de_DE", "en_XX", "fr_XX"]), default_language="en_XX", adapter_reduction_factor=ch(2, 4), **some(.3, pre_norm=[True]), **some(.3, adapter_layer_norm=[True]), **some(.3, adapter_reuse_layer_norm=[False]), **some(.3, ln_before_adapter=[False]))
    types = {} if t == "bert-generation" else dict(type_vocab_size=ch(1, 2, 16))
    return dict(c, **types, intermediate_size=ch(h * 2, h * 4), max_position_embeddings=ch(1024, 2048), hidden_act=ch("gelu", "gelu", "relu", "gelu_new"), is_decoder=maybe(.6), **some(.4, hidden_dropout_prob=[0.0]), **some(.4, attention_probs_dropout_prob=[0.0]))

BERTS = ["bert", "roberta", "camembert", "xlm-roberta", "data2vec-text", "electra", "ernie", "bert-generation", "roberta-prelayernorm", "megatron-bert", "rembert", "xlm-roberta-xl",
         "roc_bert", "roformer", "big_bird", "xmod"]

def modernbert_decoder():
    c = sizes("modernbert-decoder"); h = c["hidden_size"]
    return dict(c, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, intermediate_size=ch(h * 2, 704), max_position_embeddings=ch(1024, 2048), local_attention=ch(32, 128, 256), global_attn_every_n_layers=ch(2, 3),
                **some(.4, norm_bias=[True], attention_bias=[True], mlp_bias=[True], classifier_bias=[True], decoder_bias=[False]), **some(.3, embedding_dropout=[.1], attention_dropout=[.1], mlp_dropout=[.1]))

def prophetnet():
    c = sizes("prophetnet", heads="num_decoder_attention_heads", layers="num_decoder_layers"); h = c["hidden_size"]
    return dict(c, decoder_ffn_dim=ch(h * 2, 704), max_position_embeddings=ch(800, 1024), num_buckets=ch(8, 32), activation_function=ch("gelu", "relu"), **some(.3, ngram=[1, 3]), **some(.3, dropout=[0.0], attention_dropout=[0.0], activation_dropout=[0.0]))

def cpmant():
    c = sizes("cpmant"); h, n = c["hidden_size"], c["num_attention_heads"]; c.pop("tie_word_embeddings")
    return dict(c, dim_head=ch(h // n, 64), dim_ff=ch(h * 2, 704), prompt_length=ch(8, 32), prompt_types=4, segment_types=ch(4, 32), **some(.4, dropout_p=[.1]))

TEXT = {"gpt_neox": gpt_neox, "stablelm": stablelm, "persimmon": persimmon, "falcon": falcon, "bloom": bloom, "mpt": mpt, "gpt_bigcode": gpt_bigcode, "gptj": lambda: gptj("gptj"), "codegen": lambda: gptj("codegen"), "gpt_neo": gpt_neo,
        "biogpt": biogpt, "xglm": xglm, "modernbert-decoder": modernbert_decoder, "cpmant": cpmant, "prophetnet": prophetnet, **{t: (lambda t=t: bert(t)) for t in BERTS}}

# Families that transformers gives no SDPA.
CASES = {t: dict(attn="eager") for t in ["bloom", "mpt", "gptj", "codegen", "gpt_neo", "xglm", "megatron-bert", "rembert", "roformer", "big_bird", "cpmant", "prophetnet"]}
CASES["cpmant"]["ckpt"] = "none"
