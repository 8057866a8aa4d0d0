//! Tests of `bench` runs that are interrupted, and of disks that are full: earlier results stay.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::fake::Machine;
use super::machines::{WHOLE, ran, record};
use crate::program::Ran;

/// After Ctrl-C during a kernel, that kernel finishes, and `--resume` continues.
#[cfg(unix)]
#[test]
fn an_interrupted_run_is_gone_on_with() {
    let machine = Machine::with("interrupted", &WHOLE).set("FAKE_LAUNCH_MS", 20);
    let path = machine.file("record.json");
    let words = [
        "=add fp32 4096",
        "=scale fp32 4096",
        "=add bf16 4096",
        "=scale bf16 4096",
    ];
    let mut args = words.to_vec();
    args.extend(["--output", path.to_str().unwrap()]);
    let mut command = machine.bench(&args);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Once there is a result, the next kernel is running.
    let begun = || path.exists() && !record(&path).results.is_empty();
    while !begun() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("there is a kill").success());
    let seen: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(seen.stderr.contains("stopping after this kernel"), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("interrupted;") && seen.stderr.contains("--resume"),
        "{}",
        seen.stderr
    );
    let part = record(&path);
    assert!(
        !part.run.complete && (1..4).contains(&part.results.len()),
        "{}",
        part.results.len()
    );

    let mut args = words.to_vec();
    args.extend(["--resume", path.to_str().unwrap()]);
    let seen = ran(machine.set("FAKE_LAUNCH_MS", 0).bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let whole = record(&path);
    assert!(whole.run.complete);
    assert_eq!((whole.results.len(), &whole.results[0]), (4, &part.results[0]));
}

/// Ctrl-C before the first measurement leaves a valid, empty record.
#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_twice_ends_at_once() {
    // Longer than both interrupts take to arrive on a busy machine.
    let machine = Machine::with("twice", &WHOLE).set("FAKE_LAUNCH_MS", 5000);
    let path = machine.file("record.json");
    let child = machine
        .bench(&["=add fp32 4096", "=scale fp32 4096", "--output", path.to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(100));
        assert!(
            Command::new("kill")
                .args(["-INT", &id])
                .status()
                .expect("kill")
                .success()
        );
    }
    let seen: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    let record = record(&path);
    assert!(!record.run.complete && record.results.is_empty());
}

/// On a disk that is full from the start, nothing is measured in vain.
#[cfg(target_os = "linux")]
#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_measured() {
    let machine = Machine::with("full", &WHOLE);
    for (place, why) in [
        ("/proc/record.json", "cannot write"),
        ("/nowhere/record.json", "cannot write"),
    ] {
        let seen = ran(machine.bench(&["=add fp32 4096", "--output", place]));
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(1), ""), "{}", seen.stderr);
        assert!(
            seen.stderr.contains(why) && seen.stderr.contains("--output"),
            "{}",
            seen.stderr
        );
    }
}

/// On a disk that fills up, here simulated by a limit on file size, earlier results stay intact.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_leaves_the_results_before() {
    let machine = Machine::with("fills", &WHOLE);
    let path = machine.file("record.json");
    let all = [
        "=add fp32 4096",
        "=scale fp32 4096",
        "=add bf16 4096",
        "=scale bf16 4096",
        "=device_copy 64.0KiB",
    ];
    let bench = machine.bench(&[]);
    // `ulimit -f` counts blocks of 512 bytes; its signal is ignored, since a full disk sends none.
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(bench.get_program())
        .args(bench.get_args())
        .args(all)
        .args(["--output", path.to_str().unwrap()])
        .env_clear()
        .envs(bench.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let seen = ran(command);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    assert!(seen.stderr.contains("cannot write"), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("still holds the results before this one"),
        "{}",
        seen.stderr
    );
    assert!(seen.stderr.contains("--resume"), "{}", seen.stderr);
    let part = record(&path);
    assert!(
        !part.run.complete && (1..5).contains(&part.results.len()),
        "{}",
        part.results.len()
    );
    assert!(!path.with_extension("json.part").exists());

    // With space again, the remaining kernels are measured.
    let mut args = all.to_vec();
    args.extend(["--resume", path.to_str().unwrap()]);
    let seen = ran(machine.bench(&args));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(record(&path).results.len(), 5);
}
