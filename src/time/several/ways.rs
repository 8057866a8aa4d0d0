//! Compares parallel strategies for the same number of GPUs.

use serde::Serialize;

use super::super::communication::{Collective, pipeline_bubble};
use super::super::cost::Costs;
use super::super::network::Network;
use super::super::step::step;
use super::super::timeline::{Lines, Phase, once};
use super::compressed;
use super::ddp::Compression;
use vramscope_engine::Setup;
use vramscope_engine::dtype::DType;
use vramscope_engine::order::sort_by;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::simulate::{ROOT, Recording, Units, can_share};
use vramscope_engine::tape::work::{Class, Launch, WorkItem};

/// One parallel strategy and its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Way {
    /// `ddp`, `ddp_fp16` and `ddp_powersgd4` (gradients in 2 bytes, and as factors of rank 4), `zero1`,
    /// `fsdp_no_reshard` (ZeRO-2), `fsdp` (ZeRO-3), `tensor` or `pipeline`; of a run of DeepSpeed or FSDP1 its own strategy's.
    pub name: &'static str,
    /// Milliseconds of a step over all GPUs.
    pub step_ms: f64,
    /// Samples per second over all GPUs.
    pub samples_per_s: f64,
    /// Bytes that each GPU sends in a step.
    pub bytes_sent: u64,
    /// Milliseconds of communication that the step waits for.
    pub exposed_ms: f64,
    /// Share of the step in which a GPU waits for other pipeline stages.
    pub bubble: f64,
}

