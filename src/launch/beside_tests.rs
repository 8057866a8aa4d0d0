//! Scripts with the files that they start, name and write.

use super::*;
use crate::keys::may_matter;

fn sources<'a>(files: &[(&'a str, &'a str)]) -> Vec<Source<'a>> {
    files.iter().map(|(name, text)| Source { name, text }).collect()
}

const TWO: &str = "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}";
const THREE: &str = "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}}";
const SCRIPT: &str =
    "cd src\ntorchrun --nproc_per_node 2 train.py --output_dir x --deepspeed conf/two.json \\\n  --bf16 True\n";

#[test]
fn what_is_named_and_not_given_is_said() {
    assert_eq!(named(&sources(&[("start.sh", "bash tune/a.sh")])), ["tune/a.sh"]);
    let with = [("start.sh", "bash tune/a.sh"), ("/home/me/tune/a.sh", SCRIPT)];
    assert_eq!(named(&sources(&with)), ["src/conf/two.json", "src/train.py"]);
    let all = [with[0], with[1], ("/home/me/src/conf/two.json", TWO)];
    // The program that it starts would say what its options mean.
    assert_eq!(named(&sources(&all)), ["src/train.py"]);
    let launch = read(&sources(&all)).unwrap();
    let case = launch.resolve(ModelFacts::UNKNOWN).case;
    assert_eq!((&case["strategy"], &case["world"]), (&"deepspeed2".into(), &2.into()));
    // Lines stand in the script that starts the run.
    assert!(
        launch
            .lines
            .iter()
            .any(|line| line.source == 1 && line.entry.key == "bf16")
    );
}

#[test]
fn of_several_files_the_one_that_is_named_is_read() {
    let files = [("a.sh", SCRIPT), ("conf/three.json", THREE), ("conf/two.json", TWO)];
    let case = read(&sources(&files)).unwrap().resolve(ModelFacts::UNKNOWN).case;
    assert_eq!(case["strategy"], "deepspeed2");
}

#[test]
fn a_configuration_that_the_script_writes_is_read() {
    let text = "STAGE=3\ncat > ds.json <<EOF\n{\"zero_optimization\": {\"stage\": $STAGE}, \"bf16\": {\"enabled\": true}}\nEOF\n\
                deepspeed --num_gpus 2 train.py --output_dir x --bf16 True --deepspeed ds.json\n";
    assert_eq!(named(&sources(&[("a.sh", text)])), ["train.py"]);
    let case = read(&sources(&[("a.sh", text)]))
        .unwrap()
        .resolve(ModelFacts::UNKNOWN)
        .case;
    assert_eq!(case["strategy"], "deepspeed3");
}

#[test]
fn runs_that_differ_in_nothing_that_changes_memory_are_one() {
    let text =
        "for LR in 1e-5 2e-5 3e-5; do\n  swift sft --max_length 512 --learning_rate $LR --output_dir out/$LR\ndone\n";
    let launch = read(&sources(&[("a.sh", text)])).unwrap();
    let said = &launch.resolve(ModelFacts::UNKNOWN).assumed[0].to_string();
    assert!(said.starts_with("3 runs"), "{said}");
    let text = text
        .replace("512", "$((LR_N * 512 + 512))")
        .replace("for LR in 1e-5 2e-5 3e-5", "for LR_N in 1 2");
    assert!(
        read(&sources(&[("a.sh", &text)]))
            .unwrap_err()
            .to_string()
            .contains("several runs")
    );
}

#[test]
fn names_say_what_cannot_change_memory() {
    for key in [
        "data_path",
        "wandb_key",
        "save_steps",
        "mm_projector_lr",
        "image_folder",
        "eval_batch_size",
        "MY_JOB",
    ] {
        assert!(!may_matter(key), "{key}");
    }
    for key in [
        "model_path",
        "batch_size",
        "freeze_llm",
        "max_pixels",
        "use_lora",
        "attn_imple",
        "foo",
        "PJRT_DEVICE",
    ] {
        assert!(may_matter(key), "{key}");
    }
    let launch = read(&sources(&[(
        "a.sh",
        "python train.py --output_dir x --wandb_key y --max_pixls 9",
    )]))
    .unwrap();
    let fate = |key: &str| &launch.lines.iter().find(|line| line.entry.key == key).unwrap().fate;
    assert_eq!(fate("wandb_key"), &Fate::NoEffect(NoEffect::Name));
    assert!(matches!(fate("max_pixls"), Fate::Unknown(_)));
}

/// The command's options alone would be TRL's, with defaults that its own script may not have.
#[test]
fn a_command_names_the_program_that_it_starts() {
    let of = |script: &str| {
        let text =
            format!("accelerate launch {script} --use_peft --model_name_or_path x --per_device_train_batch_size 2\n");
        crate::named(&[Source {
            name: "go.sh",
            text: &text,
        }])
    };
    assert_eq!(of("tune/pictures.py"), ["tune/pictures.py"]);
    assert_eq!(of("trl/scripts/sft.py"), Vec::<String>::new());
}
