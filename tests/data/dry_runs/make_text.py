"""Text models and text data beside those of make_models.py and make_data.py: make_text.py WORK [--no-weights] [--device cuda]"""
import json, os, random, sys
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_models as M
work = os.path.abspath(sys.argv[1]); words = sys.argv[2:]
device = words[words.index("--device") + 1] if "--device" in words else "cpu"
import torch
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, Qwen2Config
chat = M.TEMPLATES["qwen"]
for name, config in {
    "qwen2text": Qwen2Config(hidden_size=896, intermediate_size=4864, num_hidden_layers=8, num_attention_heads=14, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True, max_position_embeddings=32768, eos_token_id=151645, bos_token_id=151643, pad_token_id=151643, dtype="bfloat16", max_window_layers=8),
    "llamatext": LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=32, num_key_value_heads=8, vocab_size=151936, tie_word_embeddings=True, max_position_embeddings=8192, eos_token_id=151645, bos_token_id=151643, pad_token_id=151643, dtype="bfloat16", architectures=["LlamaForCausalLM"]),
}.items():
    folder = os.path.join(work, "models", name); os.makedirs(folder, exist_ok=True)
    config.architectures = ["Qwen2ForCausalLM" if "qwen" in name else "LlamaForCausalLM"]
    if "--no-weights" in words: config.save_pretrained(folder)
    else:
        torch.manual_seed(0)
        with torch.device(device): m = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        m.save_pretrained(folder, max_shard_size="100GB"); del m
    r = M.qwen_reader(M.QWEN, 151936); r.chat_template = chat; r.save_pretrained(folder)
    GenerationConfig(eos_token_id=151645, pad_token_id=151643).save_pretrained(folder)
rng = random.Random(5); data = os.path.join(work, "data"); os.makedirs(data, exist_ok=True)
W = "the a red small round box line on under near two is of and with it shows blue cup tree left right by road".split()
def text(n):
    out = ""
    while len(out) < n: out += rng.choice(W) + " "
    return out[: n - 1] + "."
rows = [[dict(role="user", content=text(rng.choice((60, 200, 400)))), dict(role="assistant", content=text(rng.choice((100, 300, 700, 1200))))] for _ in range(64)]
same = [[dict(role="user", content=text(200)), dict(role="assistant", content=text(700))] for _ in range(64)]
prefs = [(text(200), text(500), text(400)) for _ in range(64)]
for name, table in (("text", rows), ("textsame", same)):
    with open(os.path.join(data, name + ".jsonl"), "w") as f:
        for m in table: f.write(json.dumps(dict(messages=m)) + "\n")
    json.dump([dict(messages=m) for m in table], open(os.path.join(data, name + "_lf.json"), "w"))
    os.makedirs(os.path.join(data, "trl_" + name), exist_ok=True)
    with open(os.path.join(data, "trl_" + name, "train.jsonl"), "w") as f:
        for m in table: f.write(json.dumps(dict(messages=m)) + "\n")
os.makedirs(os.path.join(data, "trl_textprefs"), exist_ok=True)
u = lambda q: [dict(role="user", content=q)]; a = lambda q: [dict(role="assistant", content=q)]
with open(os.path.join(data, "trl_textprefs", "train.jsonl"), "w") as f:
    for q, c, r in prefs: f.write(json.dumps(dict(prompt=u(q), chosen=a(c), rejected=a(r))) + "\n")
os.makedirs(os.path.join(data, "trl_textkto"), exist_ok=True)
with open(os.path.join(data, "trl_textkto", "train.jsonl"), "w") as f:
    for i, (q, c, r) in enumerate(prefs): f.write(json.dumps(dict(prompt=u(q), completion=a(c if i % 2 else r), label=bool(i % 2))) + "\n")
os.makedirs(os.path.join(data, "trl_textprompts"), exist_ok=True)
with open(os.path.join(data, "trl_textprompts", "train.jsonl"), "w") as f:
    for q, c, r in prefs: f.write(json.dumps(dict(prompt=u(q))) + "\n")
info = os.path.join(data, "dataset_info.json"); known = json.load(open(info)) if os.path.exists(info) else {}
tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
for name in ("text", "textsame"): known[name] = {"file_name": name + "_lf.json", "formatting": "sharegpt", "columns": {"messages": "messages"}, "tags": tags}
json.dump(known, open(info, "w"))