/// All strategies that this setup could use, fastest first.
///
/// Data parallel strategies are simulated. If the setup itself uses tensor or pipeline parallelism, DeepSpeed, FSDP1, or FSDP2
/// under a trainer, that strategy alone is simulated. Otherwise tensor and pipeline parallelism follow the formulas of their papers over the simulated
/// kernels, with equal blocks and no overlap:
///
/// - tensor: each kernel of a block does its share of the work, including sequence parallelism, and each block gathers
///   and scatters its activations twice forward and twice backward (arXiv 1909.08053, 2205.05198); all GPUs work on one
///   batch;
/// - pipeline: each GPU holds its share of the blocks and works on one micro-batch after the other, `accum` in total
///   (`GPipe`, arXiv 1811.06965); activations pass from stage to stage, and their gradients back.
pub fn ways(
    recording: &Recording,
    setup: &Setup,
    parallel: &Parallel,
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> Vec<Way> {
    let simulated = |name, parallel: &Parallel, compression| {
        let parallel_time = compressed(recording, setup, (parallel, compression), (costs, network));
        let seconds = parallel_time.step_seconds(setup);
        Way {
            name,
            step_ms: seconds * 1e3,
            samples_per_s: samples(setup, parallel.replicas()) / seconds,
            bytes_sent: parallel_time.traffic.bytes as u64,
            exposed_ms: parallel_time.exposed * 1e3,
            bubble: parallel_time.waiting / (parallel_time.waiting + parallel_time.last.without_update()),
        }
    };
    // The recording covers one GPU's part of the model, or has what the strategy does among its work, so other strategies cannot
    // be derived from it.
    if parallel.is_in_parts() || parallel.is_recorded_whole(setup) {
        let name = match parallel.strategy {
            strategy if strategy.is_pipeline() => "pipeline",
            strategy => strategy.name(),
        };
        return vec![simulated(name, parallel, Compression::None)];
    }
    let mut out = Vec::new();
    for (name, strategy, compression) in [
        ("ddp", Strategy::DdpView, Compression::None),
        ("ddp_fp16", Strategy::DdpView, Compression::Half),
        ("ddp_powersgd4", Strategy::DdpView, Compression::PowerSgd(4)),
        ("zero1", Strategy::Zero1, Compression::None),
        ("fsdp_no_reshard", Strategy::FsdpNoReshard, Compression::None),
        ("fsdp", Strategy::Fsdp, Compression::None),
    ] {
        let parallel = Parallel { strategy, ..*parallel };
        // It is recorded with what it sends.
        let communicates = setup.optim.communicates() && strategy.shards_parameters();
        if communicates || !can_share(setup, &parallel) {
            continue;
        }
        out.push(simulated(name, &parallel, compression));
    }
    // Hidden states between blocks, which autocast leaves in fp32.
    let width = if parallel.mp || setup.precision.weights() == DType::Bf16 {
        2
    } else {
        4
    };
    let blocks = Blocks::of(recording, width);
    if blocks.count > 0 {
        out.push(tensor(recording, setup, (&blocks, parallel.world), (costs, network)));
        out.push(pipeline(recording, setup, (&blocks, parallel.world), (costs, network)));
    }
    sort_by(&mut out, |a, b| b.samples_per_s.total_cmp(&a.samples_per_s));
    out
}

fn samples(setup: &Setup, batches: u64) -> f64 {
    (setup.batch * setup.accum.max(1) * batches) as f64
}

/// Number of blocks in a model, and the bytes passed between them.
struct Blocks {
    modules: Units,
    count: u64,
    /// Bytes of all blocks' inputs.
    activations: u64,
}

impl Blocks {
    /// Finds the input of each block as the input of its first norm.
    fn of(recording: &Recording, width: u64) -> Self {
        let modules = Units::of(&recording.log);
        let mut inputs = vec![0_u64; modules.count];
        for item in recording.work.forward() {
            if let WorkItem::Launch(launch) = item {
                let input = &mut inputs[modules.unit(launch.scope)];
                if *input == 0 && matches!(launch.class, Class::LayerNorm | Class::ReduceRows) {
                    *input = launch.extents[0] * launch.extents[1] * width;
                }
            }
        }
        let blocks = inputs.iter().skip(ROOT + 1).filter(|bytes| **bytes > 0);
        Self {
            count: blocks.clone().count() as u64,
            activations: blocks.sum(),
            modules,
        }
    }
}

fn tensor(
    recording: &Recording,
    setup: &Setup,
    (blocks, world): (&Blocks, u64),
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> Way {
    let work = &recording.work;
    let mut lines = Lines::default();
    let mut phase = |phase, items: &[WorkItem]| {
        let parts: Vec<WorkItem> = items
            .iter()
            .map(|item| {
                item.map(
                    &|l| match phase == Phase::Optimizer || blocks.modules.unit(l.scope) != ROOT {
                        true => share(l, world),
                        false => *l,
                    },
                )
            })
            .collect();
        lines.phase(phase, once(&parts), costs, |_, _, _| {}).total
    };
    let passes = phase(Phase::Forward, work.forward()) + phase(Phase::Backward, work.backward());
    let update = phase(Phase::Optimizer, work.optimizer());
    // Each block communicates twice forward and twice backward, each time an all-gather and a reduce-scatter.
    let (mut exposed, mut bytes) = (0.0, 0.0);
    let block = (blocks.activations / blocks.count.max(1)) as f64;
    for kind in [Collective::AllGather, Collective::ReduceScatter] {
        exposed += 4.0 * blocks.count as f64 * network.seconds(kind, block, world);
        bytes += 4.0 * blocks.count as f64 * kind.sent(block, world);
    }
    let micro_batches = setup.accum.max(1) as f64;
    let seconds = micro_batches * (passes + exposed) + update;
    Way {
        name: "tensor",
        step_ms: seconds * 1e3,
        samples_per_s: samples(setup, 1) / seconds,
        bytes_sent: (micro_batches * bytes) as u64,
        exposed_ms: micro_batches * exposed * 1e3,
        bubble: 0.0,
    }
}

/// A kernel on its share of the work: of the heads, of a product's outputs or inputs, or of the elements.
fn share(launch: &Launch, world: u64) -> Launch {
    let part = |n: u64| n.div_ceil(world);
    let [a, b, c, d] = launch.extents;
    let extents = match launch.class {
        Class::Attention(_) => [part(a), b, c, d],
        // A linear layer is split along the longer side of its weight, products of attention along their heads.
        Class::Matmul(_) if d > 1 => [a, b, c, part(d)],
        Class::Matmul(_) if b >= c => [a, part(b), c, d],
        Class::Matmul(_) => [a, b, part(c), d],
        Class::Foreach | Class::FusedAdamw | Class::ForeachNorm => [a, part(b), c, d],
        _ => [part(a), b, c, d],
    };
    Launch {
        extents,
        read: part(launch.read),
        written: part(launch.written),
        ..*launch
    }
}

fn pipeline(
    recording: &Recording,
    setup: &Setup,
    (blocks, world): (&Blocks, u64),
    (costs, network): (&Costs<'_>, &Network<'_>),
) -> Way {
    let alone = step(recording, costs);
    let (micro_batches, stages) = (setup.accum.max(1), world.min(blocks.count));
    let block = (blocks.activations / blocks.count.max(1)) as f64;
    // Each turn passes activations on, and gradients back.
    let hand = 2.0 * network.seconds(Collective::SendReceive, block, stages);
    let turn = alone.without_update() / stages as f64 + hand;
    let turns = (micro_batches + stages - 1) as f64;
    let update = alone.phase(Phase::Optimizer).total / stages as f64;
    let seconds = turns * turn + update;
    Way {
        name: "pipeline",
        step_ms: seconds * 1e3,
        samples_per_s: samples(setup, 1) / seconds,
        bytes_sent: (2.0 * micro_batches as f64 * block) as u64,
        exposed_ms: turns * hand * 1e3,
        bubble: pipeline_bubble(stages, micro_batches),
    }
}
