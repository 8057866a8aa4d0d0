//! Actions that a finding recommends.

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::facts::{Fact, Facts};
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer};
use vramscope_plan::Change;

/// An action to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Find the other processes and end them.
    StopOthers,
    /// Use another device.
    OtherDevice,
    /// Halve the micro-batch and accumulate gradients.
    SmallerBatch,
    /// Checkpoint activations.
    Checkpoint,
    /// Use an attention kernel that does not materialise the matrix.
    FusedAttention,
    /// Use shorter sequences or fewer image tokens.
    Shorter,
    /// Compute the loss without materialising all logits.
    FusedLoss,
    /// Use an optimizer with smaller states, or a fused step.
    SmallerOptimizer,
    /// Freeze parts or train adapters.
    Adapters,
    /// Enable expandable segments.
    ExpandableSegments,
    /// Empty the cache.
    EmptyCache,
    /// Raise the limit.
    RaiseLimit,
    /// Leave room for memory outside the cache.
    LeaveRoom,
    /// Keep fewer CUDA graphs.
    FewerGraphs,
    /// Save the host's memory.
    SaveHostMemory,
    /// Paste the whole message.
    WholeMessage,
    /// Record a snapshot.
    Record,
    /// Name the model and setup.
    NameSetup,
    /// Name the card.
    NameCard,
    /// Keep the loss as a number (`loss.item()`), not with its graph.
    DetachLoss,
    /// Keep no tensors in lists.
    NoLists,
    /// Check custom autograd functions.
    CustomAutograd,
    /// Remove hooks.
    RemoveHooks,
    /// Group samples by length, and cap the longest.
    GroupByLength,
    /// Use more workers, pinned memory and prefetching.
    FeedFaster,
    /// Overlap communication, use larger buckets, synchronize less.
    OverlapCommunication,
    /// Use pinned memory and non-blocking copies.
    AsyncCopies,
    /// Use a larger batch or compiled code.
    FillTheDevice,
    /// Record a trace of the whole step.
    Trace,
    /// Check the limits that the container, MIG or the driver sets.
    CheckLimits,
    /// Save a checkpoint before memory runs out.
    SaveNow,
}

impl Action {
    /// The action that a change of the setup carries out, if one does.
    pub const fn of(change: &Change) -> Option<Self> {
        Some(match change {
            Change::Batch(_) => Self::SmallerBatch,
            Change::Seq(_) => Self::Shorter,
            Change::Ckpt(
                Checkpointing::Full | Checkpointing::Language | Checkpointing::Vision | Checkpointing::Trained,
            ) => Self::Checkpoint,
            Change::Attn(Attention::Sdpa | Attention::FlashAttention2) => Self::FusedAttention,
            Change::Loss(Loss::FusedLinear) => Self::FusedLoss,
            Change::Optim(Optimizer::AdamwFused | Optimizer::Adamw8bit | Optimizer::PagedAdamw8bit) => {
                Self::SmallerOptimizer
            }
            Change::Freeze(Freeze::Lora | Freeze::Qlora | Freeze::VISION) => Self::Adapters,
            _ => return None,
        })
    }
}

/// Leaves out actions that the setup has taken already, and those that it has no room for.
pub fn suit(findings: &mut [Finding], facts: &Facts) {
    for finding in findings {
        finding.steps.retain(|step| match step {
            Action::SmallerBatch => !facts.has(Fact::BatchOne),
            Action::Adapters => !facts.has(Fact::Lora),
            Action::Checkpoint => !facts.has(Fact::Checkpointing) || facts.has(Fact::NoCheckpointing),
            Action::FusedAttention => !facts.has(Fact::Sdpa) && !facts.has(Fact::Flash),
            Action::FusedLoss => !facts.has(Fact::Liger),
            Action::ExpandableSegments => !facts.has(Fact::Expandable),
            _ => true,
        });
    }
}
