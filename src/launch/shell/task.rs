//! Jobs that hold commands: SkyPilot's and dstack's tasks, services of Docker Compose, pods of Kubernetes, workflows, and
//! configurations of an editor's debugger, each as a script with the variables and GPUs that it gives to its commands.

use serde_json::{Map, Value};

use super::is_name;
use super::job::first_of;

/// What any job has one of, by which files of settings are told from jobs before they are parsed.
const KEYS: [&str; 8] = [
    "run:",
    "commands:",
    "command:",
    "args:",
    "script:",
    "steps:",
    "\"configurations\"",
    "entrypoint:",
];

/// True for a file of this name that is a job.
pub(super) fn is_one(name: &str, text: &str) -> bool {
    let is_file = name.is_empty() || [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
    is_file && KEYS.iter().any(|key| text.contains(key)) && to_shell(text).is_some()
}

/// The script of a job; `None` if the text is none.
pub(super) fn to_shell(text: &str) -> Option<String> {
    let value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(&without_comments(text)).ok()?,
        false => crate::yaml::value(text)?,
    };
    let job = value.as_object()?;
    let lines = of_sky(job)
        .or_else(|| of_dstack(job))
        .or_else(|| of_compose(job))
        .or_else(|| of_debugger(job))
        .or_else(|| of_workflow(job))
        .or_else(|| of_pods(job))?;
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// SkyPilot: `run` beside `resources`, `setup` or `num_nodes`, and the variables that it sets itself
/// (`sky/skylet/constants.py`).
fn of_sky(job: &Map<String, Value>) -> Option<Vec<String>> {
    let run = job.get("run")?.as_str()?;
    let is_sky = ["resources", "setup", "num_nodes", "envs", "workdir"]
        .iter()
        .any(|key| job.contains_key(*key));
    let gpus = job
        .get("resources")
        .and_then(|of| of.get("accelerators"))
        .and_then(gpus_named);
    let nodes = job.get("num_nodes").and_then(Value::as_u64).unwrap_or(1);
    let mut out = variables(job.get("envs"));
    out.extend([
        exported("SKYPILOT_NUM_NODES", &nodes.to_string()),
        exported("SKYPILOT_NODE_RANK", "0"),
    ]);
    if let Some(gpus) = gpus {
        out.push(exported("SKYPILOT_NUM_GPUS_PER_NODE", &gpus.to_string()));
        out.extend(devices(gpus));
    }
    out.push(run.to_owned());
    is_sky.then_some(out)
}

/// dstack: `type: task` with `commands`, and the variables that it sets itself (its documentation of tasks).
fn of_dstack(job: &Map<String, Value>) -> Option<Vec<String>> {
    job.get("type").and_then(Value::as_str)?;
    let commands = texts(job.get("commands")?);
    let gpus = job
        .get("resources")
        .and_then(|of| of.get("gpu"))
        .map(|gpu| gpus_named(gpu).unwrap_or(1));
    let nodes = job.get("nodes").and_then(Value::as_u64).unwrap_or(1);
    let mut out = variables(job.get("env"));
    if let Some(gpus) = gpus {
        out.push(exported("DSTACK_GPUS_PER_NODE", &gpus.to_string()));
        out.push(exported("DSTACK_GPUS_NUM", &(gpus * nodes).to_string()));
        out.extend(devices(gpus));
    }
    out.push(exported("DSTACK_NODES_NUM", &nodes.to_string()));
    out.extend(commands);
    Some(out)
}

/// Docker Compose: the commands of its services.
fn of_compose(job: &Map<String, Value>) -> Option<Vec<String>> {
    let services = job.get("services")?.as_object()?;
    let mut out = Vec::new();
    for service in services.values().filter_map(Value::as_object) {
        let words = [service.get("entrypoint"), service.get("command")];
        let command: Vec<String> = words.into_iter().flatten().map(line_of).collect();
        if command.is_empty() {
            continue;
        }
        out.extend(variables(service.get("environment")));
        let reserved = service
            .get("deploy")
            .and_then(|of| of.pointer("/resources/reservations/devices/0/count"));
        out.extend(reserved.and_then(Value::as_u64).into_iter().flat_map(devices));
        out.push(command.join(" "));
    }
    Some(out)
}

/// Visual Studio Code: what its configurations start, with their arguments.
fn of_debugger(job: &Map<String, Value>) -> Option<Vec<String>> {
    let all = job.get("configurations")?.as_array()?;
    let mut out = Vec::new();
    for of in all.iter().filter_map(Value::as_object) {
        let started = match (of.get("module"), of.get("program")) {
            (Some(module), _) => format!("-m {}", module.as_str()?),
            (None, Some(program)) => quoted(program.as_str()?),
            _ => continue,
        };
        let settings: Vec<String> = pairs(of.get("env"))
            .iter()
            .map(|(name, value)| format!("{name}={}", quoted(value)))
            .collect();
        let arguments = of.get("args").map(line_of).unwrap_or_default();
        // Its own variables are folders, from which paths begin.
        let line = format!("{} python {started} {arguments}", settings.join(" "));
        out.push(line.replace("${workspaceFolder}/", "").trim().to_owned());
    }
    Some(out)
}

/// Workflows of GitHub (`jobs`, whose `steps` run) and of GitLab (`script`).
fn of_workflow(job: &Map<String, Value>) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let jobs = job.get("jobs").and_then(Value::as_object).unwrap_or(job);
    for of in jobs.values().filter_map(Value::as_object) {
        let steps = of.get("steps").and_then(Value::as_array);
        for step in steps.into_iter().flatten() {
            if let Some(run) = step.get("run").and_then(Value::as_str) {
                out.extend(variables(step.get("env")));
                out.push(run.to_owned());
            }
        }
        out.extend(of.get("script").map(texts).into_iter().flatten());
    }
    (!out.is_empty()).then_some(out)
}

