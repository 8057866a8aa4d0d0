//! Rotary embeddings of a decoder.

use super::config::DecoderConfig;
use super::family::{LlamaModules, Modules};
use super::forms::Rotation;
use super::latent_config::LatentRotation;
use crate::model::config::{Rope, RopeKind};
use crate::nn::{Builder, Frequencies, Rotary, Waves};

/// Makes the rotary embedding of all blocks, and one of sliding blocks where both kinds have one of their own.
pub(super) fn rotaries(b: &Builder, c: &DecoderConfig) -> (Rotary, Option<Rotary>) {
    let by_kind = matches!(
        c.family.modules,
        Modules::Llama(LlamaModules {
            rotary_by_kind: true,
            ..
        })
    );
    let is_mixed = c
        .windows
        .iter()
        .any(|window| window.is_some() != c.windows[0].is_some());
    let recomputes = matches!(
        c.family.modules,
        Modules::Llama(LlamaModules {
            recomputes_rotary: true,
            ..
        })
    );
    let is_complex = c
        .latent
        .is_some_and(|latent| latent.rotation == LatentRotation::Complex);
    let waves = match c.family.block().rotation {
        _ if is_complex => Waves::Complex,
        Rotation::Halves => Waves::Halves,
        _ => Waves::Repeated,
    };
    let make = |rope: &Rope| {
        Rotary::with(b, rotary_width(c, rope), frequencies(c))
            .dynamic(c.rope.is_dynamic())
            .recomputed(recomputes.then_some(c.rope.kind != RopeKind::Default))
            .of(waves)
    };
    let of_sliding = c.sliding_rope.as_ref().unwrap_or(&c.rope);
    let all = make(if is_mixed || c.windows[0].is_none() {
        &c.rope
    } else {
        of_sliding
    });
    let sliding = (by_kind && is_mixed).then(|| make(of_sliding));
    let all = all.initialised(b.tape());
    (all, sliding.map(|rotary| rotary.initialised(b.tape())))
}

/// Initialisation of the inverse frequencies.
fn frequencies(c: &DecoderConfig) -> Frequencies {
    match (c.family.block().rotation, &c.rope.mrope_section) {
        (Rotation::PairedInF32, Some(sections)) => Frequencies::Interleaved(sections[0] + sections[1]),
        _ => Frequencies::Default,
    }
}

/// Elements of each head that are rotated.
fn rotary_width(c: &DecoderConfig, rope: &Rope) -> u64 {
    if let Some(latent) = &c.latent {
        return latent.rotated;
    }
    match c.family.modules {
        Modules::Llama(LlamaModules {
            partial_rotary: true, ..
        })
        | Modules::Llama(LlamaModules {
            kind_shares: Some(_), ..
        }) => rope.rotated(c.head_dim).next_multiple_of(2),
        Modules::Llama(_) | Modules::Gemma(_) => c.head_dim,
    }
}
