//! Checks of rotary tables that are kept for each kind of block.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Rope, RopeKind};

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

/// Checks that the cosines are as wide as what attention rotates whole.
pub(crate) fn rotates_whole_heads(s: &Section) -> Result<(), ModelError> {
    let mut sections = vec![*s];
    for key in KEYS {
        sections.extend(s.optional_nested(key, "rotary embedding")?);
    }
    sections.iter().try_for_each(|section| {
        section.only("partial_rotary_factor", "1: its attention rotates whole heads", |v| {
            v.as_f64() == Some(1.0)
        })
    })
}

/// Checks that a scaled table has its factor, which attention reads too.
pub(super) fn has_factor(s: &Section) -> Result<(), ModelError> {
    for key in KEYS {
        let Some(table) = s.optional_nested(key, "rotary embedding")? else {
            continue;
        };
        let kind = table.value("rope_type").or(table.value("type"));
        if kind.is_some_and(|kind| kind != "default") {
            table.required("factor", "a number, which its attention reads")?;
        }
    }
    Ok(())
}

/// Checks that scaled tables rotate `rotated` of a head's `width` elements, and that queries can be scaled by their position
/// (`Mistral4Config`, `get_llama_4_attn_scale`).
pub(super) fn rotates_part(s: &Section, rotated: u64, width: u64) -> Result<(), ModelError> {
    for key in KEYS {
        let Some(table) = s.optional_nested(key, "rotary embedding")? else {
            continue;
        };
        let allowed = "a kind other than default, whose table is as wide as a whole head";
        for kind in ["rope_type", "type"] {
            table.only(kind, allowed, |kind| kind != "default")?;
        }
        for number in ["factor", "llama_4_scaling_beta", "original_max_position_embeddings"] {
            table.required(number, "a number, which its attention reads")?;
        }
        let allowed = format!("qk_rope_head_dim ÷ (qk_nope_head_dim + qk_rope_head_dim), {rotated} ÷ {width}");
        table.only("partial_rotary_factor", &allowed, |share| {
            share
                .as_f64()
                .is_some_and(|share| (share * width as f64) as u64 == rotated)
        })?;
    }
    Ok(())
}

/// Shares of each head that are rotated in a family whose kinds of layers have tables of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KindShares {
    /// Those of layers that see all and of sliding layers, in a file without tables.
    pub without_tables: [f64; 2],
    /// That of a table that does not state it.
    pub of_table: f64,
}

impl Eq for KindShares {}

/// Reads the rotary embeddings of layers that see all, and of sliding ones.
pub(super) fn read(s: &Section, theta: f64, shares: KindShares) -> Result<(Rope, Option<Rope>), ModelError> {
    let tables = s.optional_nested("rope_parameters", "rotary embedding")?;
    let of_kind = |which: usize| match &tables {
        Some(tables) => match tables.optional_nested(KINDS[which], "rotary embedding")? {
            Some(table) => Rope::read(&table, theta, shares.of_table),
            None => Rope::read(tables, theta, shares.of_table),
        },
        // The class reads nothing else.
        None => Ok(Rope {
            kind: RopeKind::Default,
            theta,
            partial_rotary_factor: shares.without_tables[which],
            mrope_section: None,
            mrope_interleaved: false,
        }),
    };
    Ok((of_kind(0)?, Some(of_kind(1)?)))
}

/// Checks that each kind of layer has a table of its own, whose frequencies do not depend on the length and which rotates some of
/// a head's elements, of which there are `width` unless given.
pub(crate) fn are_of_kinds(s: &Section, width: u64) -> Result<(), ModelError> {
    s.only(
        "rope_scaling",
        "null: `rope_parameters` has a table for each kind of layer",
        |_| false,
    )?;
    let Some(tables) = s.optional_nested("rope_parameters", "rotary embedding")? else {
        return Ok(());
    };
    let width = s.optional_number("head_dim")?.unwrap_or(width as f64);
    for kind in KINDS {
        tables.required(kind, "a table: each kind of layer has its own")?;
        let Some(table) = tables.optional_nested(kind, "rotary embedding")? else {
            continue;
        };
        let allowed = "a kind other than dynamic, which is not simulated for each kind of layer";
        for key in ["rope_type", "type"] {
            table.only(key, allowed, |kind| kind != "dynamic")?;
        }
        let allowed = format!("a share of its heads' {width} elements that fits in pairs");
        table.only("partial_rotary_factor", &allowed, |share| {
            share.as_f64().is_some_and(|share| {
                let rotated = (share * width) as u64;
                share > 0.0 && rotated > 0 && rotated.next_multiple_of(2) as f64 <= width
            })
        })?;
    }
    Ok(())
}
