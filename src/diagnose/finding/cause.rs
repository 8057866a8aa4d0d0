use serde::{Deserialize, Serialize};

use crate::oom::{Asker, Site};
use crate::profile::HotSpot;
use crate::snapshot::{Category, Group};
use vramscope_engine::report::LiveTensor;
use vramscope_engine::units::Bytes;

/// A conclusion and the numbers that show it. Faces put it into words; [`words`](super::words) has the English
/// ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The process needs more than the card has.
    OutOfCapacity {
        /// What was asked for.
        request: Option<Bytes>,
        /// All memory of the card.
        total: Option<Bytes>,
        /// What it had free.
        free: Option<Bytes>,
        /// What tensors held.
        allocated: Option<Bytes>,
        /// What PyTorch kept.
        reserved: Option<Bytes>,
    },
    /// Other processes hold memory of the card.
    OtherProcesses {
        /// All memory of the card.
        total: Option<Bytes>,
        /// What they hold together.
        held: Bytes,
        /// What this process holds.
        own: Option<Bytes>,
        /// Each of them, where they are known.
        processes: Vec<Holder>,
    },
    /// Free memory lies in pieces that are too small.
    Fragmentation {
        /// What PyTorch keeps.
        reserved: Bytes,
        /// What no tensor holds of it.
        unallocated: Bytes,
        /// `1 − allocated ÷ reserved`, from 0 to 1.
        share: f64,
        /// What was asked for.
        request: Option<Bytes>,
        /// What the card had free beside.
        free: Option<Bytes>,
    },
    /// The process may not have more than a limit.
    Limit {
        /// The limit.
        allowed: Bytes,
        /// What PyTorch kept.
        reserved: Option<Bytes>,
        /// What was asked for.
        request: Option<Bytes>,
        /// It is Apple's.
        is_mps: bool,
    },
    /// The request was smaller than what was free, and failed.
    RefusedThoughFree {
        /// What was asked for.
        request: Bytes,
        /// What the card had free.
        free: Bytes,
    },
    /// A library or the driver found no memory outside PyTorch's cache.
    OutsideTheCache {
        /// Who asked.
        asker: Asker,
    },
    /// The host's memory ran out.
    HostMemory {
        /// What was asked for.
        request: Option<Bytes>,
    },
    /// An error without numbers.
    NoNumbers,
    /// CUDA graphs keep memory for themselves.
    PrivatePools {
        /// What they keep.
        bytes: Bytes,
        /// What tensors hold in all.
        allocated: Option<Bytes>,
    },
    /// Where in the step it happened.
    Site(Site),
    /// The request has the size of an attention matrix.
    AttentionMatrix {
        /// What was asked for.
        request: Bytes,
        /// Shapes that give it, the most usual first.
        shapes: Vec<AttentionShape>,
    },
    /// The request has the size of logits.
    Logits {
        /// What was asked for.
        request: Bytes,
        /// Shapes that give it, the most usual first.
        shapes: Vec<LogitsShape>,
    },
    /// The request has the size of tensors of the simulated step.
    Tensors {
        /// What was asked for.
        request: Bytes,
        /// The tensors, each name once.
        tensors: Vec<LiveTensor>,
    },
    /// The allocator had to give back its cache, or failed, before.
    Retries {
        /// Failed requests.
        ooms: u64,
        /// Times that the whole cache was given back.
        retries: u64,
    },
    /// A device is nearly full.
    NearlyFull {
        /// Its number.
        device: u32,
        /// The most that was in use.
        used: Bytes,
        /// All its memory.
        total: Bytes,
    },
    /// How well the device is used.
    Utilization {
        /// Its number.
        device: u32,
        /// Mean, from 0 to 1.
        mean: f64,
        /// How many readings.
        readings: u64,
    },
    /// Memory grows from step to step.
    Leak(Growth),
    /// Memory does not grow.
    NoLeak {
        /// From the first to the last of the readings looked at, as a part of the first.
        growth: f64,
        /// How many readings.
        readings: u64,
    },
    /// Single steps need far more than the others.
    LongSample {
        /// The step.
        step: u64,
        /// What it needed.
        bytes: Bytes,
        /// The median.
        usual: Bytes,
        /// Length of its sample, where the log says it.
        length: Option<u64>,
    },
    /// The device waits for the next batch.
    DataLoading {
        /// Part of the host's time.
        share: f64,
    },
    /// The device waits for other devices.
    Communication {
        /// Part of the device's time.
        share: f64,
    },
    /// Copies between host and device take long.
    Copies {
        /// Part of the device's time.
        share: f64,
    },
    /// The device runs nothing for a part of the time.
    Idle {
        /// Part of the time in which it ran something.
        busy: f64,
    },
    /// Attention takes most of the device's time.
    AttentionTime {
        /// Part of the device's time.
        share: f64,
    },
    /// Operations that allocate much.
    HotSpots {
        /// The largest first.
        spots: Vec<HotSpot>,
    },
    /// What held the memory at the highest instant.
    Peak {
        /// All live bytes.
        peak: Bytes,
        /// By category, the largest first.
        by_category: Vec<(Category, Bytes)>,
        /// The largest, by where they were made.
        largest: Vec<Group>,
    },
    /// What was made and never freed.
    NeverFreed {
        /// All bytes of these.
        bytes: Bytes,
        /// The largest first.
        groups: Vec<Group>,
    },
    /// What expandable segments would have done.
    ExpandableSegments {
        /// Highest reserved bytes as it was.
        reserved: Bytes,
        /// With expandable segments.
        expandable: Bytes,
        /// Whether the request that failed would have been served.
        serves: Option<bool>,
    },
    /// The recording needs more than the simulated step of the same setup.
    Unforeseen {
        /// Highest live bytes of the recording.
        recorded: Bytes,
        /// Of the simulated run.
        simulated: Bytes,
    },
}

