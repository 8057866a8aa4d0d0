//! Causes that a diagnosis can name, each with the numbers that support it.

use serde::{Deserialize, Serialize};

use super::words::Sentence;
use crate::kind;
use crate::oom::{Asker, Site};
use crate::profile::HotSpot;
use crate::snapshot::{Category, Group};
use vramscope_engine::report::LiveTensor;
use vramscope_engine::units::Bytes;

/// A conclusion and the numbers that support it. Frontends put it into words; [`words`](super::words) has the English
/// ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// What a kind of evidence in `kinds/` speaks for.
    Known {
        /// Name of the kind.
        kind: String,
        /// The hypothesis in one sentence.
        title: Sentence,
        /// What speaks for it.
        why: Vec<Sentence>,
    },
    /// The process needs more than the card has.
    OutOfCapacity {
        /// Bytes requested.
        request: Option<Bytes>,
        /// Memory of the card, in bytes.
        total: Option<Bytes>,
        /// Free bytes on the card.
        free: Option<Bytes>,
        /// Bytes allocated by tensors.
        allocated: Option<Bytes>,
        /// Bytes reserved by PyTorch.
        reserved: Option<Bytes>,
        /// Devices on which the same happened.
        devices: Vec<u32>,
    },
    /// Other processes hold memory of the card.
    OtherProcesses {
        /// Memory of the card, in bytes.
        total: Option<Bytes>,
        /// Bytes held by all other processes.
        held: Bytes,
        /// Bytes held by this process.
        own: Option<Bytes>,
        /// The other processes, if the message lists them.
        processes: Vec<Holder>,
    },
    /// Free memory is split into pieces that are too small.
    Fragmentation {
        /// Bytes reserved by PyTorch.
        reserved: Bytes,
        /// Reserved bytes that no tensor holds.
        unallocated: Bytes,
        /// `1 − allocated ÷ reserved`, from 0 to 1.
        share: f64,
        /// Bytes requested.
        request: Option<Bytes>,
        /// Free bytes on the card outside the reserved memory.
        free: Option<Bytes>,
    },
    /// A limit on the process's memory was reached.
    Limit {
        /// The limit, in bytes.
        allowed: Bytes,
        /// Bytes reserved by PyTorch.
        reserved: Option<Bytes>,
        /// Bytes requested.
        request: Option<Bytes>,
        /// True if the limit is that of Apple's MPS backend.
        is_mps: bool,
    },
    /// The request failed although it was smaller than the free memory.
    RefusedThoughFree {
        /// Bytes requested.
        request: Bytes,
        /// Free bytes on the card.
        free: Bytes,
    },
    /// A library or the driver failed to allocate memory outside PyTorch's cache.
    OutsideTheCache {
        /// The component that asked for memory.
        asker: Asker,
    },
    /// The host ran out of memory.
    HostMemory {
        /// Bytes requested.
        request: Option<Bytes>,
    },
    /// The error contains no numbers.
    NoNumbers,
    /// CUDA graphs reserve memory in private pools.
    PrivatePools {
        /// Bytes in private pools.
        bytes: Bytes,
        /// Bytes allocated by tensors, in all pools.
        allocated: Option<Bytes>,
    },
    /// The part of the step in which the request failed.
    Site(Site),
    /// The request has the size of an attention matrix.
    AttentionMatrix {
        /// Bytes requested.
        request: Bytes,
        /// Shapes of this size, the most common first.
        shapes: Vec<AttentionShape>,
    },
    /// The request has the size of a logits tensor.
    Logits {
        /// Bytes requested.
        request: Bytes,
        /// Shapes of this size, the most common first.
        shapes: Vec<LogitsShape>,
    },
    /// The request has the size of one or more tensors of the simulated step.
    Tensors {
        /// Bytes requested.
        request: Bytes,
        /// The tensors of this size, each name once.
        tensors: Vec<LiveTensor>,
    },
    /// The allocator had to free its cache, or failed, earlier in the run.
    Retries {
        /// Number of failed requests.
        ooms: u64,
        /// Number of times that the whole cache was freed.
        retries: u64,
    },
    /// A device's memory is nearly full.
    NearlyFull {
        /// Index of the device.
        device: u32,
        /// Highest memory in use, in bytes.
        used: Bytes,
        /// Memory of the device, in bytes.
        total: Bytes,
    },
    /// Utilization of the device.
    Utilization {
        /// Index of the device.
        device: u32,
        /// Mean utilization, from 0 to 1.
        mean: f64,
        /// Number of readings.
        readings: u64,
    },
    /// Memory grows from step to step.
    Leak(Growth),
    /// Memory does not grow.
    NoLeak {
        /// Growth from the first to the last reading considered, as a fraction of the first.
        growth: f64,
        /// Number of readings.
        readings: u64,
    },
    /// A single step needs far more memory than the others.
    LongSample {
        /// Number of the step.
        step: u64,
        /// Memory of the step, in bytes.
        bytes: Bytes,
        /// Median of all steps, in bytes.
        usual: Bytes,
        /// Length of the step's sample, if the log reports it.
        length: Option<u64>,
    },
    /// The device waits for the next batch.
    DataLoading {
        /// Fraction of the host's time, from 0 to 1.
        share: f64,
    },
    /// The device waits for other devices.
    Communication {
        /// Fraction of the device's time, from 0 to 1.
        share: f64,
    },
    /// Copies between host and device take long.
    Copies {
        /// Fraction of the device's time, from 0 to 1.
        share: f64,
    },
    /// The device is idle for part of the time.
    Idle {
        /// Fraction of the time in which the device was busy, from 0 to 1.
        busy: f64,
    },
    /// Attention takes most of the device's time.
    AttentionTime {
        /// Fraction of the device's time, from 0 to 1.
        share: f64,
    },
    /// Operations that allocate a lot of memory.
    HotSpots {
        /// The operations, the largest first.
        spots: Vec<HotSpot>,
    },
    /// Breakdown of the memory at the peak.
    Peak {
        /// Live bytes at the peak.
        peak: Bytes,
        /// Live bytes by category, the largest first.
        by_category: Vec<(Category, Bytes)>,
        /// The largest groups of allocations, by the stack that made them.
        largest: Vec<Group>,
    },
    /// Allocations that were never freed.
    NeverFreed {
        /// Bytes of all of them.
        bytes: Bytes,
        /// Groups of these allocations, the largest first.
        groups: Vec<Group>,
    },
    /// Effect that expandable segments would have had.
    ExpandableSegments {
        /// Peak reserved bytes without expandable segments.
        reserved: Bytes,
        /// Peak reserved bytes with expandable segments.
        expandable: Bytes,
        /// True if the failed request would have been served; `None` if no request failed.
        serves: Option<bool>,
    },
    /// The recording needs more memory than the simulated step of the same setup.
    Unforeseen {
        /// Peak live bytes of the recording.
        recorded: Bytes,
        /// Peak live bytes of the simulated run.
        simulated: Bytes,
    },
}

