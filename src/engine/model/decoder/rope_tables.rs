//! Checks of rotary tables that are kept for each kind of block.

use crate::model::ModelError;
use crate::model::config::section::Section;

/// Keys under which a configuration keeps rotary tables.
const KEYS: [&str; 2] = ["rope_scaling", "rope_parameters"];

/// Kinds of blocks.
pub(crate) const KINDS: [&str; 2] = ["full_attention", "sliding_attention"];

/// Checks that no table's frequencies depend on the length, and that all rotate whole heads.
pub(crate) fn are_static(s: &Section) -> Result<(), ModelError> {
    for key in KEYS {
        let Some(table) = s.optional_nested(key, "rotary embedding")? else {
            continue;
        };
        is_static(&table)?;
        for kind in KINDS {
            if let Some(of_kind) = table.optional_nested(kind, "rotary embedding")? {
                is_static(&of_kind)?;
            }
        }
    }
    Ok(())
}

fn is_static(table: &Section) -> Result<(), ModelError> {
    let allowed = "a kind other than dynamic, which is not simulated for each kind of layer";
    for key in ["rope_type", "type"] {
        table.only(key, allowed, |kind| kind != "dynamic")?;
    }
    let whole = "1: a part of each head is not simulated for each kind of layer";
    table.only("partial_rotary_factor", whole, |share| share.as_f64() == Some(1.0))
}
