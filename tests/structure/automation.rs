//! Files that machines elsewhere read say what the repository's own say: steps of continuous integration, versions, forms.

use super::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Commands that `.ci/steps` has for a system, in order.
fn steps(system: &str) -> Vec<String> {
    let text = read(".ci/steps");
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let split = lines.map(|line| line.split_once(char::is_whitespace).expect("systems and a command"));
    let of_system = split.filter(|(systems, _)| systems.split(',').any(|one| one == system));
    of_system.map(|(_, command)| command.trim().to_owned()).collect()
}

/// Commands of a job of the workflow, in order.
fn workflow(job: &str) -> Vec<String> {
    let text = read(".github/workflows/ci.yml");
    let lines = text.lines().skip_while(|line| *line != format!("  {job}:")).skip(1);
    // The next key of the same depth begins another job.
    let own = lines.take_while(|line| line.starts_with("   ") || line.trim().is_empty());
    own.filter_map(|line| line.trim().strip_prefix("- run: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_workflow_runs_the_steps_of_each_system() {
    for system in ["linux", "macos", "windows"] {
        assert!(!steps(system).is_empty(), "{system}");
        assert_eq!(
            workflow(system),
            steps(system),
            "{system}: .github/workflows/ci.yml and .ci/steps"
        );
    }
}

#[test]
fn the_script_runs_the_steps_of_linux_to_the_first_that_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let ci = folder.path().join(".ci");
    std::fs::create_dir_all(&ci).expect("a folder");
    std::fs::copy(root().join(".ci/run"), ci.join("run")).expect("it is copied");
    let run = |steps: &str| {
        std::fs::write(ci.join("steps"), steps).expect("it is written");
        let done = std::process::Command::new("bash")
            .arg(ci.join("run"))
            .output()
            .expect("bash");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    // A step that reads its standard input leaves the others their turn.
    let all = run("# a list\nlinux  echo one; cat\nmacos  echo two\nmacos,linux  echo \"three four\"\n");
    assert_eq!(all, (Some(0), "one\nthree four\n".to_owned()));
    assert_eq!(
        run("linux  echo one\nlinux  exit 7\nlinux  echo three\n"),
        (Some(7), "one\n".to_owned())
    );
}

/// The value of a key in a file of TOML, on a line of its own.
fn value(path: &str, key: &str) -> String {
    let text = read(path);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key} = ")))
        .expect("the key");
    line.trim().trim_matches('"').to_owned()
}

#[test]
fn the_pinned_compiler_is_the_oldest_that_is_promised() {
    let (pinned, promised) = (
        value("rust-toolchain.toml", "channel"),
        value("Cargo.toml", "rust-version"),
    );
    assert_eq!(pinned.rsplit_once('.').map(|(minor, _)| minor), Some(promised.as_str()));
}

#[test]
fn python_has_the_version_of_the_crates() {
    let version = value("Cargo.toml", "version");
    assert_eq!(value("src/recorder/vramscope/__init__.py", "__version__"), version);
    let changelog = read("CHANGELOG.md");
    let is_told = ["## [Unreleased]".to_owned(), format!("## [{version}]")]
        .iter()
        .any(|head| changelog.contains(head));
    assert!(is_told, "CHANGELOG.md has neither {version} nor what comes next");
}

#[test]
fn forms_ask_for_what_a_fault_needs() {
    let mut forms = 0;
    for entry in std::fs::read_dir(root().join(".github/ISSUE_TEMPLATE"))
        .expect("a folder")
        .flatten()
    {
        let path = entry.path();
        if path.ends_with("config.yml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a form");
        assert!(text.contains("label: vramscope doctor"), "{}", path.display());
        forms += 1;
    }
    assert!(forms >= 2);
}
