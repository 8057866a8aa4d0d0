//! Tests of `check`: exit codes, formats, budgets, and the comparison with another commit.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::examples;
use crate::program::{Ran, finish, run, run_on, vramscope};

const SMALL: &str = "{\"model\": \"gpt2\", \"batch\": 1, \"seq\": 64}";

fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
}

/// Checks in a folder, where git is found.
fn check_in(folder: &Path, args: &[&str]) -> Ran {
    let path = std::env::var_os("PATH").unwrap_or_default();
    finish(
        vramscope()
            .arg("check")
            .args(args)
            .current_dir(folder)
            .env("PATH", path),
        b"",
    )
}

/// The bytes that the small case needs of a limit of the allocator.
fn needed() -> u64 {
    let ran = run(["check", SMALL, "--limit-gib", "10", "--format", "json"]);
    document(&ran)["runs"][0]["needed"].as_u64().expect("a figure")
}

#[test]
fn exit_codes_are_the_verdicts() {
    let needed = needed() as f64 / f64::from(1 << 30);
    for (room, code, word) in [
        (needed * 1.2, 0, "fits"),
        (needed * 1.01, 5, "tight"),
        (needed * 0.5, 3, "oom"),
    ] {
        let ran = run(["check", SMALL, "--format", "json", "--limit-gib", &room.to_string()]);
        assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
        let answer = document(&ran);
        assert_eq!((&answer["outcome"], &answer["exit_code"]), (&word.into(), &code.into()));
    }
    let unbounded = "swift sft --model qwen2.5-0.5b --megatron true\n";
    let ran = run_on(["check", "-", "--gpu", "h100"], unbounded);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("NOT KNOWN") && ran.stdout.contains("vramscope dry-run"),
        "{}",
        ran.stdout
    );
    let ran = run(["check", "no/such.yaml", "--gpu", "h100"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stdout.contains("there is no such file"), "{}", ran.stdout);
}

#[test]
fn whatever_estimate_takes_is_checked_with_its_figure() {
    let folder = examples::folder("checked");
    let estimated = |args: &[&str]| {
        let ran = finish(
            vramscope()
                .arg("estimate")
                .args(args)
                .args(["--format", "json"])
                .current_dir(&folder),
            b"",
        );
        document(&ran)["target"]["needed"]
            .as_u64()
            .unwrap_or_else(|| panic!("{}", ran.stderr))
    };
    std::fs::write(folder.join("case.json"), SMALL).expect("it is written");
    for (given, same) in [
        (&["train.yaml"][..], &["--launch", "train.yaml"][..]),
        (&["of_b.sh"], &["--launch", "of_b.sh"]),
        (&["run.vram.gz"], &["--recording", "run.vram.gz"]),
        (
            &["config.json", "--freeze", "lora"],
            &["--config", "config.json", "--freeze", "lora"],
        ),
        (&["case.json"], &["--case", SMALL]),
        (&["gpt2", "--batch", "2"], &["gpt2", "--batch", "2"]),
    ] {
        let checked = check_in(&folder, &[given, &["--gpu", "H200", "--format", "json"]].concat());
        let answer = document(&checked);
        let expected = estimated(&[same, &["--gpu", "H200"]].concat());
        assert_eq!(
            answer["runs"][0]["needed"].as_u64(),
            Some(expected),
            "{given:?}: {answer}"
        );
    }
    let command = "swift sft --model qwen2.5-0.5b --train_type lora --max_length 512 --torch_dtype bfloat16";
    let words: Vec<&str> = command.split(' ').collect();
    let answer = document(&check_in(
        &folder,
        &[&["--gpu", "H200", "--format", "json", "--"], &words[..]].concat(),
    ));
    assert_eq!(answer["runs"][0]["run"], command);
    let expected = estimated(&["--launch", "of_b.sh", "--gpu", "H200"]);
    assert_eq!(answer["runs"][0]["needed"].as_u64(), Some(expected), "{answer}");
}

#[test]
fn a_budget_is_less_than_the_card() {
    let of = |budget: &str| {
        run([
            "check",
            SMALL,
            "--limit-gib",
            "10",
            "--budget",
            budget,
            "--format",
            "json",
        ])
    };
    let needed = needed();
    assert_eq!(of("100%").code, Some(0));
    let over = of("1%");
    assert_eq!(over.code, Some(3), "{}", over.stdout);
    let answer = document(&over);
    assert_eq!(
        (&answer["outcome"], &answer["runs"][0]["outcome"]),
        (&"over_budget".into(), &"over_budget".into())
    );
    assert_eq!(answer["budget"].as_u64(), Some((10 << 30) / 100));
    let exactly = (needed as f64 / f64::from(1 << 30)).to_string();
    assert_eq!(of(&exactly).code, Some(0), "a budget that is met");
    assert!(of("much").stderr.contains("such as 22.5"));
}

