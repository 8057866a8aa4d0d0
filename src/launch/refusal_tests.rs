//! What cannot be read is refused, whatever it is.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn what_is_no_launch_file_is_refused_with_the_reason() {
    let error = |text: &str| read(&[Source { name: "x.yaml", text }]).unwrap_err().to_string();
    let unknown = error("a: 1\n");
    for part in [
        "of no known tool",
        "`vramscope dry-run python YOUR_PROGRAM.py x.yaml`",
        "tools are transformers",
    ] {
        assert!(unknown.contains(part), "{unknown}");
    }
    assert!(
        error("a: [1\n").contains("x.yaml can't be read"),
        "{}",
        error("a: [1\n")
    );
    assert!(error("{\"a\": }").contains("line 1"), "{}", error("{\"a\": }"));
    assert!(error(&"#".repeat(MOST_BYTES + 1)).contains("at most"));
    assert_eq!(read(&[]), Err(LaunchError::Nothing));
}

/// Inputs at which the readers once panicked, found by `tests/fuzz`.
#[test]
fn damaged_files_are_read_or_refused() {
    let shell = "BS=2\nswift sft --model a/b --batch ${BS\u{fffd}O\u{fffd}U~8,}\n";
    let machines = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 18446744073709551615\nnum_processes: 4\n";
    // A line of the code begins like a command of IPython while brackets are open.
    let cell = "args = dict(\n  stage=\"sft\",\n/\n\n";
    let notebook = json!({"cells": [{"cell_type": "code", "source": cell}], "nbformat": 4}).to_string();
    for (name, text) in [("run.sh", shell), ("conf.yaml", machines), ("tune.ipynb", &notebook)] {
        if let Ok(launch) = read(&[Source { name, text }]) {
            launch.resolve(ModelFacts::UNKNOWN);
        }
    }
}

#[test]
fn a_container_without_a_command_is_said_to_be_one() {
    let text = "#!/bin/bash\ndocker run -itd --rm --gpus all \\\n-v ./rows:/job/rows \\\nbox:latest bash\n";
    let told = read(&[Source { name: "box.sh", text }]).unwrap_err().to_string();
    assert!(told.contains("starts a container and no training run in it"), "{told}");
}

#[test]
fn settings_of_programs_that_are_not_simulated_say_so() {
    for (text, name) in [
        (
            "model: a/b\nmodel_class: llm\ndist_config:\n  name: fsdp2\nmicro_batch_size: 1\n",
            "LLaMA-Factory's version 1",
        ),
        (
            "worker:\n  actor:\n    model:\n      model_path: a/b\ntrainer:\n  n_gpus_per_node: 8\n",
            "verl",
        ),
        (
            "model: a/b\ntuner_type: full\nexpert_model_parallel_size: 2\n",
            "Megatron",
        ),
    ] {
        let told = read(&[Source { name: "x.yaml", text }]).unwrap_err().to_string();
        assert!(
            told.contains(name) && told.contains("vramscope dry-run x.yaml"),
            "{told}"
        );
    }
}

#[test]
fn toml_is_for_a_program_of_its_own() {
    let command = "torchrun --nproc_per_node 4 train_it.py --config conf/nine.toml --own_flag 3\n";
    let toml = "[model]\nname = \"a/b\"\n";
    let both = [("run.sh", command), ("conf/nine.toml", toml)].map(|(name, text)| Source { name, text });
    let launch = read(&both).expect("the command is read");
    let resolved = launch.resolve(ModelFacts::UNKNOWN);
    assert!(
        resolved
            .not_simulated
            .iter()
            .any(|remark| remark.note == Note::OwnProgram)
    );
}