/// Kubernetes: the commands of containers, wherever they stand in what holds them.
fn of_pods(job: &Map<String, Value>) -> Option<Vec<String>> {
    job.get("kind")?.as_str()?;
    let mut out = Vec::new();
    containers(&Value::Object(job.clone()), &mut out, 0);
    (!out.is_empty()).then_some(out)
}

fn containers(value: &Value, out: &mut Vec<String>, depth: usize) {
    if depth > 16 {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| containers(item, out, depth + 1)),
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_array().filter(|_| key == "containers") {
                    Some(all) => all.iter().for_each(|of| out.extend(container(of))),
                    None => containers(value, out, depth + 1),
                }
            }
        }
        _ => {}
    }
}

/// A container, of which workers and masters are alike.
fn container(of: &Value) -> Vec<String> {
    let words = [of.get("command"), of.get("args")].into_iter().flatten();
    let words: Vec<String> = words.flat_map(texts).collect();
    let mut out: Vec<String> = of
        .get("env")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| Some(exported(one.get("name")?.as_str()?, &shown(one.get("value")?))))
        .collect();
    let gpus = of.pointer("/resources/limits").and_then(|limits| {
        let told = limits.get("nvidia.com/gpu")?;
        told.as_u64().or_else(|| told.as_str()?.parse().ok())
    });
    out.extend(gpus.into_iter().flat_map(devices));
    match &words[..] {
        [] => return Vec::new(),
        // `sh -c "…"`, whose text may have many lines.
        [shell, flag, text, ..] if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") => {
            out.push(text.clone());
        }
        all => {
            let all: Vec<String> = all.iter().map(|word| quoted(word)).collect();
            out.push(all.join(" "));
        }
    }
    out
}

/// Number of GPUs as `A100:8`, `{A100: 8}`, `24GB:2`, `{count: 2}` or `8` tell it; one where only a name is told.
fn gpus_named(told: &Value) -> Option<u64> {
    match told {
        Value::Number(count) => count.as_u64(),
        Value::String(text) => match text.rsplit_once(':') {
            Some((_, count)) => count.trim().parse().ok(),
            None => text.parse().ok().or(Some(1)),
        },
        Value::Object(map) => map
            .get("count")
            .and_then(Value::as_u64)
            .or_else(|| map.values().next().and_then(Value::as_u64)),
        Value::Array(all) => all.first().and_then(gpus_named),
        _ => None,
    }
}

