//! Phrases for the recommended actions.

use super::{Sentence, sentence};
use crate::finding::Action;

/// A recommended action in one sentence.
pub fn step(step: Action) -> Sentence {
    let key = match step {
        Action::StopOthers => "s_stop_others",
        Action::OtherDevice => "s_other_device",
        Action::SmallerBatch => "s_smaller_batch",
        Action::Checkpoint => "s_checkpoint",
        Action::FusedAttention => "s_fused_attention",
        Action::Shorter => "s_shorter",
        Action::FusedLoss => "s_fused_loss",
        Action::SmallerOptimizer => "s_smaller_optimizer",
        Action::Adapters => "s_adapters",
        Action::ExpandableSegments => "s_expandable_segments",
        Action::EmptyCache => "s_empty_cache",
        Action::RaiseLimit => "s_raise_limit",
        Action::LeaveRoom => "s_leave_room",
        Action::FewerGraphs => "s_fewer_graphs",
        Action::SaveHostMemory => "s_save_host_memory",
        Action::WholeMessage => "s_whole_message",
        Action::Record => "s_record",
        Action::NameSetup => "s_name_setup",
        Action::NameCard => "s_name_card",
        Action::DetachLoss => "s_detach_loss",
        Action::NoLists => "s_no_lists",
        Action::CustomAutograd => "s_custom_autograd",
        Action::RemoveHooks => "s_remove_hooks",
        Action::GroupByLength => "s_group_by_length",
        Action::FeedFaster => "s_feed_faster",
        Action::OverlapCommunication => "s_overlap_communication",
        Action::AsyncCopies => "s_async_copies",
        Action::FillTheDevice => "s_fill_the_device",
        Action::Trace => "s_trace",
        Action::CheckLimits => "s_check_limits",
        Action::SaveNow => "s_save_now",
    };
    sentence(key, [])
}
