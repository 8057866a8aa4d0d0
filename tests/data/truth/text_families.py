"""Steps of families of texts that transformers has besides Llama's kin, each of a random configuration: draws them, and measures them
on a GPU as `configurations.py` does.

usage: text_families.py draw CASES.jsonl
       text_families.py run CASES.jsonl OUT.jsonl DEADLINE_S
Eight of each family; what a class refuses (SDPA, checkpoints) is not drawn of it.
"""
import json, random, sys, time
R = random.Random(20261130)

def ch(*a): return R.choice(a)

def base(t,h,**k):
    heads=ch(4,8); return dict(model_type=t,vocab_size=ch(1000,8003,32000,50257),hidden_size=h,num_hidden_layers=ch(2,3,4),num_attention_heads=heads,**k)
def H(): return ch(256,384,512,768,1024)
def dec(t,**k):
    h=H(); c=base(t,h,**k); c.update(intermediate_size=ch(2,3,4)*h+ch(0,32), max_position_embeddings=ch(1024,2048)); return c
def kv(c): c["num_key_value_heads"]=ch(1,2,c["num_attention_heads"]); return c
def gpt_neox_japanese(): return dec("gpt_neox_japanese",intermediate_multiple_size=ch(2,4))
def openai_gpt():
    h=H(); return dict(model_type="openai-gpt",vocab_size=ch(1000,40478),n_embd=h,n_layer=ch(2,3,4),n_head=ch(4,8),n_positions=ch(512,1024),**ch({}, dict(afn="relu"), dict(resid_pdrop=0.0,attn_pdrop=0.0,embd_pdrop=0.0)))
def ctrl():
    h=H(); return dict(model_type="ctrl",vocab_size=ch(1000,32000),n_embd=h,dff=ch(2,4)*h,n_layer=ch(2,3,4),n_head=ch(4,8),n_positions=1024,resid_pdrop=ch(0.0,.1),embd_pdrop=ch(0.0,.1))
def xlm():
    h=H(); return dict(model_type="xlm",vocab_size=ch(1000,30145),emb_dim=h,n_layers=ch(2,3,4),n_heads=ch(4,8),max_position_embeddings=1024,causal=ch(True,False),dropout=ch(0.0,.1),attention_dropout=ch(0.0,.1),gelu_activation=ch(True,False))
def doge():
    c=kv(dec("doge")); c["keep_window_size"]=ch(64,530,2048); return c
def qwen3_5_text():
    c=kv(dec("qwen3_5_text")); c["num_hidden_layers"]=4; c["head_dim"]=64; c["layer_types"]=["linear_attention"]*3+["full_attention"]; c.update(linear_num_key_heads=4,linear_num_value_heads=ch(4,8),linear_key_head_dim=32,linear_value_head_dim=ch(32,64)); return c
def mla(t):
    c=dec(t); n=c["num_attention_heads"]; c.update(num_key_value_heads=n,kv_lora_rank=ch(64,128),q_lora_rank=ch(96,128),qk_nope_head_dim=32,qk_rope_head_dim=32,v_head_dim=ch(32,64),n_routed_experts=4,num_experts_per_tok=2,n_group=1,topk_group=1,moe_intermediate_size=ch(128,192),first_k_dense_replace=1,index_n_heads=ch(2,4),index_head_dim=64,index_topk=ch(64,512)); return c
def deepseek_v32(): return mla("deepseek_v32")
def glm_moe_dsa():
    c=mla("glm_moe_dsa"); return c
def hy_v4():
    c=mla("hy_v4"); c["pad_token_id"]=0; return c
def laguna():
    c=kv(dec("laguna")); c["head_dim"]=64; n=c["num_hidden_layers"]=ch(2,4); a=c["num_attention_heads"]; c["num_key_value_heads"]=2
    c.update(num_attention_heads_per_layer=[ch(a,2*a) for _ in range(n)],layer_types=[ch("full_attention","sliding_attention") for _ in range(n)],num_experts=4,num_experts_per_tok=2,moe_intermediate_size=128,shared_expert_intermediate_size=128,sliding_window=ch(128,512)); return c
def mimo_v2_flash():
    c=kv(dec("mimo_v2_flash")); n=c["num_hidden_layers"]; t={"rope_type":"default","partial_rotary_factor":0.5,"rope_theta":10000.0}
    c.update(head_dim=64,v_head_dim=ch(32,64),rope_parameters={"full_attention":t,"sliding_attention":t},n_routed_experts=4,num_experts_per_tok=2,moe_intermediate_size=128); return c
