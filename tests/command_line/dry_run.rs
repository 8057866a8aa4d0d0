//! Tests of `dry-run`: its choice of Python, what the recorder is told, what is shown, and exit codes. `tests/recorder` tests
//! real dry runs.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Ran, finish, vramscope};
use crate::recording;

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dry_run").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes an executable program.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a folder");
    fs::write(path, text).expect("it is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may run");
}

/// Writes a Python that notes its words, and writes this recording in place of one that it would make.
fn python(path: &Path, home: &Path, recording: &str) {
    let kept = home.join("kept.vram");
    fs::write(&kept, recording).expect("it is written");
    let words = home.join("words");
    let text = format!(
        "#!/bin/sh\nfor word in \"$0\" \"$@\"; do echo \"$word\" >> '{}'; done\n[ \"$2\" = dry-run ] || exit 9\n/bin/cat '{}' > \"$4\"\n\
         echo progress >&2\n",
        words.display(),
        kept.display()
    );
    program(path, &text);
}

/// Returns what `vramscope dry-run` does with these arguments, in an isolated environment.
fn dry_run(home: &Path, words: &[&str]) -> Ran {
    let mut command: Command = vramscope();
    command
        .arg("dry-run")
        .args(words)
        .current_dir(home)
        .env("HOME", home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("PATH", home.join("path"));
    finish(&mut command, b"")
}

/// Returns the words that Python was started with, its own name first.
fn told(home: &Path) -> Vec<String> {
    let text = fs::read_to_string(home.join("words")).expect("it was started");
    text.lines().map(str::to_owned).collect()
}

/// The recording of two steps, with what a dry run adds.
fn recorded() -> String {
    let added = concat!(
        r#"{"t":"stand_in","what":"wandb","how":"answered by a stand-in: nothing is logged or sent","count":1}"#,
        "\n",
        r#"{"t":"missing","packages":["flash-attn"]}"#,
        "\n",
        r#"{"t":"batches","walked":100,"total":500,"each":4,"steps":[{"step":1,"why":["early"],"positions":64},"#,
        r#"{"step":37,"why":["positions"],"positions":2112,"pixels":9000,"labels":512}]}"#,
        "\n",
    );
    recording::recording().replace("{\"t\":\"end\"", &format!("{added}{{\"t\":\"end\""))
}

#[test]
fn the_command_and_its_flags_reach_the_recorder() {
    let home = folder("words");
    python(&home.join("path/python3"), &home, &recorded());
    let words = [
        "--steps",
        "3",
        "--rank",
        "1",
        "--cards",
        "2",
        "--keep-going",
        "--data",
        "made-up:tokens=64",
        "--offline",
        "swift",
        "sft",
        "--gpu",
        "x",
        "a b",
    ];
    let seen = dry_run(&home, &words);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let told = told(&home);
    let end = told
        .iter()
        .position(|word| word == "--")
        .expect("the command is set apart");
    assert_eq!(told[end + 1..], ["swift", "sft", "--gpu", "x", "a b"]);
    for flags in [
        ["--steps", "3"],
        ["--rank", "1"],
        ["--cards", "2"],
        ["--data", "made-up:tokens=64"],
        ["--world", "1"],
    ] {
        assert!(
            told[..end].windows(2).any(|pair| pair == flags),
            "{flags:?} in {told:?}"
        );
    }
    for flag in ["--keep-going", "--offline"] {
        assert!(told[..end].contains(&flag.to_owned()), "{flag} in {told:?}");
    }
    let card: serde_json::Value = told[..end]
        .iter()
        .find_map(|word| serde_json::from_str(word).ok().filter(serde_json::Value::is_object))
        .expect("a card");
    assert_eq!(
        (&card["name"], &card["capability"]),
        (&"H100 SXM".into(), &serde_json::json!([9, 0]))
    );
}

#[test]
fn two_environments_stand_beside_each_other() {
    let home = folder("against");
    python(&home.join("path/python3"), &home, &recorded());
    // The environment is this Python again.
    let script = fs::read_to_string(home.join("path/python3")).expect("it is there");
    let made = "[ \"$2\" = environment ] && echo \"$0\" && exit 0\n[ \"$2\" = dry-run ]";
    program(
        &home.join("path/python3"),
        &script.replace("[ \"$2\" = dry-run ]", made),
    );
    let words = ["--with", "trl==1.16,peft", "--against", "trl==1.9", "trl", "sft"];
    let seen = dry_run(&home, &words);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(
        seen.stdout.contains("trl==1.16 peft") && seen.stdout.contains("trl==1.9 peft"),
        "{}",
        seen.stdout
    );
    assert!(seen.stdout.contains("no tensor differs"), "{}", seen.stdout);
    let words = told(&home);
    let asked = |spec: &str| words.iter().any(|word| word == spec);
    assert!(asked("trl==1.16") && asked("trl==1.9"), "{words:?}");
}

#[test]
fn jsonl_of_two_environments_is_one_line() {
    let home = folder("against_jsonl");
    python(&home.join("path/python3"), &home, &recorded());
    let script = fs::read_to_string(home.join("path/python3")).expect("it is there");
    let made = "[ \"$2\" = environment ] && echo \"$0\" && exit 0\n[ \"$2\" = dry-run ]";
    program(
        &home.join("path/python3"),
        &script.replace("[ \"$2\" = dry-run ]", made),
    );
    let seen = dry_run(&home, &["--format", "jsonl", "--against", "trl==1.9", "trl", "sft"]);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let [answer] = &seen.lines()[..] else {
        panic!("one line: {}", seen.stdout);
    };
    assert_eq!(answer["names"][1], "trl==1.9");
}

/// Returns the answer to a request for `path` at `host`.
#[cfg(feature = "server")]
fn fetched(host: &str, path: &str) -> String {
    use std::io::{Read, Write};

    let mut stream = std::net::TcpStream::connect(host).expect("it listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("it takes a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Waits until another program has written a line into a file, and returns it.
#[cfg(feature = "server")]
fn written(path: &std::path::Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
}

#[cfg(feature = "server")]
#[test]
fn the_recording_is_opened_on_the_page() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let home = folder("open");
    python(&home.join("path/python3"), &home, &recorded());
    let opened = home.join("opened");
    program(
        &home.join("path/xdg-open"),
        &format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display()),
    );
    // Without a page nothing is run.
    let none = home.join("none");
    fs::create_dir_all(&none).expect("a folder");
    let none = none.to_string_lossy().into_owned();
    assert!(
        dry_run(&home, &["--open", "--page", &none, "train.py"])
            .refused()
            .contains("holds no built page")
    );
    assert!(!home.join("words").exists());

    let page = home.join("dist");
    fs::create_dir_all(&page).expect("a folder");
    let head = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'\"><title>the page</title>";
    fs::write(page.join("index.html"), head).expect("it is written");
    let mut child = vramscope()
        .args(["dry-run", "--open", "--limit-gib", "0.05", "train.py"])
        .current_dir(&home)
        .env("HOME", &home)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("PATH", home.join("path"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.contains("shown at"))
        .expect("the address is said");
    let address = line.split_whitespace().find(|word| word.starts_with("http://"));
    let address = address.expect("an address");
    let (host, shown) = address["http://".len()..].split_once('/').expect("a host");
    assert_eq!(shown, "#/recorded?recording=dry-run.vram.gz");
    let index = fetched(host, "/");
    assert!(
        index.contains("<title>the page") && index.contains("content-security-policy: default-src 'self'"),
        "{index}"
    );
    let file = fetched(host, "/dry-run.vram.gz");
    assert!(
        file.starts_with("HTTP/1.1 200") && file.contains(r#""what":"wandb""#),
        "{file}"
    );
    assert_eq!(written(&opened).trim(), address);
    let id = child.id().to_string();
    Command::new("kill")
        .args(["-INT", &id])
        .status()
        .expect("it is told to end");
    // What the run came to is still what it ends with.
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn given_values_are_run_one_after_the_other() {
    let home = folder("vary");
    python(&home.join("path/python3"), &home, &recorded());
    let seen = dry_run(
        &home,
        &["--json", "--vary", "batch=--bs:1,2", "python3", "train.py", "--bs", "4"],
    );
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let rows: serde_json::Value = serde_json::from_str(&seen.stdout).expect("it is JSON");
    assert_eq!((&rows[0]["value"], &rows[1]["value"]), (&1.into(), &2.into()));
    assert!(told(&home).contains(&"--bs=2".to_owned()));
    let seen = dry_run(&home, &["--vary", "batch", "python3", "train.py"]);
    assert_eq!(seen.code, Some(2));
    assert!(seen.stderr.contains("batch:1,2,4"), "{}", seen.stderr);
}

/// What a dry run asks of this program where a command names a model by its id.
#[test]
fn a_models_folder_holds_its_configuration() {
    let home = folder("models");
    let asked = |id: &str| {
        let mut command: Command = vramscope();
        command
            .args(["models", id, "--folder", "--offline"])
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join("cache"));
        finish(&mut command, b"")
    };
    let seen = asked("Qwen/Qwen2.5-VL-3B-Instruct");
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let config = fs::read_to_string(Path::new(seen.stdout.trim()).join("config.json")).expect("it is written");
    let config: serde_json::Value = serde_json::from_str(&config).expect("it is JSON");
    assert_eq!(config["image_token_id"], 151655);
    let seen = asked("nobody/has-this-model");
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""));
    assert!(seen.stderr.contains("nobody/has-this-model"), "{}", seen.stderr);
}

#[test]
fn the_answer_is_what_estimate_says_with_what_was_answered() {
    let home = folder("answer");
    python(&home.join("path/python3"), &home, &recorded());
    let seen = dry_run(&home, &["train.py"]);
    for words in [
        "Peak per phase",
        "step 37 decides, with 2,112 positions",
        "batches of 100 steps of the run's 500 were looked at",
        "wandb: answered by a stand-in",
        "flash-attn",
    ] {
        assert!(seen.stdout.contains(words), "{words:?} is missing:\n{}", seen.stdout);
    }
    let seen = dry_run(&home, &["--json", "-o", "kept.vram.gz", "train.py"]);
    let answer: serde_json::Value = serde_json::from_str(&seen.stdout).expect("JSON and nothing else");
    assert_eq!(answer["recording"]["batches"]["steps"][1]["step"], 37);
    assert_eq!(answer["recording"]["stand_ins"][0]["what"], "wandb");
    assert_eq!(answer["recording"]["missing"][0], "flash-attn");
    let peaks = &answer["recording"]["batches"];
    let decides = peaks["decides"].as_u64().expect("a number");
    assert_eq!(
        peaks["steps"][decides as usize]["peak_allocated"],
        answer["peak_allocated"]
    );
    assert!(home.join("kept.vram.gz").is_file());
}

/// Bytes of a matrix in the recording, and lines that hold one more over the first step alone.
fn heavier_first() -> String {
    let text = recorded().replace(
        "\"shape\":[1024,1024]}",
        "\"shape\":[1024,1024]}\n{\"t\":\"meta\",\"id\":1,\"dtype\":\"f32\",\"shape\":[8192,8192]}",
    );
    let mark = "{\"t\":\"mark\",\"at\":\"step\",\"step\":1}\n";
    let held = format!(
        "{mark}{{\"t\":\"op\",\"f\":0,\"a\":[8192,8192],\"o\":[\"#1:1\"],\"n\":[[1,268435456]]}}\n{{\"t\":\"free\",\"s\":[1]}}\n"
    );
    // Storages from 1 on are one further.
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        if !line.contains("\"t\":\"meta\"") && !line.contains("\"t\":\"batches\"") {
            for id in (1..=6).rev() {
                let next = id + 1;
                line = line.replace(&format!("\"#{id}:"), &format!("\"#{next}:"));
                line = line.replace(&format!("[[{id},"), &format!("[[{next},"));
                line = line.replace(&format!("\"s\":{id},"), &format!("\"s\":{next},"));
            }
            for (before, after) in [("[3,2,1]", "[4,3,2]"), ("[6,5,4]", "[7,6,5]")] {
                line = line.replace(before, after);
            }
        }
        out += &line;
        out.push('\n');
    }
    out.replace(mark, &held)
}