#[test]
fn a_program_that_trains_nothing_is_said_to_be_one() {
    let error = |name: &str, text: &str| read(&[Source { name, text }]).unwrap_err().to_string();
    let code = "\"\"\"Trains.\"\"\"\nimport torch\nfrom trl import SFTConfig\n\nargs = SFTConfig(bf16=True)\n";
    for name in ["tune.py", "pasted"] {
        let told = error(name, code);
        assert!(
            told.contains("no line of it that is read trains") && told.contains("vramscope dry-run"),
            "{told}"
        );
        assert!(!told.contains("byte"), "{told}");
    }
    let told = error("tune.ipynb", "{\"cells\": [{\"cell_type\": \"code\", \"source\": []}]}");
    assert!(
        told.contains("FILE.ipynb") && told.contains("vramscope dry-run"),
        "{told}"
    );
    // Words that Python has too are keys and commands elsewhere.
    assert!(!error("a.yaml", "import: x\nfrom: y\n").contains("Python"));
    let script = "python - <<END\nimport torch\nEND\nswift sft --max_length 512\n";
    assert!(
        read(&[Source {
            name: "a",
            text: script
        }])
        .is_ok()
    );
}

#[test]
fn of_several_commands_the_one_that_trains_is_read() {
    let read = |text: &str| read(&[Source { name: "x.sh", text }]);
    let error = |text: &str| read(text).unwrap_err().to_string();
    for (text, words) in [
        (
            "swift infer --model a/b\n",
            &["starts no training", "`swift infer` (line 1)"][..],
        ),
        ("llamafactory-cli chat a.yaml\n", &["starts no training"]),
        ("trl vllm-serve --model a/b\n", &["starts no training"]),
        (
            "trl rloo --model_name_or_path a/b\n",
            &["`trl rloo`", "not simulated yet"],
        ),
        (
            "swift pt --max_length 9\n\nswift sft --max_length 8\n",
            &[
                "several runs",
                "`swift pt` (line 1)",
                "`swift sft` (line 3)",
                "the one that you mean",
            ],
        ),
        (
            "python a.py --output_dir x\npython b.py --output_dir y\n",
            &["several runs"],
        ),
    ] {
        for word in words {
            assert!(error(text).contains(word), "{word}: {}", error(text));
        }
    }
    let text = "python convert.py --model a/b\nexport CUDA_VISIBLE_DEVICES=0\nswift sft --max_length 8\nswift export --adapters x\n";
    let launch = read(text).unwrap();
    assert_eq!(launch.tool, Tool::MsSwift);
    let said = &launch.resolve(ModelFacts::UNKNOWN).assumed[0].to_string();
    assert!(
        said.contains("`swift sft` (line 3)") && said.contains("`swift export` (line 4)"),
        "{said}"
    );
    // The same run twice is one, and what follows it changes nothing.
    assert!(read("swift sft --max_length 8\nswift sft --max_length 8\necho 'open\n").is_ok());
}

#[test]
fn options_that_the_shell_cuts_off_are_named() {
    for (between, why) in [
        ("--lora_rank 4 \\\n  # --lora_alpha 8 \\\n", "a comment"),
        ("--lora_rank 4 \\ \n", "a blank behind a backslash"),
        ("--lora_rank 4\n", "without a backslash"),
    ] {
        let text = format!("swift sft \\\n  {between}  --max_length 512 \\\n  --bf16 true\n");
        let launch = read(&[Source {
            name: "x.sh",
            text: &text,
        }])
        .unwrap();
        let resolved = launch.resolve(ModelFacts::UNKNOWN);
        let said = resolved.assumed[0].to_string();
        for words in [why, "--max_length, --bf16", "line 1"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(resolved.case.get("seq"), None, "{text}");
        assert_eq!(resolved.case["rank"], 4, "{text}");
    }
}

proptest! {
    /// Any text is read or refused.
    #[test]
    fn no_text_breaks_the_reader(text in "(stage: sft\n)?((cutoff_len|bf16|optim|deepspeed|lora_target|x)[:=] ?[-a-z0-9.\\[\\]{}\"*&!|,' ]{0,12}\n){0,6}(swift sft --[a-z_]{1,8} [a-z0-9'\"=]{0,8})?") {
        if let Ok(launch) = read(&[Source { name: "x", text: &text }]) {
            prop_assert!(launch.lines.iter().all(|line| line.entry.line >= 1));
        }
    }
}
