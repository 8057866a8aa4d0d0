//! How many processes a launch starts, and how many GPUs each of them sees.

use crate::deepspeed::zero_stage;
use crate::draft::Draft;
use crate::launcher::Launcher;
use crate::remark::{Note, Remark};
use crate::tool::Tool;

/// Launcher of a tool whose files alone are given.
const fn launcher_of(tool: Tool) -> Launcher {
    match tool {
        Tool::MsSwift | Tool::MsSwift2 => Launcher::One,
        Tool::LlamaFactory => Launcher::EachVisible,
        _ => Launcher::Accelerate,
    }
}

/// Processes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Processes {
    /// Processes on all machines.
    pub world: u64,
    /// False if no line tells how many, so that one is assumed.
    pub is_stated: bool,
    /// GPUs that each process uses.
    pub gpus_of_each: u64,
}

/// Says that the number of GPUs is not told, and what stands in its place.
pub(crate) fn no_gpus(draft: &Draft) -> Remark {
    match &draft.open_gpus {
        Some(given) => Note::OpenGpus.with([("given", given.clone())]),
        None => Note::NoGpus.into(),
    }
}

/// Processes that a draft of a tool starts.
pub(crate) fn processes(draft: &Draft, tool: Tool) -> Processes {
    let launcher = draft.launcher.unwrap_or_else(|| launcher_of(tool));
    let by_launcher = match launcher {
        Launcher::EachVisible | Launcher::Accelerate => draft.visible,
        Launcher::Torchrun => None,
        Launcher::One => draft.visible.map(|_| 1),
    };
    let of_node = draft.gpus.or(by_launcher);
    let processes = of_node.unwrap_or(1);
    // ms-swift gives each process its share of the visible GPUs (`is_mp`); others see them all where they are alone, unless
    // DeepSpeed's launcher starts them.
    let is_alone = processes == 1 && zero_stage(draft).is_none();
    let is_shared = match launcher {
        _ if tool.is_swift() => true,
        Launcher::One => processes == 1,
        Launcher::Accelerate => is_alone,
        Launcher::EachVisible | Launcher::Torchrun => false,
    };
    let gpus_of_each = draft
        .visible
        .filter(|_| is_shared)
        .map_or(1, |visible| visible / processes);
    Processes {
        // More than can be is refused where the setup is checked.
        world: processes.saturating_mul(draft.nodes.unwrap_or(1)),
        is_stated: of_node.is_some(),
        gpus_of_each: gpus_of_each.max(1),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::launch;
    use crate::{Launch, ModelFacts};

    fn of(launch: &Launch) -> (Option<u64>, Vec<String>) {
        let resolved = launch.resolve(ModelFacts::UNKNOWN);
        let of_gpus =
            |left: &&crate::LeftOut| left.what == crate::Aspect::Strategy && left.why.starts_with("one process and");
        let open = resolved
            .not_this_run
            .iter()
            .filter(of_gpus)
            .map(|left| left.why.clone())
            .collect();
        (resolved.number("world"), open)
    }

    #[test]
    fn each_launcher_starts_its_own_number_of_processes() {
        for (command, world) in [
            ("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train --stage sft", Some(2)),
            (
                "CUDA_VISIBLE_DEVICES=0,1 accelerate launch train.py --output_dir x",
                Some(2),
            ),
            (
                "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 1 --use_deepspeed --zero_stage 2 train.py",
                Some(1),
            ),
            (
                "CUDA_VISIBLE_DEVICES=0 accelerate launch --num_processes 1 train.py",
                None,
            ),
            ("CUDA_VISIBLE_DEVICES=0,1,2 deepspeed train.py --output_dir x", Some(3)),
            ("CUDA_VISIBLE_DEVICES=0,1 torchrun train.py --output_dir x", None),
            (
                "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py --output_dir x",
                Some(2),
            ),
            (
                "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft --max_length 9",
                Some(2),
            ),
            ("CUDA_VISIBLE_DEVICES=1 swift sft --max_length 9", None),
            (
                "CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.run --nproc_per_node 2 train.py --output_dir x",
                Some(2),
            ),
            (
                "CUDA_VISIBLE_DEVICES=$GPUS accelerate launch train.py --output_dir x",
                None,
            ),
        ] {
            assert_eq!(of(&launch(&[command])), (world, vec![]), "{command}");
        }
    }

    /// What only the machine knows is asked for, and the run is no one of a single GPU.
    #[test]
    fn a_number_that_no_line_holds_is_asked_for() {
        for command in [
            "torchrun --nproc_per_node=$N train.py --output_dir x",
            "N=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node=${N} train.py --output_dir x --deepspeed zero3.json",
            "accelerate launch --num_processes $((NODES * 8)) train.py --output_dir x",
        ] {
            let resolved = launch(&[command]).resolve(ModelFacts::UNKNOWN);
            let asked: Vec<String> = resolved.missing.iter().map(ToString::to_string).collect();
            let not_simulated: Vec<String> = resolved.not_simulated.iter().map(ToString::to_string).collect();
            assert!(
                !not_simulated.iter().any(|of| of.contains("whole number")),
                "{command}: {not_simulated:?}"
            );
            let is_asked = asked.iter().any(|of| of.contains("--world"));
            assert!(is_asked || command.contains("zero3.json"), "{command}: {asked:?}");
        }
    }

    #[test]
    fn one_process_on_several_gpus_is_no_data_parallelism() {
        for (command, gpus) in [
            ("CUDA_VISIBLE_DEVICES=0,1,2,3 swift sft --max_length 9", "4"),
            ("export CUDA_VISIBLE_DEVICES=0,1\nswift sft --max_length 9", "2"),
            (
                "CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 swift sft --max_length 9",
                "2",
            ),
            ("CUDA_VISIBLE_DEVICES=0,1 python train.py --output_dir x", "2"),
            (
                "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 1 train.py --output_dir x",
                "2",
            ),
            (
                "CUDA_VISIBLE_DEVICES=0,1 python -m axolotl.cli.train --micro_batch_size 2",
                "2",
            ),
        ] {
            let (_, open) = of(&launch(&[command]));
            assert_eq!(open.len(), 1, "{command}: {open:?}");
            assert!(
                open[0].contains("device_map") && open[0].contains(&format!("{gpus} GPUs")),
                "{command}: {open:?}"
            );
        }
    }
}