#[test]
fn the_step_with_the_highest_peak_is_shown() {
    let home = folder("decides");
    python(&home.join("path/python3"), &home, &heavier_first());
    let seen = dry_run(&home, &["--json", "train.py"]);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let answer: serde_json::Value = serde_json::from_str(&seen.stdout).expect("JSON");
    assert_eq!(answer["recording"]["batches"]["decides"], 0);
    let steps = answer["recording"]["batches"]["steps"].as_array().expect("a list");
    assert!(steps[0]["peak_allocated"].as_u64() > steps[1]["peak_allocated"].as_u64());
    assert_eq!(answer["peak_allocated"], steps[0]["peak_allocated"]);
}

#[test]
fn exit_codes_are_the_verdict() {
    let home = folder("verdict");
    python(&home.join("path/python3"), &home, &recorded());
    assert_eq!(dry_run(&home, &["train.py"]).code, Some(0));
    assert_eq!(dry_run(&home, &["--gpu", "H100", "train.py"]).code, Some(0));
    assert_eq!(dry_run(&home, &["--limit-gib", "0.05", "train.py"]).code, Some(3));
    let reserved: serde_json::Value = serde_json::from_str(&dry_run(&home, &["--json", "a.py"]).stdout).expect("JSON");
    let tight = reserved["peak_reserved"].as_f64().expect("a number") * 1.01 / f64::from(1 << 30);
    let seen = dry_run(&home, &["--limit-gib", &format!("{tight:.4}"), "train.py"]);
    assert_eq!(seen.code, Some(5), "{}", seen.stdout);
    assert!(
        dry_run(&home, &["--gpu", "M4 Max 36GB", "train.py"])
            .refused()
            .contains("CUDA")
    );
    assert!(!dry_run(&home, &[]).stderr.is_empty());
}

