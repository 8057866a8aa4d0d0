//! Attention of GPT-J and CodeGen: heads rotated in pairs of elements, eager in fp32.

use super::attention::{Attend, BlockContext};
use super::config::{Dropouts, GptConfig};
use super::window::merged;
use crate::dtype::DType;
use crate::nn::{Builder, Linear};
use crate::tape::{Mask, Module, Tape, Tensor};

/// Parts into which CodeGen's projection is split for model parallelism.
const PARTS: u64 = 4;

enum Projections {
    Separate(Box<[Linear; 3]>),
    Fused(Linear),
}

/// `GPTJAttention` and `CodeGenAttention`.
pub(super) struct PairsAttention {
    module: Module,
    qkv: Projections,
    out_proj: Linear,
    /// Sines and cosines, [positions, rotated].
    embed_positions: Tensor,
    /// Type of weights, PyTorch's default while the model is made.
    default: DType,
    rotated: u64,
    head_dim: u64,
    dropouts: Dropouts,
}

impl PairsAttention {
    pub fn new(b: &Builder, c: &GptConfig, rotated: u64, fused: bool) -> Self {
        let map = |name| Linear::adapted(b, name, c.hidden, c.hidden, false);
        let qkv = if fused {
            Projections::Fused(Linear::new(b, "qkv_proj", c.hidden, 3 * c.hidden, false))
        } else {
            let (k, v, q) = (map("k_proj"), map("v_proj"), map("q_proj"));
            Projections::Separate(Box::new([q, k, v]))
        };
        let out_proj = Linear::new(b, "out_proj", c.hidden, c.hidden, false);
        let shape = [c.positions, rotated];
        let embed_positions = sinusoids(b.tape(), b.dtype(), shape, || {
            b.buffer("embed_positions", shape, DType::F32)
        });
        Self {
            module: b.module(),
            qkv,
            out_proj,
            embed_positions,
            default: b.dtype(),
            rotated,
            head_dim: c.head_dim(),
            dropouts: c.dropouts,
        }
    }

    /// Queries, keys, [batch, seq, heads, width], and values, [batch, heads, seq, width]; and what lives as long.
    fn projected(&self, t: &Tape, x: &Tensor) -> ([Tensor; 3], Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let heads = hidden / self.head_dim;
        match &self.qkv {
            Projections::Separate(maps) => {
                let flat = [0, 1, 2].map(|i| maps[i].call(t, x));
                let [q, k, v] = flat.map(|x| t.view(&x, [batch, seq, heads, self.head_dim]));
                ([q, k, t.permute(&v, &[0, 2, 1, 3])], None)
            }
            Projections::Fused(map) => {
                let all = map.call(t, x);
                let split = t.reshape(&all, [batch, seq, PARTS, 3 * hidden / PARTS]);
                let parts = t.split(&split, 3, &[hidden / PARTS; 3]);
                let head = |x: &Tensor| {
                    let local = t.reshape(x, [batch, seq, PARTS, heads / PARTS, self.head_dim]);
                    t.reshape(&local, [batch, seq, heads, self.head_dim])
                };
                let [q, k, v] = [0, 2, 1].map(|i| head(&parts[i]));
                ([q, k, t.permute(&v, &[0, 2, 1, 3])], Some(all))
            }
        }
    }

    /// Sines and cosines of the positions, [.., seq, rotated] together; and what lives as long.
    fn waves(&self, t: &Tape, position_ids: &Tensor, dtype: DType) -> (Tensor, Option<[Tensor; 2]>) {
        let [rows, seq] = [position_ids.size(0), position_ids.size(1)];
        let shape = [rows, seq, self.rotated];
        if matches!(self.qkv, Projections::Fused(_)) {
            return (t.empty(shape, DType::F32, "positions"), None);
        }
        let repeated = t.empty([rows, self.embed_positions.size(0), self.rotated], DType::F32, "repeat");
        let places = t.empty(shape, DType::I64, "repeated position ids");
        let gathered = t.empty(shape, DType::F32, "gather");
        (t.to_dtype(&gathered, dtype), Some([repeated, places]))
    }

