use serde::{Deserialize, Serialize};

use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer};
use vramscope_plan::Change;

/// Something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Find the other processes and end them.
    StopOthers,
    /// Take another device.
    OtherDevice,
    /// Halve the micro-batch, accumulate.
    SmallerBatch,
    /// Checkpoint activations.
    Checkpoint,
    /// Take an attention that makes no matrix.
    FusedAttention,
    /// Shorter sequences or fewer image tokens.
    Shorter,
    /// Take the loss without all logits.
    FusedLoss,
    /// Smaller optimizer states, or a fused step.
    SmallerOptimizer,
    /// Freeze parts or train adapters.
    Adapters,
    /// Let segments grow.
    ExpandableSegments,
    /// Give the cache back.
    EmptyCache,
    /// Raise the limit.
    RaiseLimit,
    /// Leave room for what lies outside the cache.
    LeaveRoom,
    /// Keep fewer CUDA graphs.
    FewerGraphs,
    /// Save the host's memory.
    SaveHostMemory,
    /// Give the whole message.
    WholeMessage,
    /// Record a snapshot.
    Record,
    /// Name model and setup.
    NameSetup,
    /// Name the card.
    NameCard,
    /// Keep the number of the loss, not its graph.
    DetachLoss,
    /// Keep no tensors in lists.
    NoLists,
    /// Look at custom autograd functions.
    CustomAutograd,
    /// Remove hooks.
    RemoveHooks,
    /// Put samples of one length together, and cap the longest.
    GroupByLength,
    /// More workers, pinned memory, prefetching.
    FeedFaster,
    /// Overlap communication, larger buckets, fewer synchronisations.
    OverlapCommunication,
    /// Pinned memory and copies that do not wait.
    AsyncCopies,
    /// A larger batch or compiled code.
    FillTheDevice,
    /// Look at a trace of the whole step.
    Trace,
    /// See what the container, MIG or the driver allows.
    CheckLimits,
    /// Save before the end comes.
    SaveNow,
}

impl Step {
    /// The step that a change of a setup carries out, if that is one.
    pub const fn of(change: Change) -> Option<Self> {
        Some(match change {
            Change::Batch(_) => Self::SmallerBatch,
            Change::Seq(_) => Self::Shorter,
            Change::Ckpt(Checkpointing::Full | Checkpointing::Language | Checkpointing::Vision) => Self::Checkpoint,
            Change::Attn(Attention::Sdpa | Attention::FlashAttention2) => Self::FusedAttention,
            Change::Loss(Loss::FusedLinear) => Self::FusedLoss,
            Change::Optim(Optimizer::AdamwFused | Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit) => {
                Self::SmallerOptimizer
            }
            Change::Freeze(Freeze::Lora | Freeze::Qlora | Freeze::Vision) => Self::Adapters,
            _ => return None,
        })
    }
}
