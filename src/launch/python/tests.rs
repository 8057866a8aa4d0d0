//! Scripts and notebooks, written for these tests after the way in which people write them.

use serde_json::{Value, json};
use vramscope_engine::simulate::In4Bits;

use crate::{Fate, Launch, LaunchError, ModelFacts, Note, Source, Tool, read, read_on};

fn read_all(files: &[(&str, &str)]) -> Result<Launch, LaunchError> {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    read(&sources)
}

fn script(text: &str) -> Launch {
    read_all(&[("train.py", text)]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    match read_all(&[("train.py", text)]) {
        Err(error) => error.to_string(),
        Ok(launch) => panic!("{launch:?}"),
    }
}

/// The case of a launch with a text model.
fn case(launch: &Launch) -> Value {
    let model = ModelFacts {
        takes_images: false,
        ..ModelFacts::UNKNOWN
    };
    Value::Object(launch.resolve(model).case)
}

/// What a launch leaves open, as keys and reasons.
fn open(launch: &Launch) -> Vec<String> {
    let of = |line: &crate::Line| match &line.fate {
        Fate::NotSimulated(why) => Some(format!("{}: {why}", line.entry.key)),
        Fate::Wrong(takes) => Some(format!("{}: takes {takes}", line.entry.key)),
        Fate::Unknown(_) => Some(format!("{}: unknown", line.entry.key)),
        _ => None,
    };
    launch.lines.iter().filter_map(of).collect()
}

fn holds(case: &Value, wanted: &Value) {
    for (key, value) in wanted.as_object().expect("an object") {
        assert_eq!(case.get(key), Some(value), "{key} of {case}");
    }
}

const LORA: &str = r#"
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

HUB, LONGEST = "Qwen/Qwen2.5-0.5B", 512
SMALL = False
tok = AutoTokenizer.from_pretrained(HUB)

def row(r):
    ids = tok(r["text"])["input_ids"] + [tok.eos_token_id]
    ids = ids[:LONGEST]
    return {"input_ids": ids, "labels": ids}

net = AutoModelForCausalLM.from_pretrained(HUB, torch_dtype=torch.bfloat16, device_map="auto")
net.enable_input_require_grads()
net = get_peft_model(net, LoraConfig(task_type=TaskType.CAUSAL_LM, r=8 if SMALL else 64, lora_alpha=16,
                                     target_modules=[f"{name}_proj" for name in "qv"]))
args = TrainingArguments("out", per_device_train_batch_size=2 ** 2, gradient_accumulation_steps=64 // 16,
                         gradient_checkpointing=True, learning_rate=2e-4)
args.gradient_checkpointing_kwargs = {"use_reentrant": False}
Trainer(model=net, args=args, train_dataset=load("x").map(row)).train()
"#;

#[test]
fn a_script_is_read_by_its_constants_and_functions() {
    let launch = script(LORA);
    assert_eq!(launch.tool, Tool::Transformers);
    assert_eq!(open(&launch), [""; 0]);
    holds(
        &case(&launch),
        &json!({"model": "Qwen/Qwen2.5-0.5B", "batch": 4, "accum": 4, "seq": 512, "rank": 64, "freeze": "lora", "ckpt": "full",
            "precision": "bf16", "optim": "adamw_fused", "lora_dropout": 0.0, "lora_targets": "q_proj,v_proj",
            "trainer": "transformers"}),
    );
    let batch = launch
        .lines
        .iter()
        .find(|line| line.entry.key == "per_device_train_batch_size")
        .expect("a line");
    assert_eq!((batch.entry.line, batch.entry.cell), (19, None));
}

#[test]
fn options_of_the_command_replace_defaults_of_the_script() {
    let parsed = "import argparse\ncli = argparse.ArgumentParser()\ncli.add_argument('--hub', default='a/b')\n\
                  g = cli.add_argument_group('x')\ng.add_argument('--batch-size', type=int, default=1)\n\
                  cli.add_argument('--four', action='store_true')\nopts = cli.parse_args()\n\
                  from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, BitsAndBytesConfig\n\
                  q = BitsAndBytesConfig(load_in_4bit=True) if opts.four else None\n\
                  net = AutoModelForCausalLM.from_pretrained(opts.hub, quantization_config=q, dtype='float32')\n\
                  Trainer(net, TrainingArguments('x', per_device_train_batch_size=opts.batch_size)).train()\n";
    let alone = script(parsed);
    holds(&case(&alone), &json!({"model": "a/b", "batch": 1, "precision": "fp32"}));
    let said = alone.resolve(ModelFacts::UNKNOWN).assumed;
    assert!(
        said.iter()
            .any(|remark| remark.to_string().contains("options of the script have their defaults")),
        "{said:?}"
    );
    let started = read_all(&[
        ("go.sh", "python train.py --hub c/d --batch-size 8\n"),
        ("train.py", parsed),
    ])
    .unwrap();
    holds(&case(&started), &json!({"model": "c/d", "batch": 8}));
    assert_eq!(open(&started), [""; 0]);
    let is_option = |line: &&crate::Line| line.fate == Fate::NoEffect(crate::NoEffect::Script);
    assert_eq!(started.lines.iter().filter(is_option).count(), 2, "{:?}", started.lines);
    assert!(
        started
            .resolve(ModelFacts::UNKNOWN)
            .assumed
            .iter()
            .all(|remark| !remark.to_string().contains("defaults:"))
    );
}

#[test]
fn classes_of_options_are_those_of_the_library_and_of_the_script() {
    let text = "from dataclasses import dataclass, field\nimport torch\nfrom peft import LoraConfig\n\
                from transformers import AutoModelForImageTextToText\n\
                from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser, get_peft_config\n\
                @dataclass\nclass More:\n    freeze_tower: bool = field(default=False)\n    cut: int = 64\n\
                which, args, how, more = TrlParser((ScriptArguments, SFTConfig, ModelConfig, More)).parse_args_and_config()\n\
                args.max_length = more.cut\n\
                net = AutoModelForImageTextToText.from_pretrained(how.model_name_or_path, torch_dtype=getattr(torch, how.torch_dtype))\n\
                if more.freeze_tower:\n    for p in net.visual.parameters():\n        p.requires_grad = False\n\
                SFTTrainer(model=net, args=args, peft_config=get_peft_config(how)).train()\n";
    let command = "accelerate launch --num_processes 2 train.py --model_name_or_path a/b --torch_dtype bfloat16 \
                   --per_device_train_batch_size 2 --gradient_checkpointing --max_length 4096 --learning_rate 1e-5";
    let read = |more: &str| read_all(&[("go.sh", &format!("{command} {more}\n")), ("train.py", text)]).unwrap();
    let frozen = read("--freeze_tower true");
    assert_eq!(frozen.tool, Tool::TrlSft);
    assert_eq!(open(&frozen), [""; 0]);
    let of_images = Value::Object(frozen.resolve(ModelFacts::UNKNOWN).case);
    holds(
        &of_images,
        &json!({"model": "a/b", "batch": 2, "world": 2, "seq": 64, "ckpt": "full", "precision": "bf16-amp"}),
    );
    let adapted = read("--use_peft --lora_r 4 --lora_target_modules q_proj k_proj");
    holds(
        &case(&adapted),
        &json!({"freeze": "lora", "rank": 4, "lora_targets": "q_proj,k_proj"}),
    );
    // The script's own adapters win over what the options would be.
    let own = text.replace("get_peft_config(how)", "LoraConfig(r=16)");
    let launch = read_all(&[("go.sh", &format!("{command} --lora_r 4\n")), ("train.py", &own)]).unwrap();
    holds(&case(&launch), &json!({"freeze": "lora", "rank": 16}));
}

#[test]
fn settings_of_a_file_that_the_command_names_are_options_too() {
    let text = "from trl import SFTConfig, SFTTrainer, TrlParser\n(args,) = TrlParser(SFTConfig).parse_args_and_config()\n\
                SFTTrainer('a/b', args).train()\n";
    let launch = read_all(&[
        ("go.sh", "python train.py --config conf.yaml --max_length 128\n"),
        (
            "conf.yaml",
            "per_device_train_batch_size: 3\nmax_length: 64\noutput_dir: x\n",
        ),
        ("train.py", text),
    ])
    .unwrap();
    holds(
        &case(&launch),
        &json!({"batch": 3, "seq": 128, "model": "a/b", "precision": "amp-bf16"}),
    );
}

#[test]
fn a_loop_is_read_as_far_as_it_says_what_it_does() {
    let text = "import torch\nfrom accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n\
                from transformers import AutoModelForCausalLM, AutoTokenizer\n\
                tok = AutoTokenizer.from_pretrained('a/b')\n\
                def pad(rows):\n    x = tok([r['t'] for r in rows], truncation=True, max_length=256, padding=True)\n    x['labels'] = x['input_ids']\n    return x\n\
                def main():\n    acc = Accelerator(mixed_precision='bf16', gradient_accumulation_steps=2)\n\
                \x20   net = AutoModelForCausalLM.from_pretrained('a/b', torch_dtype=torch.float32)\n\
                \x20   load = DataLoader(rows, batch_size=6, shuffle=True, collate_fn=pad)\n\
                \x20   check = DataLoader(rows, batch_size=1, collate_fn=pad)\n\
                \x20   opt = torch.optim.AdamW(net.parameters(), lr=1e-5)\n\
                \x20   net, opt, load = acc.prepare(net, opt, load)\n\
                \x20   for epoch in range(3):\n        for batch in load:\n            with acc.accumulate(net):\n\
                \x20               loss = net(**batch).loss\n                acc.backward(loss)\n\
                \x20               acc.clip_grad_norm_(net.parameters(), 1.0)\n                opt.step()\n                opt.zero_grad()\n\
                if __name__ == '__main__':\n    main()\n";
    let launch = script(text);
    assert_eq!(launch.tool, Tool::Loop);
    assert_eq!(open(&launch), [""; 0]);
    holds(
        &case(&launch),
        &json!({"model": "a/b", "batch": 6, "accum": 2, "seq": 256, "optim": "adamw", "clip": true, "precision": "amp-bf16",
            "trainer": "loop"}),
    );
    // What decides and is computed elsewhere is said, and no figure is of use without it.
    let computed = script(&text.replace("batch_size=6", "batch_size=pick()"));
    let resolved = computed.resolve(ModelFacts::UNKNOWN);
    assert!(
        resolved
            .another_run()
            .any(|left| left.given.as_deref() == Some("per_device_train_batch_size: …")),
        "{resolved:?}"
    );
    let own = script(&text.replace("net(**batch).loss", "loss_of(net(**batch).logits)"));
    assert!(
        open(&own).iter().any(|line| line.starts_with("loss: ")),
        "{:?}",
        open(&own)
    );
}

/// A notebook of unsloth for Colab, as those of its makers are written.
fn notebook_of_unsloth() -> Value {
    let cell = |source: &str| json!({"cell_type": "code", "source": source, "outputs": [{"data": {"image/png": "A".repeat(5000)}}]});
    json!({"cells": [
        cell("%%capture\n!pip install unsloth"),
        cell("from unsloth import FastLanguageModel\nlength = 2048\nmodel, tok = FastLanguageModel.from_pretrained(\n    \"unsloth/Llama-3.2-1B\", max_seq_length = length, load_in_4bit = True)"),
        cell("model = FastLanguageModel.get_peft_model(model, r = 16, lora_dropout = 0, use_gradient_checkpointing = \"unsloth\")"),
        cell("from trl import SFTTrainer, SFTConfig\nt = SFTTrainer(model = model, tokenizer = tok, dataset_text_field = \"text\", max_seq_length = length,\n    args = SFTConfig(per_device_train_batch_size = 2, gradient_accumulation_steps = 4, bf16 = True, optim = \"adamw_8bit\", hub_token = \"hf_abcdefghijklmnop\"))"),
        cell("stats = t.train()"),
    ], "metadata": {}, "nbformat": 4})
}

#[test]
fn a_notebook_is_read_cell_by_cell() {
    let notebook = notebook_of_unsloth();
    let read = |json: &Value| read_all(&[("tune.ipynb", &json.to_string())]).unwrap();
    let launch = read(&notebook);
    holds(
        &case(&launch),
        &json!({"model": "unsloth/Llama-3.2-1B", "batch": 2, "accum": 4, "seq": 2048, "freeze": "qlora", "rank": 16,
            "precision": "bf16-amp", "optim": "adamw_8bit", "ckpt": "full"}),
    );
    let rank = launch
        .lines
        .iter()
        .find(|line| line.entry.key == "LoraConfig.r")
        .expect("a line");
    assert_eq!((rank.entry.line, rank.entry.cell), (1, Some(3)));
    // What unsloth does in its own way only saves.
    assert!(
        open(&launch)
            .iter()
            .all(|line| line.starts_with("unsloth") || line.starts_with("use_gradient_checkpointing"))
    );
    assert!(!format!("{launch:?}").contains("hf_abc"));
}

/// Nothing but the card decides the type: that of the notebook, the one that is asked for, or the one that hosts give.
#[test]
fn a_notebook_asks_the_card_for_the_type() {
    let asked = notebook_of_unsloth()
        .to_string()
        .replace("bf16 = True", "bf16 = is_bfloat16_supported()");
    let asked = asked.replace(
        "import FastLanguageModel",
        "import FastLanguageModel, is_bfloat16_supported",
    );
    let mut told: Value = serde_json::from_str(&asked).unwrap();
    told["metadata"] = json!({"colab": {"gpuType": "A100"}});
    let text = told.to_string();
    assert_eq!(
        case(&read_all(&[("tune.ipynb", &text)]).unwrap())["precision"],
        "bf16-amp"
    );
    let source = Source {
        name: "tune.ipynb",
        text: &text,
    };
    assert_eq!(case(&read_on(&[source], Some(false)).unwrap())["precision"], "fp16-amp");
    let untold = read_all(&[("tune.ipynb", &asked)]).unwrap();
    let of_size = |packed: u64| ModelFacts {
        parameters: Some(In4Bits {
            packed,
            largest: 1 << 26,
            others: 1 << 30,
            vectors: 0,
        }),
        ..ModelFacts::UNKNOWN
    };
    for (packed, precision, word) in [
        (7 << 30, "fp16-amp", "card_of_notebooks"),
        (70 << 30, "bf16-amp", "card_with_bf16"),
    ] {
        let resolved = untold.clone().of_model(of_size(packed)).resolve(of_size(packed));
        assert_eq!(resolved.case["precision"], precision);
        assert!(
            resolved.assumed.iter().any(|remark| remark.note.word() == word),
            "{resolved:?}"
        );
    }
}

#[test]
fn what_a_script_asks_of_the_card_is_answered_for_it() {
    let text = "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
                is_new = torch.cuda.get_device_capability()[0] >= 8\n\
                net = AutoModelForCausalLM.from_pretrained('a/b', dtype=torch.bfloat16 if is_new else torch.float16,\n\
                    attn_implementation='flash_attention_2' if is_new else 'eager')\n\
                Trainer(net, TrainingArguments('o', bf16=is_new, fp16=not is_new)).train()\n";
    let source = Source { name: "tune.py", text };
    for (has_bf16, precision, attn) in [
        (None, "bf16-amp", "flash_attention_2"),
        (Some(true), "bf16-amp", "flash_attention_2"),
        (Some(false), "fp16-amp", "eager"),
    ] {
        let launch = read_on(&[source], has_bf16).unwrap();
        holds(&case(&launch), &json!({"precision": precision, "attn": attn}));
        let resolved = launch.resolve(ModelFacts::UNKNOWN);
        let is_said = resolved.assumed.iter().any(|remark| remark.note == Note::CardWithBf16);
        assert_eq!(is_said, has_bf16.is_none(), "{resolved:?}");
    }
}

#[test]
fn what_unsloth_does_only_saves_and_what_overflows_is_in_fp32() {
    let text = "from unsloth import FastVisionModel\nfrom trl import SFTConfig, SFTTrainer\n\
                net, tok = FastVisionModel.from_pretrained('a/b', load_in_4bit=True)\n\
                net = FastVisionModel.get_peft_model(net, r=8)\n\
                SFTTrainer(model=net, args=SFTConfig(max_length=512)).train()\n";
    let source = Source { name: "tune.py", text };
    let launch = read_on(&[source], Some(false)).unwrap();
    let facts = |overflows_fp16: bool| ModelFacts {
        takes_images: false,
        overflows_fp16,
        ..ModelFacts::UNKNOWN
    };
    for (overflows, precision) in [(false, "fp16-amp"), (true, "fp32")] {
        let resolved = launch.resolve(facts(overflows));
        assert_eq!(resolved.case["precision"], precision);
        assert_eq!(resolved.grade(), crate::Grade::AtMost, "{resolved:?}");
    }
}

#[test]
fn a_library_that_trains_by_one_call_is_told_apart() {
    let of = |call: &str| read_all(&[("x.py", call)]).unwrap();
    let launch = of("from maestro.trainer.models.qwen_2_5_vl.core import train\n\
                     train({'dataset': 'd', 'optimization_strategy': 'qlora', 'batch_size': 2})\n");
    assert_eq!(launch.model(), Some("Qwen/Qwen2.5-VL-3B-Instruct"));
    holds(
        &case(&launch),
        &json!({"batch": 2, "accum": 8, "freeze": "qlora", "rank": 8, "lora_targets": "q_proj,v_proj", "precision": "bf16"}),
    );
    // Its own code misspells the type of compute.
    let with = |largest: u64| {
        let facts = ModelFacts {
            parameters: Some(In4Bits {
                packed: 3 << 30,
                largest,
                others: 1 << 29,
                vectors: 0,
            }),
            ..ModelFacts::UNKNOWN
        };
        launch
            .resolve(facts)
            .not_simulated
            .iter()
            .map(|remark| remark.note)
            .collect::<Vec<_>>()
    };
    assert!(with(1 << 25).contains(&Note::Fp32IsCovered));
    assert!(with(1 << 29).contains(&Note::ComputeInFp32));
    let other = of("from maestro.trainer.models.florence_2.core import train\ntrain({'dataset': 'd'})\n");
    assert!(other.resolve(ModelFacts::UNKNOWN).another_run().next().is_some());
}

#[test]
fn a_notebook_that_starts_a_command_is_read_by_that_command() {
    let cell = |source: &str| json!({"cell_type": "code", "source": source});
    let notebook = json!({"cells": [
        cell("!pip install ms-swift"),
        cell("%%writefile tune.py\nfrom trl import SFTConfig, SFTTrainer\nSFTTrainer('a/b', SFTConfig(per_device_train_batch_size=5)).train()"),
        cell("!accelerate launch tune.py"),
    ]});
    let launch = read_all(&[("x.ipynb", &notebook.to_string())]).unwrap();
    holds(&case(&launch), &json!({"model": "a/b", "batch": 5}));
    let swift = json!({"cells": [cell("import os"), cell("!swift sft --model a/b --max_length 64")]});
    let launch = read_all(&[("x.ipynb", &swift.to_string())]).unwrap();
    assert_eq!(launch.tool, Tool::MsSwift);
    holds(&case(&launch), &json!({"model": "a/b", "seq": 64}));
}

#[test]
fn a_script_that_starts_a_command_is_read_by_that_command() {
    let rent = "import subprocess, modal\napp = modal.App('x')\n@app.function(gpu='H100:2')\ndef tune():\n    \
                subprocess.run(['accelerate', 'launch', '--num_processes', '2', '/job/tune.py', '--per_device_train_batch_size', '3'], check=True)\n";
    let tune = "from trl import SFTConfig, SFTTrainer, TrlParser\nargs, = TrlParser((SFTConfig,)).parse_args_and_config()\nSFTTrainer('a/b', args).train()\n";
    let launch = read_all(&[("rent.py", rent), ("tune.py", tune)]).unwrap();
    holds(&case(&launch), &json!({"model": "a/b", "batch": 3, "world": 2}));
    let alone = read_all(&[("rent.py", rent)]).unwrap();
    assert_eq!(case(&alone)["batch"], 3);
}

#[test]
fn what_is_not_known_is_said_and_never_guessed() {
    let of = |model: &str, args: &str| {
        format!(
            "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nimport mine\n\
             def pad(rows):\n    return mine.pad(rows)\n{model}\n\
             Trainer(model=net, args=TrainingArguments('x', {args}), data_collator=pad).train()\n"
        )
    };
    let plain = "net = AutoModelForCausalLM.from_pretrained('a/b')";
    for (text, words) in [
        (of("net = mine.build()", ""), "model: the model is what build makes"),
        (
            of("class Own(mine.Module):\n    pass\nnet = Own()", ""),
            "the script's own class Own",
        ),
        (
            of(&format!("{plain}\nif mine.flag():\n    net = mine.other()"), ""),
            "which model is trained is not readable",
        ),
        (
            of(plain, "per_device_train_batch_size=mine.batch()"),
            "per_device_train_batch_size: it is computed",
        ),
        (
            of(plain, "**mine.more()"),
            "args: the trainer's settings are not readable",
        ),
        (
            of(
                &format!("{plain}\nfor n, p in net.named_parameters():\n    p.requires_grad = 'attn' in n"),
                "",
            ),
            "requires_grad: ",
        ),
    ] {
        let launch = script(&text);
        assert!(
            open(&launch).iter().any(|line| line.contains(words)),
            "{words}: {:?}",
            open(&launch)
        );
    }
    // The collator of the script makes the batches: no line says how long they are.
    assert_eq!(case(&script(&of(plain, ""))).get("seq"), None);
}

#[test]
fn a_script_that_starts_no_run_of_its_own_says_why() {
    for (text, words) in [
        (
            "from maestro.trainer import train\ntrain({'batch_size': 4})\n",
            "hands the training to maestro.trainer.train (line 2)",
        ),
        (
            "import torch\nprint(torch.__version__)\n",
            "no line of it that is read trains",
        ),
        ("def f(:\n", "line 1"),
    ] {
        assert!(error(text).contains(words), "{}", error(text));
    }
    let two = "from trl import SFTTrainer, DPOTrainer\nSFTTrainer('a/b').train()\nDPOTrainer('a/b').train()\n";
    assert!(
        error(two).contains("several runs: SFTTrainer (line 2), DPOTrainer (line 3)"),
        "{}",
        error(two)
    );
    let other = script("from trl import RLOOTrainer, RLOOConfig\nRLOOTrainer('a/b', args=RLOOConfig('x')).train()\n");
    assert!(other.resolve(ModelFacts::UNKNOWN).another_run().next().is_some());
}

#[test]
fn conditions_that_are_known_choose_and_others_leave_open() {
    let of = |condition: &str| {
        script(&format!(
            "import os, sys, mine\nfrom trl import SFTConfig, SFTTrainer\nif {condition}:\n    n = 2\nelif False:\n    n = 3\nelse:\n    n = 4\n\
             def size(k):\n    if k > 3:\n        return 8\n    return 1\n\
             try:\n    import flash_attn\n    attn = 'flash_attention_2'\nexcept ImportError:\n    attn = 'sdpa'\n\
             SFTTrainer('a/b', SFTConfig(per_device_train_batch_size=n, gradient_accumulation_steps=size(n),\n    model_init_kwargs=dict(attn_implementation=attn, dtype='bfloat16'))).train()\n"
        ))
    };
    let known = of("not os.environ.get('BIG') and 'q' in 'qwen'");
    holds(&case(&known), &json!({"batch": 2, "accum": 1}));
    assert_eq!(
        open(&known),
        ["model_init_kwargs.attn_implementation: it is computed where the script runs, so it is not readable here"]
    );
    let unknown = of("mine.big()");
    assert!(
        open(&unknown)
            .iter()
            .any(|line| line.starts_with("per_device_train_batch_size: "))
    );
    // A way that ends in an error is not gone.
    let checked = script(
        "import mine\nfrom trl import SFTConfig, SFTTrainer\nn = 2\nif mine.bad():\n    n = 7\n    raise ValueError()\n\
         SFTTrainer('a/b', SFTConfig(per_device_train_batch_size=n)).train()\n",
    );
    holds(&case(&checked), &json!({"batch": 2}));
}

#[test]
fn parts_of_a_model_that_are_frozen_are_read() {
    let of = |lines: &str| {
        let text = format!(
            "from transformers import AutoModelForImageTextToText, Trainer, TrainingArguments\n\
             net = AutoModelForImageTextToText.from_pretrained('a/b')\n{lines}\nTrainer(net, TrainingArguments('x')).train()\n"
        );
        let launch = script(&text);
        assert_eq!(open(&launch), [""; 0], "{lines}");
        Value::Object(launch.resolve(ModelFacts::UNKNOWN).case)["freeze"].clone()
    };
    assert_eq!(of("net.model.vision_tower.requires_grad_(False)"), "vision");
    assert_eq!(
        of("for p in net.vision_tower.parameters():\n    p.requires_grad = False"),
        "vision"
    );
    assert_eq!(
        of(
            "net.requires_grad_(False)\nfor name, p in net.multi_modal_projector.named_parameters():\n    p.requires_grad = True"
        ),
        "all-but-connector"
    );
    assert_eq!(of("net.config.use_cache = False"), "none");
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = [
        "(",
        "[",
        "{1:",
        "not ",
        "-",
        "lambda: ",
        "f(",
        "x if y else ",
        "a.",
        "1 + ",
        "await ",
    ];
    for part in deep {
        for count in [80, 200, 100_000] {
            let text = format!("x = {}1\n", part.repeat(count));
            assert!(read_all(&[("x.py", &text)]).is_err());
        }
    }
    let nested: String = (0..200).map(|at| format!("{}if x:\n", " ".repeat(at))).collect();
    assert!(error(&nested).contains("line") || error(&nested).contains("within one another"));
    for text in [
        "def f(n):\n    return f(n + 1) + f(n + 2)\nf(0)\n".to_owned(),
        "while True:\n    pass\n".to_owned(),
        "a = 'x'\n".to_owned() + &"a = a + a\n".repeat(200),
        "a = [1]\n".to_owned() + &"a = a + a\n".repeat(200),
        "a = []\nfor i in range(4000):\n    a = [a]\nb = a == a\n".to_owned(),
        "x = 9 ** 9 ** 9 ** 9\ny = 1 << 99999999\nz = -(-9223372036854775807 - 1)\nw = (-9223372036854775807 - 1) // -1\n".to_owned(),
        "x = [i for i in range(10 ** 9) for j in range(10 ** 9)]\n".to_owned(),
        "x = 'ab' * 10 ** 12\ny = [0] * 10 ** 12\nz = '%s' % ('a',) * 10 ** 9\n".to_owned(),
        "d = {}\nfor i in range(60):\n    for j in range(60):\n        d[f'{i}{j}'] = dict(d)\n".to_owned(),
        "import m\n".to_owned() + &"if m.a():\n    x = 1\n    return\n".repeat(2000),
        "class A(A):\n    pass\nclass B(A, B): pass\nB().x.y()\n".to_owned(),
        format!("x = '{}'\n", "y".repeat(900_000)),
        "if m.x():\n    a = 1\n".repeat(20_000),
    ] {
        assert!(read_all(&[("x.py", &text)]).is_err(), "{}", &text[..text.len().min(80)]);
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Lines of programs, to be put together at random.
    const LINES: [&str; 40] = [
        "import torch",
        "from trl import *",
        "from transformers import Trainer, TrainingArguments",
        "x = 1",
        "x += x",
        "x = x['a']",
        "def f(a, *b, c=2, **d):",
        "    return a",
        "    x = f(1)",
        "    yield x",
        "class C(Trainer):",
        "    y: int = 3",
        "    def __init__(self, z=1):",
        "        self.z = z",
        "for i in range(3):",
        "    x.append(i)",
        "while x:",
        "    break",
        "if x:",
        "elif y:",
        "else:",
        "    continue",
        "try:",
        "except E as e:",
        "finally:",
        "with torch.autocast('cuda') as c:",
        "x, *y = f(**x)",
        "net = AutoModel.from_pretrained('a/b', dtype=x)",
        "t = Trainer(net, TrainingArguments('o', bf16=x))",
        "t.train()",
        "net(**x).loss.backward()",
        "x = lambda q, r=1: q[:r]",
        "x = [a for a in x if a]",
        "x = {**x, 'a': f'{x}'}",
        "match x:",
        "    case 1: pass",
        "global x",
        "del x",
        "x.a.b = C()",
        "opt = torch.optim.AdamW(net.parameters())",
    ];

    proptest! {
        /// Any text is read or refused.
        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,200}", name in "(x\\.py|x\\.ipynb|x)") {
            let _ = read_all(&[(&name, &text)]);
        }

        #[test]
        fn no_program_breaks_the_reader(lines in prop::collection::vec((0..LINES.len(), 0..3_usize), 0..40)) {
            let text: String = lines.iter().map(|(at, indent)| format!("{}{}\n", "    ".repeat(*indent), LINES[*at])).collect();
            let _ = read_all(&[("x.py", &text)]);
            // Cells that are no Python are passed over.
            let cells: Vec<Value> = lines.iter().map(|(at, _)| json!({"cell_type": "code", "source": LINES[*at]})).collect();
            let notebook = json!({"cells": cells}).to_string();
            if let Ok(launch) = read_all(&[("x.ipynb", &notebook)]) {
                prop_assert!(launch.lines.iter().all(|line| line.entry.line >= 1));
            }
        }

        /// Sums are Python's.
        #[test]
        fn sums_are_those_of_python(a in -99_i64..99, b in -9_i64..9) {
            let text = format!("from trl import SFTConfig, SFTTrainer\nn = ({a}) // ({b} or 1) + 1000\nm = ({a}) % ({b} or 1) + 1000\n\
                SFTTrainer('a/b', SFTConfig(per_device_train_batch_size=n, gradient_accumulation_steps=m)).train()\n");
            let d = if b == 0 { 1 } else { b };
            let floor = (a as f64 / d as f64).floor() as i64;
            let found = case(&script(&text));
            prop_assert_eq!(&found["batch"], &json!(floor + 1000));
            prop_assert_eq!(&found["accum"], &json!(a - d * floor + 1000));
        }
    }
}
