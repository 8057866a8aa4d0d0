//! Inputs of gated DeltaNet.

use super::config::DeltaNetConfig;
use crate::nn::{Builder, Linear};
use crate::tape::{Tape, Tensor};

/// Projections into gated DeltaNet.
pub(super) enum Projections {
    /// One for queries, keys and values, and one for each other input, `z`, `b` and `a` (Qwen3.5).
    Separate(Box<[Linear; 4]>),
    /// Two, which hold the inputs of each key head together, of queries to `z` and of `b` and `a` (Qwen3-Next).
    Fused(Box<[Linear; 2]>),
}

/// Inputs of gated DeltaNet, and what lives beside them.
pub(super) struct Projected {
    /// Queries, keys and values, [batch, channels, seq].
    pub mixed: Tensor,
    /// Gate of the output, [batch, seq, value heads, width].
    pub z: Tensor,
    /// [batch, seq, value heads].
    pub b: Tensor,
    /// [batch, seq, value heads].
    pub a: Tensor,
    /// Queries, keys and values by themselves, which live until they are split anew.
    pub parts: Vec<Tensor>,
    /// Both projections, which live as long as the forward.
    pub _whole: Option<[Tensor; 2]>,
}

impl Projections {
    /// Makes Qwen3.5's, from `hidden` elements.
    pub fn separate(b: &Builder, hidden: u64, d: DeltaNetConfig) -> Self {
        let linear = |name, output| Linear::new(b, name, hidden, output, false);
        Self::Separate(Box::new([
            linear("in_proj_qkv", 2 * d.keys() + d.values()),
            linear("in_proj_z", d.values()),
            linear("in_proj_b", d.value_heads),
            linear("in_proj_a", d.value_heads),
        ]))
    }

    /// Makes Qwen3-Next's, from `hidden` elements.
    pub fn fused(b: &Builder, hidden: u64, d: DeltaNetConfig) -> Self {
        let linear = |name, output| Linear::new(b, name, hidden, output, false);
        Self::Fused(Box::new([
            linear("in_proj_qkvz", 2 * d.keys() + 2 * d.values()),
            linear("in_proj_ba", 2 * d.value_heads),
        ]))
    }

    /// [batch, seq, hidden] → inputs.
    pub fn forward(&self, t: &Tape, d: &DeltaNetConfig, x: &Tensor) -> Projected {
        let [batch, seq] = [x.size(0), x.size(1)];
        match self {
            Self::Separate(parts) => {
                let [in_proj_qkv, in_proj_z, in_proj_b, in_proj_a] = &**parts;
                let mixed = in_proj_qkv.call(t, x);
                let mixed = t.transpose(&mixed, 1, 2);
                let z = in_proj_z.call(t, x);
                Projected {
                    mixed,
                    z: t.view(&z, [batch, seq, d.value_heads, d.value_width]),
                    b: in_proj_b.call(t, x),
                    a: in_proj_a.call(t, x),
                    parts: Vec::new(),
                    _whole: None,
                }
            }
            Self::Fused(parts) => {
                let [in_proj_qkvz, in_proj_ba] = &**parts;
                let qkvz = in_proj_qkvz.call(t, x);
                let ba = in_proj_ba.call(t, x);
                reordered(t, d, [qkvz, ba])
            }
        }
    }
}

/// `fix_query_key_value_ordering`, and the concatenation of queries, keys and values.
fn reordered(t: &Tape, d: &DeltaNetConfig, whole: [Tensor; 2]) -> Projected {
    let [batch, seq] = [whole[0].size(0), whole[0].size(1)];
    let times = d.value_heads / d.key_heads;
    let by_head = |x: &Tensor| t.view(x, [batch, seq, d.key_heads, x.last() / d.key_heads]);
    let (q, k, v) = (d.key_width, d.key_width, times * d.value_width);
    let mut parts = t.split(&by_head(&whole[0]), 3, &[q, k, v, v]);
    let of_ba = t.split(&by_head(&whole[1]), 3, &[times; 2]);
    let values = |x: &Tensor| t.reshape(x, [batch, seq, d.value_heads, d.value_width]);
    parts[2] = values(&parts[2]);
    parts[3] = values(&parts[3]);
    let [b, a] = [0, 1].map(|i| t.reshape(&of_ba[i], [batch, seq, d.value_heads]));
    drop(of_ba);
    let z = parts.remove(3);
    let widths = [d.keys(), d.keys(), d.values()];
    let parts: Vec<Tensor> = parts
        .iter()
        .zip(widths)
        .map(|(x, width)| t.reshape(x, [batch, seq, width]))
        .collect();
    let mixed = t.cat(&parts.iter().collect::<Vec<_>>(), 2);
    Projected {
        mixed: t.transpose(&mixed, 1, 2),
        z,
        b,
        a,
        parts,
        _whole: Some(whole),
    }
}
