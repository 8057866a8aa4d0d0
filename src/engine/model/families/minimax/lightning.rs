//! Lightning attention: linear attention of blocks of positions, with a state that passes from block to block.

use super::config::MiniMaxConfig;
use crate::nn::{self, Activation, Builder, KvCache, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `MiniMaxLightningAttention`.
pub(super) struct LightningAttention {
    module: Module,
    norm: RmsNorm,
    qkv: Linear,
    out: Linear,
    gate: Linear,
    decays: Decays,
    heads: u64,
    head_dim: u64,
    activation: Activation,
}

/// Numbers by which positions forget those before them.
struct Decays {
    /// [heads, 1, 1].
    slope: Tensor,
    /// [heads, block, 1].
    query: Tensor,
    /// [heads, block, 1].
    key: Tensor,
    /// [1, heads, block, block].
    diagonal: Tensor,
}

/// Variables of the loop over blocks, which hold what the last block made.
#[derive(Default)]
struct Variables {
    decay: Option<Tensor>,
    within: Option<Tensor>,
    of_within: Option<Tensor>,
    of_state: Option<Tensor>,
    output: Option<Tensor>,
    next: Option<Tensor>,
}

impl Decays {
    fn new(b: &Builder, heads: u64, block: u64) -> Self {
        let buffer = |name, shape: &[u64]| b.buffer(name, shape, b.dtype());
        Self {
            slope: buffer("slope_rate", &[heads, 1, 1]),
            query: buffer("query_decay", &[heads, block, 1]),
            key: buffer("key_decay", &[heads, block, 1]),
            diagonal: buffer("diagonal_decay", &[1, heads, block, block]),
        }
    }

    /// Decay of the state over a block.
    fn of_block(&self, t: &Tape) -> Tensor {
        let scaled = {
            let negated = t.neg(&self.slope);
            t.scale(&negated)
        };
        t.exp(&scaled)
    }
}

impl LightningAttention {
    /// Makes it.
    pub fn new(b: &Builder, c: &MiniMaxConfig) -> Self {
        let (hidden, inner) = (c.text.hidden, c.text.heads * c.text.head_dim);
        Self {
            module: b.module(),
            norm: RmsNorm::new(b, "norm", inner),
            qkv: Linear::new(b, "qkv_proj", hidden, 3 * inner, false),
            out: Linear::new(b, "out_proj", inner, hidden, false),
            gate: Linear::new(b, "output_gate", hidden, inner, false),
            decays: Decays::new(b, c.text.heads, c.block),
            heads: c.text.heads,
            head_dim: c.text.head_dim,
            activation: c.text.activation,
        }
    }

    /// Output and the last state of `x`, [batch, seq, hidden].
    pub fn call(&self, t: &Tape, cache: Option<&KvCache>, x: &Tensor) -> [Tensor; 2] {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let activated = nn::activate(t, self.activation, self.qkv.call(t, x));
            let fused = t.view(&activated, [batch, seq, self.heads, 3 * self.head_dim]);
            drop(activated);
            let parts = t.split(&fused, 3, &[self.head_dim; 3]);
            let qkv = [0, 1, 2].map(|i| t.transpose(&parts[i], 1, 2));
            drop((parts, fused));
            let shape = [batch, self.heads, self.head_dim, self.head_dim];
            // Made on the host.
            let mut state = t.empty(shape, qkv[2].dtype(), "state");
            let mut held = Variables::default();
            let outputs = self.blocks(t, &qkv, &mut state, &mut held);
            let mut attended = {
                let parts: Vec<&Tensor> = outputs.iter().collect();
                t.cat(&parts, 2)
            };
            drop(outputs);
            attended = t.transpose(&attended, 1, 2);
            attended = t.reshape(&attended, [batch, seq, self.heads * self.head_dim]);
            attended = self.norm.call(t, &attended);
            attended = {
                let gate = self.gate.call(t, x);
                let activated = t.sigmoid(&gate);
                drop(gate);
                t.mul(&activated, &attended)
            };
            attended = self.out.call(t, &attended);
            if let Some(cache) = cache {
                cache.keep(state.clone());
            }
            drop((held, qkv));
            [attended, state]
        })
    }

    /// Outputs of the blocks of queries, keys and values, [batch, heads, seq, width] each.
    fn blocks(&self, t: &Tape, qkv: &[Tensor; 3], state: &mut Tensor, held: &mut Variables) -> Vec<Tensor> {
        let (seq, block) = (qkv[0].size(2), self.decays.query.size(1));
        let mut outputs = Vec::new();
        for start in (0..seq).step_by(block as usize) {
            let n = block.min(seq - start);
            let [q, k, v] = qkv.each_ref().map(|x| match start {
                0 => t.slice(x, 2, n),
                _ => t.narrow(x, 2, n),
            });
            let [of_query, of_key] = [&self.decays.query, &self.decays.key].map(|decay| t.slice(decay, 1, n));
            let diagonal = t.slice(&t.slice(&self.decays.diagonal, 2, n), 3, n);
            held.decay = Some(self.decays.of_block(t));
            held.within = Some(t.matmul(&q, &t.transpose(&k, 2, 3)));
            if let Some(within) = &held.within {
                let decayed = t.mul(within, &diagonal);
                held.of_within = Some(t.matmul(&decayed, &v));
            }
            held.of_state = Some({
                let decayed = t.mul(&q, &of_query);
                t.matmul(&decayed, state)
            });
            if let (Some(of_state), Some(of_within)) = (&held.of_state, &held.of_within) {
                held.output = Some(t.add(of_state, of_within));
            }
            outputs.extend(held.output.clone());
            held.next = Some({
                let decayed = t.mul(&k, &of_key);
                t.matmul(&t.transpose(&decayed, 2, 3), &v)
            });
            if let (Some(decay), Some(next)) = (&held.decay, &held.next) {
                let decayed = t.mul(state, decay);
                *state = t.add(&decayed, next);
            }
        }
        outputs
    }
}
