//! What Slurm tells a job, by the lines at the head of its script.

use super::state::State;

/// Reads the lines of Slurm at the head of a script: they decide what the environment says.
pub(super) fn headers(text: &str, state: &mut State) {
    let lines = text
        .lines()
        .take_while(|line| line.trim().is_empty() || line.starts_with('#'));
    let told = lines.filter_map(|line| line.strip_prefix("#SBATCH"));
    let words: Vec<String> = told
        .flat_map(|line| {
            let line = line.split(" #").next().unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    if !words.is_empty() {
        header_options(&words, state);
    }
}

/// Sets what Slurm tells a job of these options. What the caller has set prevails over the script's own lines.
pub(super) fn header_options(words: &[String], state: &mut State) {
    let number = |names: &[&str]| -> Option<u64> {
        let text = option(words, names)?;
        text.rsplit(':').next()?.parse().ok()
    };
    let nodes = option(words, &["-N", "--nodes"]).and_then(|nodes| nodes.rsplit('-').next()?.parse::<u64>().ok());
    let tasks_per_node = number(&["--ntasks-per-node"]);
    let tasks = number(&["-n", "--ntasks"]).or(tasks_per_node.map(|tasks| tasks * nodes.unwrap_or(1)));
    let of_resources = option(words, &["--gres"])
        .filter(|text| text.starts_with("gpu"))
        .and_then(|text| match text.rsplit(':').next()?.split(['(', ',']).next()? {
            "gpu" => Some(1),
            count => count.parse().ok(),
        });
    let of_task = number(&["--gpus-per-task"]).map(|gpus| gpus * tasks_per_node.unwrap_or(1));
    let of_all = number(&["-G", "--gpus"]).map(|gpus| gpus / nodes.unwrap_or(1).max(1));
    let gpus = number(&["--gpus-per-node"]).or(of_resources).or(of_task).or(of_all);
    let told = [
        ("SLURM_NNODES", nodes),
        ("SLURM_JOB_NUM_NODES", nodes),
        ("SLURM_NTASKS", tasks),
        ("SLURM_NTASKS_PER_NODE", tasks_per_node),
        ("SLURM_GPUS_ON_NODE", gpus),
        ("SLURM_GPUS_PER_NODE", gpus),
        ("SLURM_CPUS_PER_TASK", number(&["-c", "--cpus-per-task"])),
    ];
    for (name, value) in told {
        if let Some(value) = value
            && state.get(name).is_none()
        {
            state.set_text(name, &value.to_string());
            state.export(name);
        }
    }
    if let Some(gpus) = gpus.filter(|gpus| *gpus > 0)
        && state.get("CUDA_VISIBLE_DEVICES").is_none()
    {
        state.set_text("CUDA_VISIBLE_DEVICES", &first_of(gpus));
        state.export("CUDA_VISIBLE_DEVICES");
    }
}

/// Value of an option among some words.
pub(super) fn option(words: &[String], names: &[&str]) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| match word.strip_prefix(name)? {
            "" => words.get(at + 1).cloned(),
            rest => rest
                .strip_prefix('=')
                .map(str::to_owned)
                .or_else(|| (name.len() == 2).then(|| rest.to_owned())),
        })
    })
}

/// The first GPUs, as a list of devices.
pub(super) fn first_of(count: u64) -> String {
    let all: Vec<String> = (0..count.min(64)).map(|at| at.to_string()).collect();
    all.join(",")
}