#[test]
fn of_several_runs_the_worst_counts() {
    let large = "{\"model\": \"gpt2\", \"batch\": 64, \"seq\": 1024}";
    let ran = run(["check", SMALL, large, "--limit-gib", "10", "--format", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    let outcomes: Vec<Value> = document(&ran)["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["fits", "oom"]);
    let text = run(["check", SMALL, large, "--limit-gib", "10"]);
    assert!(
        text.stdout.starts_with("FITS  {") && text.stdout.contains("\nOOM  {"),
        "{}",
        text.stdout
    );
}

#[test]
fn the_document_is_that_of_its_schema() {
    let schema: Value = document(&run(["schema", "check"]));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for args in [
        &[SMALL, "gpt2", "--limit-gib", "10"][..],
        &["no.yaml", "--gpu", "h100", "--budget", "50%"],
    ] {
        let answer = document(&run([&["check", "--format", "json"], args].concat()));
        let errors: Vec<String> = validator.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {answer}");
    }
    let mut wrong = document(&run(["check", SMALL, "--limit-gib", "10", "--format", "json"]));
    wrong["outcome"] = "perhaps".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn reports_of_tests_and_findings_name_what_does_not_fit() {
    let folder = examples::folder("reported");
    let large = "{\"model\": \"gpt2\", \"batch\": 64, \"seq\": 1024}";
    std::fs::write(folder.join("a <b>.json"), large).expect("it is written");
    let args = ["a <b>.json", SMALL, "none.yaml", "--limit-gib", "10", "--format"];
    let junit = check_in(&folder, &[&args[..], &["junit"]].concat());
    assert_eq!(junit.code, Some(2));
    for words in [
        "<testsuites name=\"vramscope\" tests=\"3\" failures=\"1\" errors=\"1\">",
        "name=\"a &lt;b&gt;.json\"><failure type=\"oom\"",
        "<error type=\"error\" message=\"none.yaml: there is no such file\"/>",
        "<system-out>fits: ",
    ] {
        assert!(junit.stdout.contains(words), "{words}: {}", junit.stdout);
    }
    let sarif = document(&check_in(&folder, &[&args[..], &["sarif"]].concat()));
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 2, "a run that fits is no finding: {sarif}");
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("an index") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "a%20<b>.json");
}

/// A repository in which a launch file has one more image, and another is new.
pub fn repository(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("runs")).expect("a folder");
    let git = |args: &[&str]| {
        let who = [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "commit.gpgsign=false",
        ];
        let mut git = Command::new("git");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let done = git.args(who).args(args).current_dir(&folder).output().expect("git");
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it is written");
    let of = |batch: u32| {
        format!(
            "model_name_or_path: qwen2.5-0.5b\nstage: sft\nfinetuning_type: full\ncutoff_len: 512\nbf16: true\n\
             per_device_train_batch_size: {batch}\ndeepspeed: runs/ds.json\n"
        )
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    write("runs/train.yaml", &of(2));
    write("runs/same.yaml", &of(1));
    write(
        "runs/ds.json",
        "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}",
    );
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "runs"]);
    write("runs/train.yaml", &of(16));
    write("runs/new.yaml", &of(1));
    folder
}

#[test]
fn a_run_is_compared_with_the_same_file_of_a_commit() {
    let folder = repository("compared");
    let runs = ["train.yaml", "same.yaml", "new.yaml"];
    let flags = ["--gpu", "H200", "--world", "2", "--base", "main", "--format"];
    let ran = check_in(&folder.join("runs"), &[&runs[..], &flags, &["json"]].concat());
    let answer = document(&ran);
    let before = |at: usize| answer["runs"][at]["before"].clone();
    assert_eq!(before(0)["state"], "known", "{answer}");
    let more = before(0)["more"].as_i64().expect("a difference");
    let now = answer["runs"][0]["needed"].as_i64().expect("a figure");
    assert!(more > 0 && before(0)["needed"].as_i64() == Some(now - more), "{answer}");
    let parts = before(0)["parts"].as_array().expect("parts").clone();
    let sum: i64 = parts
        .iter()
        .map(|part| part["now"].as_i64().unwrap_or(0) - part["before"].as_i64().unwrap_or(0))
        .sum();
    assert_eq!(sum, more, "the parts add up");
    assert_eq!(
        (before(1)["more"].as_i64(), &before(1)["parts"]),
        (Some(0), &Value::Array(vec![]))
    );
    assert_eq!(before(2)["state"], "new");
    // The file that a launch names is that of the commit: without it nothing would be simulated.
    assert!(ran.stderr.contains("ds.json"), "{}", ran.stderr);
    let markdown = check_in(&folder, &[&["runs/train.yaml"], &flags[..], &["markdown"]].concat()).stdout;
    for words in [
        "### GPU memory on ",
        "| run | verdict | needs | before | change |",
        "| `runs/train.yaml` | fits | ",
        "| +",
    ] {
        assert!(markdown.contains(words), "{words}: {markdown}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.join(".git"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !left.iter().any(|name| name == "worktrees" || name == "index.lock"),
        "{left:?}"
    );
    let wrong = check_in(&folder, &["runs/train.yaml", "--gpu", "H200", "--base", "nowhere"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("has no such commit"), "{}", wrong.stderr);
}