#[test]
fn the_largest_size_is_found_by_dry_runs() {
    let home = folder("max");
    // Six matrices fit: a batch of N holds N matrices more.
    let heavy =
        "{\"t\":\"op\",\"f\":0,\"a\":[1024,1024],\"o\":[\"#ID:0\"],\"n\":[[ID,BYTES]]}\n{\"t\":\"free\",\"s\":[ID]}\n";
    let end = "{\"t\":\"mark\",\"at\":\"step_end\",\"step\":2}";
    let kept = recording::recording().replace(end, &(heavy.replace("ID", "7") + end));
    python(&home.join("path/python3"), &home, &kept);
    let script = fs::read_to_string(home.join("path/python3")).expect("it is there");
    let sized = "size=1\nfor word in \"$@\"; do case $word in batch=*) size=${word#batch=} ;; esac; done\nbytes=$((size * 33554432))\n";
    let filled = script.replace("/bin/cat '", "/bin/sed \"s/BYTES/$bytes/\" '");
    program(
        &home.join("path/python3"),
        &filled.replace("[ \"$2\"", &format!("{sized}[ \"$2\"")),
    );
    let seen = dry_run(&home, &["--limit-gib", "0.3", "--max", "batch", "--json", "train.py"]);
    assert_eq!(seen.code, Some(0), "{}{}", seen.stdout, seen.stderr);
    let answer: serde_json::Value = serde_json::from_str(&seen.stdout).expect("JSON");
    let (max, beyond) = (
        answer["max"].as_u64().expect("a number"),
        answer["beyond"].as_u64().expect("a number"),
    );
    assert_eq!(beyond, max + 1, "{answer}");
    assert!(max > 2, "{answer}");
    let seen = dry_run(&home, &["--limit-gib", "0.05", "--max", "batch", "train.py"]);
    assert_eq!(seen.code, Some(3));
    assert!(seen.stdout.contains("No batch fits"), "{}", seen.stdout);
    assert!(
        dry_run(&home, &["--max", "batch", "train.py"])
            .refused()
            .contains("--gpu")
    );
}