/// A process that holds memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its number.
    pub pid: u64,
    /// Its program, where it is known.
    pub name: Option<String>,
    /// What it holds.
    pub bytes: Bytes,
}

/// `batch × heads × length² × width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionShape {
    /// Samples.
    pub batch: u64,
    /// Heads.
    pub heads: u64,
    /// Positions.
    pub length: u64,
    /// Bytes of an element.
    pub width: u64,
}

/// `tokens × vocabulary × width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogitsShape {
    /// Positions of all samples together.
    pub tokens: u64,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Bytes of an element.
    pub width: u64,
}

/// Memory that grows, and where it will end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Where it was read: the key of a log, or what else is counted.
    pub what: String,
    /// First and last of the readings looked at.
    pub first: Bytes,
    /// The last.
    pub last: Bytes,
    /// How many readings were looked at, at most ten.
    pub readings: u64,
    /// Steps from the first to the last of them.
    pub steps: u64,
    /// Bytes a step, from the first to the last.
    pub per_step: f64,
    /// Bytes from each reading of the log to the next, all of them.
    pub rises: Vec<i64>,
    /// Whether it grows faster and faster.
    pub is_accelerating: bool,
    /// What the regression expects ten readings later.
    pub predicted: Bytes,
    /// All memory of the card, where it is known.
    pub total: Option<Bytes>,
    /// `min(1, (predicted ÷ total − 0.85) ÷ 0.15)`.
    pub risk: Option<f64>,
    /// The step at which the regression reaches the whole card.
    pub full_at: Option<u64>,
}

