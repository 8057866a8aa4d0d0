//! Jobs that a program starts on machines of a cloud, as the commands that these run.

use super::heap::Value;
use super::machine::Machine;

/// GPUs of SageMaker's instances, by the beginning of their names and the rest, where it is not one (Amazon's documentation of
/// EC2's accelerated instances).
const GPUS: [(&str, &str, u64); 16] = [
    ("p3", "8xlarge", 4),
    ("p3", "16xlarge", 8),
    ("p3dn", "24xlarge", 8),
    ("p4d", "24xlarge", 8),
    ("p4de", "24xlarge", 8),
    ("p5", "48xlarge", 8),
    ("p5e", "48xlarge", 8),
    ("p5en", "48xlarge", 8),
    ("g4dn", "12xlarge", 4),
    ("g5", "12xlarge", 4),
    ("g5", "24xlarge", 4),
    ("g5", "48xlarge", 8),
    ("g6", "12xlarge", 4),
    ("g6", "24xlarge", 4),
    ("g6", "48xlarge", 8),
    ("g6e", "12xlarge", 4),
];

/// The command of a training job of SageMaker; `None` if the program starts none, or not all of it is known.
pub(super) fn started(machine: &Machine<'_>) -> Option<String> {
    let (call, _) = machine.calls(&["HuggingFace", "PyTorch"]).find(|(call, _)| {
        let path = machine.path(&machine.heap.objects[*call].callee);
        path.is_some_and(|path| path.starts_with("sagemaker"))
    })?;
    let arguments = &machine.heap.objects[call].arguments;
    let named = |name: &str| machine.shown(arguments.named(name)?);
    let instance = named("instance_type")?;
    let mut parts = instance.trim_start_matches("ml.").split('.');
    let (family, size) = (parts.next()?, parts.next()?);
    let gpus = GPUS
        .iter()
        .find(|(own, of, _)| *own == family && *of == size)
        .map_or(1, |(.., gpus)| *gpus);
    let nodes = named("instance_count").unwrap_or_else(|| "1".to_owned());
    let is_several = machine
        .whole(arguments.named("distribution").unwrap_or(&Value::None), 0)?
        .pointer("/torch_distributed/enabled")
        .is_some_and(|is_on| *is_on == true);
    let mut words = match is_several {
        true => vec![
            "torchrun".to_owned(),
            format!("--nproc_per_node={gpus}"),
            format!("--nnodes={nodes}"),
        ],
        false => vec!["python".to_owned()],
    };
    words.push(file_name(&named("entry_point")?).to_owned());
    let told = machine.whole(arguments.named("hyperparameters")?, 0)?;
    for (key, value) in told.as_object()? {
        words.push(format!("--{key}"));
        words.push(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let devices: Vec<String> = (0..gpus).map(|at| at.to_string()).collect();
    let line = shlex::try_join(words.iter().map(String::as_str)).ok()?;
    Some(format!("CUDA_VISIBLE_DEVICES={} {line}", devices.join(",")))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use crate::tests::launch_named;

    #[test]
    fn a_job_elsewhere_is_its_command() {
        let script = "from sagemaker.huggingface import HuggingFace\nh = {'model_name_or_path': 'a/b', 'block_size': 512, \
            'do_train': True}\ne = HuggingFace(entry_point='run_clm.py', instance_type='ml.g5.12xlarge', \
            instance_count=2, hyperparameters=h, distribution={'torch_distributed': {'enabled': True}})\ne.fit({})\n";
        let launch = launch_named(&[("job.py", script)]);
        assert_eq!((launch.tool, launch.model()), (crate::Tool::RunClm, Some("a/b")));
        assert_eq!(
            (launch.draft.gpus, launch.draft.nodes, launch.draft.seq),
            (Some(4), Some(2), Some(512))
        );
    }
}
