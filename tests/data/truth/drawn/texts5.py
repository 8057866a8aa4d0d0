"""RecurrentGemma, which goes through positions one by one."""
from .common import R, ch, some

def recurrent_gemma():
    heads, d = ch(2, 4, 6), ch(32, 64, 96); h = heads * d
    return dict(model_type="recurrent_gemma", vocab_size=ch(1000, 32000), hidden_size=h, intermediate_size=ch(h * 2, h * 6, 705), num_hidden_layers=R.randint(1, 4), num_attention_heads=heads, block_types=ch(["recurrent", "recurrent", "attention"], ["attention", "recurrent"], ["recurrent"], ["attention"]),
                attention_window_size=ch(16, 64, 2048), conv1d_width=ch(2, 3, 4, 4), hidden_activation=ch("gelu_pytorch_tanh", "gelu", "silu"), **some(.5, num_key_value_heads=[1, heads // 2]), **some(.4, lru_width=[heads * 40, heads * 2 * d]), **some(.3, attention_bias=[True]), **some(.3, partial_rotary_factor=[1.0, .25]),
                **some(.3, tie_word_embeddings=[False]))

TEXT = {"recurrent_gemma": recurrent_gemma}