impl Cause {
    /// The stable name, such as `other-processes`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OutOfCapacity { .. } => "out-of-capacity",
            Self::OtherProcesses { .. } => "other-processes",
            Self::Fragmentation { .. } => "fragmentation",
            Self::Limit { .. } => "limit",
            Self::RefusedThoughFree { .. } => "refused-though-free",
            Self::OutsideTheCache { .. } => "outside-the-cache",
            Self::HostMemory { .. } => "host-memory",
            Self::NoNumbers => "no-numbers",
            Self::PrivatePools { .. } => "private-pools",
            Self::Site(_) => "site",
            Self::AttentionMatrix { .. } => "attention-matrix",
            Self::Logits { .. } => "logits",
            Self::Tensors { .. } => "tensors",
            Self::Retries { .. } => "retries",
            Self::NearlyFull { .. } => "nearly-full",
            Self::Utilization { .. } => "utilization",
            Self::Leak(_) => "leak",
            Self::NoLeak { .. } => "no-leak",
            Self::LongSample { .. } => "long-sample",
            Self::DataLoading { .. } => "data-loading",
            Self::Communication { .. } => "communication",
            Self::Copies { .. } => "copies",
            Self::Idle { .. } => "idle",
            Self::AttentionTime { .. } => "attention-time",
            Self::HotSpots { .. } => "hot-spots",
            Self::Peak { .. } => "peak",
            Self::NeverFreed { .. } => "never-freed",
            Self::ExpandableSegments { .. } => "expandable-segments",
            Self::Unforeseen { .. } => "unforeseen",
        }
    }

    /// A part and its whole to draw as a bar, of what has some; shares of time in millionths.
    pub fn gauge(&self) -> Option<(Bytes, Bytes)> {
        let of_share = |share: f64| (Bytes::new((share.clamp(0.0, 1.0) * 1e6) as u64), Bytes::new(1_000_000));
        Some(match self {
            Self::OutOfCapacity { allocated, total, .. } => ((*allocated)?, (*total)?),
            Self::OtherProcesses { held, total, .. } => (*held, (*total)?),
            Self::Fragmentation {
                unallocated, reserved, ..
            } => (*unallocated, *reserved),
            Self::NearlyFull { used, total, .. } => (*used, *total),
            Self::Utilization { mean, .. } => of_share(*mean),
            Self::Idle { busy } => of_share(*busy),
            Self::DataLoading { share }
            | Self::Communication { share }
            | Self::Copies { share }
            | Self::AttentionTime { share } => of_share(*share),
            Self::Leak(growth) => (growth.last, growth.total?),
            Self::ExpandableSegments {
                reserved, expandable, ..
            } => (*expandable, *reserved),
            _ => return None,
        })
    }

    /// The course's row that explains it.
    pub const fn row(&self) -> &'static str {
        match self {
            Self::OutOfCapacity { .. } | Self::RefusedThoughFree { .. } => "9.2",
            Self::OtherProcesses { .. } | Self::OutsideTheCache { .. } => "L.oom",
            Self::Fragmentation { .. } | Self::Retries { .. } | Self::ExpandableSegments { .. } => "9.stats",
            Self::Limit { .. } | Self::NoNumbers => "9.diagnose",
            Self::HostMemory { .. } => "V.steps",
            Self::PrivatePools { .. } => "9.gotchas",
            Self::Site(Site::Optimizer | Site::OptimizerStates) => "9.opt",
            Self::Site(Site::Backward) => "9.grads",
            Self::Site(Site::Attention) | Self::AttentionMatrix { .. } => "9.attn",
            Self::Site(Site::Load) => "9.params",
            Self::Site(Site::Vision) => "9.vision",
            Self::Site(Site::Forward | Site::Loss) | Self::Logits { .. } | Self::Tensors { .. } => "9.act",
            Self::NearlyFull { .. } => "9.smi",
            Self::Utilization { .. } | Self::Idle { .. } => "11.bands",
            Self::Leak(_) | Self::NoLeak { .. } | Self::NeverFreed { .. } => "9.leak",
            Self::LongSample { .. } => "9.multires",
            Self::DataLoading { .. } => "11.data",
            Self::Communication { .. } => "11.comm",
            Self::Copies { .. } => "11.tree",
            Self::AttentionTime { .. } => "11.attn",
            Self::HotSpots { .. } => "9.profiler",
            Self::Peak { .. } => "9.monitor",
            Self::Unforeseen { .. } => "L.tracker",
        }
    }
}