def bert(t,**k):
    c=dec(t,**k); c["is_decoder"]=True; c["max_position_embeddings"]=1024; return c
def roc_bert(): return bert("roc_bert")
def roformer(): return bert("roformer",embedding_size=ch(128,256))
def big_bird(): return bert("big_bird",attention_type="original_full")
def zamba2():
    h=ch(256,512); return dict(model_type="zamba2",vocab_size=ch(1000,32000),hidden_size=h,intermediate_size=2*h,num_hidden_layers=4,num_attention_heads=8,n_mamba_heads=8,mamba_d_state=ch(16,32),adapter_rank=16,chunk_size=ch(64,256),num_mem_blocks=ch(1,2),layers_block_type=["mamba","hybrid","mamba","hybrid"])
def jetmoe():
    h=H(); return dict(model_type="jetmoe",vocab_size=ch(1000,32000),hidden_size=h,intermediate_size=ch(1,2)*h,num_hidden_layers=ch(2,3),num_key_value_heads=ch(2,4),kv_channels=64,num_local_experts=4,num_experts_per_tok=2)
def aria_text():
    c=kv(dec("aria_text")); c.update(moe_num_experts=4,moe_topk=2,moe_num_shared_experts=ch(1,2),pad_token_id=0); return c
def minimax():
    c=kv(dec("minimax")); n=c["num_hidden_layers"]; c.update(block_size=ch(64,256),num_local_experts=4,num_experts_per_tok=2,head_dim=64,layer_types=[ch("full_attention","linear_attention") for _ in range(n)]); return c
def modernbert_decoder():
    c=dec("modernbert-decoder"); c.update(local_attention=ch(64,128),pad_token_id=0,eos_token_id=1,bos_token_id=2,cls_token_id=2,sep_token_id=1); return c
def cpmant():
    h=H(); return dict(model_type="cpmant",vocab_size=ch(1000,30720),hidden_size=h,dim_ff=2*h,dim_head=64,num_hidden_layers=ch(2,3),num_attention_heads=ch(4,8),prompt_length=ch(8,32),segment_types=ch(4,32))
def xmod(): return bert("xmod",languages=["en_XX"],default_language="en_XX")
def prophetnet():
    h=H(); return dict(model_type="prophetnet",vocab_size=ch(1000,30522),hidden_size=h,encoder_ffn_dim=2*h,decoder_ffn_dim=ch(2,4)*h,num_encoder_layers=2,num_decoder_layers=ch(2,3),num_encoder_attention_heads=4,num_decoder_attention_heads=ch(4,8),max_position_embeddings=1024,ngram=ch(1,2),is_decoder=True)

FAMILIES = [gpt_neox_japanese, openai_gpt, ctrl, xlm, doge, qwen3_5_text, deepseek_v32, glm_moe_dsa, hy_v4, laguna, mimo_v2_flash, roc_bert, roformer,
    big_bird, zamba2, jetmoe, aria_text, minimax, modernbert_decoder, cpmant, xmod, prophetnet]
EAGER = ("openai-gpt", "xlm", "mimo_v2_flash", "big_bird", "cpmant", "prophetnet", "hy_v4", "roformer")
NO_CHECKPOINTS = ("openai-gpt", "ctrl", "xlm", "cpmant", "jetmoe", "gpt_neox_japanese")

def draw(to):
    with open(to, "w") as out:
        for family in FAMILIES:
            for _ in range(8):
                config = family(); t = config["model_type"]
                case = dict(model=t, batch=ch(1, 2, 3), seq=ch(33, 64, 100, 257, 384, 512), precision=ch("bf16", "bf16", "amp-bf16", "fp32", "bf16-amp", "amp-fp16"),
                    optim=ch("adamw", "adamw_fused", "sgd", "adafactor"), ckpt=ch("none", "none", "full"), attn=ch("sdpa", "sdpa", "eager"), accum=ch(1, 1, 2), timed=0, freeze="none")
                if t in EAGER: case["attn"] = "eager"
                if t in NO_CHECKPOINTS: case["ckpt"] = "none"
                out.write(json.dumps(dict(case=case, config=config, inputs={})) + "\n")

def run(cases, to, seconds):
    import configurations
    configurations.TEXT = [*configurations.TEXT, *(json.loads(line)["config"]["model_type"] for line in open(cases))]
    configurations.run(cases, to, time.time() + float(seconds))

if __name__ == "__main__": draw(sys.argv[2]) if sys.argv[1] == "draw" else run(*sys.argv[2:5])