/// A process that holds memory on the card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process ID.
    pub pid: u64,
    /// Name of the program, if known.
    pub name: Option<String>,
    /// Bytes that the process holds.
    pub bytes: Bytes,
}

/// Shape of an attention matrix: `batch × heads × length² × width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionShape {
    /// Number of samples.
    pub batch: u64,
    /// Number of heads.
    pub heads: u64,
    /// Number of positions.
    pub length: u64,
    /// Bytes of an element.
    pub width: u64,
}

/// Shape of a logits tensor: `tokens × vocab × width` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogitsShape {
    /// Number of positions in all samples.
    pub tokens: u64,
    /// Number of entries in the vocabulary.
    pub vocab: u64,
    /// Bytes of an element.
    pub width: u64,
}

/// Growth of memory over steps, with a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Source of the readings: a log's key, or another counter.
    pub what: String,
    /// First reading considered, in bytes.
    pub first: Bytes,
    /// Last reading considered, in bytes.
    pub last: Bytes,
    /// Number of readings considered, at most ten.
    pub readings: u64,
    /// Number of steps from the first to the last reading considered.
    pub steps: u64,
    /// Mean growth in bytes per step, from the first to the last reading considered.
    pub per_step: f64,
    /// Differences in bytes between consecutive readings, for the whole log.
    pub rises: Vec<i64>,
    /// True if the growth accelerates.
    pub is_accelerating: bool,
    /// Bytes that the regression predicts for ten readings after the last.
    pub predicted: Bytes,
    /// Memory of the card in bytes, if known.
    pub total: Option<Bytes>,
    /// `min(1, (predicted ÷ total − 0.85) ÷ 0.15)`.
    pub risk: Option<f64>,
    /// The step at which the regression reaches the whole card.
    pub full_at: Option<u64>,
}

impl Cause {
    /// Stable identifier, such as `other-processes`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Known { kind, .. } => kind::named(kind).map_or("", |(name, _)| name),
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

    /// A part and its whole to draw as a bar, if this cause has them; shares of time are given in millionths.
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

    /// Identifier of the course row that explains this cause.
    pub fn row(&self) -> &'static str {
        match self {
            Self::Known { kind, .. } => kind::named(kind).map_or("", |(_, kind)| kind.row.as_str()),
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
