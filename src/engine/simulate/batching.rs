//! Whether samples of different lengths can be put together for a model.

use super::SimulateError;
use crate::setup::Attention;
use crate::{Model, Setup};

/// Refuses lengths for models without text, and what is not simulated of them.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.lengths.is_empty() {
        return Ok(());
    }
    let refuse = |why: String| Err(SimulateError(why));
    if !model.takes().text {
        return refuse(format!(
            "`lengths` are of texts, and {} takes none; set `batch`",
            model.name
        ));
    }
    if setup.lengths.contains(&0) {
        return refuse("`lengths` holds 0; each sample has at least one position".into());
    }
    let ragged = setup.is_packed() || setup.is_padded();
    if ragged && setup.attn == Attention::FlashAttention2 {
        return refuse(
            "samples of different lengths are simulated for `attn` sdpa and eager, not flash_attention_2".into(),
        );
    }
    if setup.is_packed() && model.takes().parts {
        return refuse(format!(
            "`packing` packed is simulated for models of text alone; {} takes images too, use padded",
            model.name
        ));
    }
    if setup.is_packed() && setup.use_cache.unwrap_or(model.use_cache) {
        return refuse(
            "`packing` is packed, but with `use_cache` transformers does not tell packed samples apart; set `use_cache` to \
             false"
                .into(),
        );
    }
    Ok(())
}
