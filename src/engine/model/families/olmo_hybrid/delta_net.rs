//! OLMo Hybrid's gated DeltaNet, as transformers runs it without flash-linear-attention (`OlmoHybridGatedDeltaNet`).

use super::config::DeltaSizes;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, DeltaCall, GatedRmsNorm, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `OlmoHybridGatedDeltaNet`.
pub struct GatedDeltaNet {
    module: Module,
    a_log: Tensor,
    dt_bias: Tensor,
    /// Projections to queries, keys, values, decay, rate and gate.
    projections: [Linear; 6],
    o_proj: Linear,
    /// Weight of `conv1d`, [channels, 1, kernel].
    conv1d: Tensor,
    o_norm: GatedRmsNorm,
    sizes: DeltaSizes,
    activation: Activation,
    /// True if the package causal-conv1d runs the convolution.
    by_package: bool,
}

impl GatedDeltaNet {
    pub fn new(b: &Builder, (hidden, activation): (u64, Activation), d: DeltaSizes) -> Self {
        let t = b.tape();
        let channels = 2 * d.keys() + d.values();
        let linear = |name, output| Linear::new(b, name, hidden, output, false);
        let maps = || {
            let projections = [
                Linear::adapted(b, "q_proj", hidden, d.keys(), false),
                Linear::adapted(b, "k_proj", hidden, d.keys(), false),
                Linear::adapted(b, "v_proj", hidden, d.values(), false),
                linear("a_proj", d.value_heads),
                linear("b_proj", d.value_heads),
                linear("g_proj", d.values()),
            ];
            let o_proj = Linear::adapted(b, "o_proj", d.values(), hidden, false);
            let conv1d = t.scope("conv1d", || b.weight("weight", [channels, 1, d.kernel]));
            (projections, o_proj, conv1d)
        };
        // Parameters of the module itself come before those of its modules. The logarithm is of values in fp32, whatever
        // the model's type.
        let ((projections, o_proj, conv1d), [a_log, dt_bias]) = b.early(maps, || {
            let a_log = b.weight_of("A_log", [d.value_heads], DType::F32);
            [a_log, b.weight("dt_bias", [d.value_heads])]
        });
        Self {
            module: b.module(),
            a_log,
            dt_bias,
            projections,
            o_proj,
            conv1d,
            o_norm: GatedRmsNorm::new(b, "o_norm", d.value_width),
            sizes: d,
            activation,
            by_package: b.has_causal_conv1d([channels, d.kernel], activation == Activation::Silu),
        }
    }

    /// [batch, seq, hidden] → the same; `padding` [batch, seq] marks positions that are not padding.
    pub fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let d = &self.sizes;
            let x = match padding {
                Some(padding) => t.mul(x, &t.unsqueeze(padding, 2)),
                None => x.clone(),
            };
            let [batch, seq] = [x.size(0), x.size(1)];
            let [q_proj, k_proj, v_proj, a_proj, b_proj, g_proj] = &self.projections;
            let mut mixed = {
                let parts = [q_proj, k_proj, v_proj].map(|proj| proj.call(t, &x));
                t.transpose(&t.cat(&parts.each_ref(), 2), 1, 2)
            };
            if let Some(cache) = cache {
                cache.keep(t.empty([batch, mixed.size(1), d.kernel], mixed.dtype(), "convolution state"));
            }
            mixed = self.convolve(t, &mixed);
            mixed = t.narrow(&mixed, 2, seq);
            let [mut query, mut key, value] = {
                let parts = t.split(&t.transpose(&mixed, 1, 2), 2, &[d.keys(), d.keys(), d.values()]);
                let heads = |x: &Tensor, heads, width| t.view(x, [batch, seq, heads, width]);
                [
                    heads(&parts[0], d.key_heads, d.key_width),
                    heads(&parts[1], d.key_heads, d.key_width),
                    heads(&parts[2], d.value_heads, d.value_width),
                ]
            };
            let times = d.value_heads / d.key_heads;
            if times > 1 {
                query = t.repeat_each(&query, times, 2);
                key = t.repeat_each(&key, times, 2);
            }
            let mut beta = {
                let rate = b_proj.call(t, &x);
                t.sigmoid(&rate)
            };
            if d.doubles_beta {
                beta = t.scale(&beta);
            }
            let decay = self.decay(t, a_proj, &x);
            let call = DeltaCall {
                query: &query,
                key: &key,
                value: &value,
                decay: &decay,
                beta: &beta,
                returns_state: cache.is_some(),
            };
            let (mut out, state) = nn::chunk_gated_delta_rule(t, &call);
            if let (Some(cache), Some(state)) = (cache, &state) {
                cache.keep(t.empty_like(state, state.dtype(), "recurrent state"));
            }
            let mut gate = g_proj.call(t, &x);
            out = t.reshape(&out, [batch * seq * d.value_heads, d.value_width]);
            gate = t.reshape(&gate, *out.shape());
            out = self.o_norm.call(t, &out, &gate);
            out = t.reshape(&out, [batch, seq, d.values()]);
            self.o_proj.call(t, &out)
        })
    }

    /// `causal_conv1d_fn`, [batch, channels, seq] → the same.
    fn convolve(&self, t: &Tape, x: &Tensor) -> Tensor {
        let weight = t.squeeze(&self.conv1d, 1);
        if self.by_package {
            return t.causal_conv1d(x, &weight, None);
        }
        let mut out = {
            let cast = t.to_dtype(x, weight.dtype());
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), None, self.sizes.kernel - 1);
            t.slice(&out, 2, x.size(2))
        };
        out = nn::activate(t, self.activation, out);
        t.to_dtype(&out, x.dtype())
    }

    /// `-A_log.float().exp() * softplus(a_proj(x).float() + dt_bias)`.
    fn decay(&self, t: &Tape, a_proj: &Linear, x: &Tensor) -> Tensor {
        let rate = {
            let exp = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exp)
        };
        let step = {
            let shifted = {
                let wide = t.to_dtype(&a_proj.call(t, x), DType::F32);
                t.add(&wide, &self.dt_bias)
            };
            t.softplus(&shifted)
        };
        t.mul(&rate, &step)
    }
}
