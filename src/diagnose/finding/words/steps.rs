//! Phrases for the recommended actions.

use super::{Said, say};
use crate::finding::Step;

/// A recommended action in one sentence.
pub fn step(step: Step) -> Said {
    let key = match step {
        Step::StopOthers => "s_stop_others",
        Step::OtherDevice => "s_other_device",
        Step::SmallerBatch => "s_smaller_batch",
        Step::Checkpoint => "s_checkpoint",
        Step::FusedAttention => "s_fused_attention",
        Step::Shorter => "s_shorter",
        Step::FusedLoss => "s_fused_loss",
        Step::SmallerOptimizer => "s_smaller_optimizer",
        Step::Adapters => "s_adapters",
        Step::ExpandableSegments => "s_expandable_segments",
        Step::EmptyCache => "s_empty_cache",
        Step::RaiseLimit => "s_raise_limit",
        Step::LeaveRoom => "s_leave_room",
        Step::FewerGraphs => "s_fewer_graphs",
        Step::SaveHostMemory => "s_save_host_memory",
        Step::WholeMessage => "s_whole_message",
        Step::Record => "s_record",
        Step::NameSetup => "s_name_setup",
        Step::NameCard => "s_name_card",
        Step::DetachLoss => "s_detach_loss",
        Step::NoLists => "s_no_lists",
        Step::CustomAutograd => "s_custom_autograd",
        Step::RemoveHooks => "s_remove_hooks",
        Step::GroupByLength => "s_group_by_length",
        Step::FeedFaster => "s_feed_faster",
        Step::OverlapCommunication => "s_overlap_communication",
        Step::AsyncCopies => "s_async_copies",
        Step::FillTheDevice => "s_fill_the_device",
        Step::Trace => "s_trace",
        Step::CheckLimits => "s_check_limits",
        Step::SaveNow => "s_save_now",
    };
    say(key, [])
}