fn devices(gpus: u64) -> Option<String> {
    (gpus > 0).then(|| exported("CUDA_VISIBLE_DEVICES", &first_of(gpus)))
}

/// Variables of a mapping or of a list of `NAME=value`.
fn pairs(of: Option<&Value>) -> Vec<(String, String)> {
    let named = |(name, value): (&str, String)| is_name(name).then(|| (name.to_owned(), value));
    match of {
        Some(Value::Object(map)) => map
            .iter()
            .filter_map(|(name, value)| named((name, shown(value))))
            .collect(),
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(|one| one.as_str()?.split_once('='))
            .filter_map(|(name, value)| named((name, value.to_owned())))
            .collect(),
        _ => Vec::new(),
    }
}

fn variables(of: Option<&Value>) -> Vec<String> {
    pairs(of).iter().map(|(name, value)| exported(name, value)).collect()
}

fn exported(name: &str, value: &str) -> String {
    format!("export {name}={}", quoted(value))
}

/// A word as a shell takes it; variables in it are the shell's.
fn quoted(word: &str) -> String {
    match word.contains('$') {
        true => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
        false => shlex::try_quote(word).map_or_else(|_| String::new(), std::borrow::Cow::into_owned),
    }
}

/// A command as it is written, or its words.
fn line_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('\n', " "),
        Value::Array(all) => {
            let words: Vec<String> = all.iter().map(|word| quoted(&shown(word))).collect();
            words.join(" ")
        }
        _ => String::new(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().map(shown).collect(),
        _ => Vec::new(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// JSON without the comments and the last commas that editors allow in theirs.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut is_text = false;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(_)) if is_text => {
                out.push(c);
                out.extend(chars.next());
            }
            ('"', _) => {
                is_text = !is_text;
                out.push(c);
            }
            ('/', Some('/')) if !is_text => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) if !is_text => {
                let mut last = ' ';
                for c in chars.by_ref().skip(1) {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            (']' | '}', _) if !is_text => {
                let kept = out.trim_end().strip_suffix(',').map(str::len);
                out.truncate(kept.unwrap_or(out.len()));
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::to_shell;

    #[test]
    fn jobs_are_scripts_with_their_variables_and_gpus() {
        let sky = "resources:\n  accelerators: A100-80GB:4\nenvs:\n  MODEL: a/b\nrun: |\n  swift sft --model $MODEL\n";
        let script = to_shell(sky).expect("a task");
        for line in [
            "export MODEL=a/b\n",
            "export SKYPILOT_NUM_GPUS_PER_NODE=4\n",
            "export CUDA_VISIBLE_DEVICES='0,1,2,3'\n",
            "\nswift sft --model $MODEL\n",
        ] {
            assert!(script.contains(line), "{script}");
        }
        let dstack = "type: task\ncommands:\n  - trl sft\n      --bf16\nresources:\n  gpu: 24GB:2\n";
        assert!(to_shell(dstack).is_some_and(|text| text.contains("trl sft --bf16") && text.contains("='0,1'")));
        let pod = "kind: Pod\nspec:\n  containers:\n    - command: [torchrun, a.py]\n      args: [--x=1 2]\n      \
                   resources: {limits: {nvidia.com/gpu: 2}}\n";
        let script = to_shell(pod).expect("a pod");
        assert!(
            script.contains("torchrun a.py '--x=1 2'") && script.contains("='0,1'"),
            "{script}"
        );
        let editor =
            "{// one\n\"configurations\": [{\"module\": \"a.b\", \"args\": [\"--c\", \"d,\"], \"env\": {\"X\": 1},}]}";
        assert_eq!(to_shell(editor).as_deref(), Some("X=1 python -m a.b --c 'd,'\n"));
        let flow = "jobs:\n  a:\n    steps:\n      - uses: x\n      - run: python train.py\n";
        assert_eq!(to_shell(flow).as_deref(), Some("python train.py\n"));
    }

    #[test]
    fn settings_are_no_jobs() {
        for text in [
            "stage: sft\nrun_name: x\n",
            "type: a\n",
            "run: fast\n",
            "{\"zero_optimization\": {\"stage\": 2}}",
            "- run\n",
        ] {
            assert_eq!(to_shell(text), None, "{text}");
        }
    }
}