    fn attend(&self, t: &Tape, [q, k, v]: [&Tensor; 3], mask: Option<&Mask>) -> (Tensor, Tensor) {
        let q = t.to_dtype(q, DType::F32);
        let k = t.to_dtype(k, DType::F32);
        let mut weights = t.matmul(&q, &t.transpose(&k, 2, 3));
        let scales_first = matches!(self.qkv, Projections::Separate(_));
        if scales_first {
            weights = t.scale(&weights);
        }
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            weights = t.add(&weights, bias);
        }
        if !scales_first {
            weights = t.scale(&weights);
        }
        weights = t.softmax(&weights, None);
        weights = t.to_dtype(&weights, v.dtype());
        weights = t.dropout(&weights, self.dropouts.attention);
        let out = t.matmul(&weights, v);
        drop((q, k));
        (out, weights)
    }
}

impl Attend for PairsAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let ([mut q, mut k, mut v], _all) = self.projected(t, x);
            let (sincos, _places) = self.waves(t, &shared.position_ids, k.dtype());
            let half = self.rotated / 2;
            let waves = [t.slice(&sincos, 2, half), t.slice(&sincos, 2, half)];
            let [(rotated_k, _k_parts), (rotated_q, _q_parts)] = self.rotated_in_part(t, [&k, &q], &waves);
            k = t.permute(&rotated_k, &[0, 2, 1, 3]);
            q = t.permute(&rotated_q, &[0, 2, 1, 3]);
            drop((rotated_k, rotated_q));
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &t.to_dtype(&k, x.dtype()), &v);
            }
            let (mut out, weights) = self.attend(t, [&q, &k, &v], shared.mask.as_ref());
            out = merged(t, out);
            out = self.out_proj.call(t, &out);
            out = t.dropout(&out, self.dropouts.residual);
            (out, Some(weights))
        })
    }

    fn initialise(&self, t: &Tape) {
        let shape = [self.embed_positions.size(0), self.rotated];
        drop(sinusoids(t, self.default, shape, || {
            t.empty(shape, DType::F32, "embed_positions again")
        }));
    }
}

impl PairsAttention {
    /// Rotates keys, then queries, and only then joins the parts of their heads.
    fn rotated_in_part(&self, t: &Tape, x: [&Tensor; 2], waves: &[Tensor; 2]) -> [(Tensor, Vec<Tensor>); 2] {
        let cut = x.map(|x| {
            let part = t.slice(x, 3, self.rotated);
            (part, t.narrow(x, 3, self.head_dim - self.rotated))
        });
        let parts = cut.map(|(part, rest)| {
            let part = rotated(t, &part, waves);
            (part, rest)
        });
        parts.map(|(part, rest)| (t.cat(&[&part, &rest], 3), vec![part, rest]))
    }
}

/// `tensor * cos + rotate_every_two(tensor) * sin`, for sines and cosines [.., seq, width / 2].
fn rotated(t: &Tape, x: &Tensor, [sin, cos]: &[Tensor; 2]) -> Tensor {
    let doubled = |wave: &Tensor| t.repeat_each(&t.unsqueeze(wave, 2), 2, 3);
    let (sin, cos) = (doubled(sin), doubled(cos));
    let straight = t.mul(x, &cos);
    let across = {
        let every_two = {
            let half = x.last() / 2;
            let (first, second) = (t.narrow(x, 3, half), t.narrow(x, 3, half));
            let negated = t.neg(&second);
            let stacked = t.stack_last(&[&negated, &first]);
            drop(negated);
            t.view(&stacked, *x.shape())
        };
        t.mul(&every_two, &sin)
    };
    t.add(&straight, &across)
}

/// `create_sinusoidal_positions`, [positions, width] in fp32, made by `last`; `default` is PyTorch's default type, in which
/// an integer tensor is divided.
fn sinusoids(t: &Tape, default: DType, [positions, width]: [u64; 2], last: impl FnOnce() -> Tensor) -> Tensor {
    let half = width / 2;
    let frequencies = {
        let part = |name| t.empty([half], default, name);
        let shares = {
            let steps = t.empty([half], DType::I64, "arange");
            let shares = part("arange / width");
            drop(steps);
            shares
        };
        let powers = part("pow");
        drop(shares);
        let inverse = part("reciprocal");
        drop(powers);
        let frequencies = part("mul");
        drop(inverse);
        frequencies
    };
    let wave = |name| t.empty([positions, half], DType::F32, name);
    let angles = {
        let steps = t.empty([positions], DType::I64, "arange");
        let moved = t.empty([positions], DType::F32, "positions as float");
        drop(steps);
        let angles = wave("einsum");
        drop(moved);
        angles
    };
    let (sin, cos) = (wave("sin"), wave("cos"));
    let joined = last();
    drop((sin, cos));
    drop((angles, frequencies));
    joined
}