#[test]
fn a_program_of_the_path_brings_its_own_python() {
    let home = folder("own");
    python(&home.join("path/python3"), &home, &recorded());
    for (name, head) in [
        (
            "swift",
            format!("#!{}\n", home.join("tool of mine/bin/python3.11").display()),
        ),
        (
            "trl",
            format!(
                "#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n",
                home.join("tool of mine/bin/python3.11").display()
            ),
        ),
    ] {
        let _ = fs::remove_file(home.join("words"));
        python(&home.join("tool of mine/bin/python3.11"), &home, &recorded());
        program(&home.join("path").join(name), &head);
        assert_eq!(dry_run(&home, &[name, "sft"]).code, Some(0));
        assert_eq!(
            Path::new(&told(&home)[0]),
            home.join("tool of mine/bin/python3.11"),
            "{name}"
        );
    }
    let _ = fs::remove_file(home.join("words"));
    assert_eq!(dry_run(&home, &["train.py"]).code, Some(0));
    assert_eq!(Path::new(&told(&home)[0]), home.join("path/python3"));
}

#[test]
fn what_the_recorder_ends_with_is_the_commands() {
    let home = folder("fails");
    program(&home.join("path/python3"), "#!/bin/sh\necho why >&2\nexit 2\n");
    let seen = dry_run(&home, &["train.py"]);
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""));
    assert_eq!(seen.stderr, "why\n");
}
