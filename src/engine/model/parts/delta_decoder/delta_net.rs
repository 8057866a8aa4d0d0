//! Gated DeltaNet as transformers runs it without flash-linear-attention (`Qwen3_5GatedDeltaNet`,
//! `Qwen3NextGatedDeltaNet`).

use super::config::{DeltaDecoderConfig, DeltaNetConfig};
use super::projections::{Projected, Projections};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, DeltaCall, GatedRmsNorm, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `Qwen3_5GatedDeltaNet` and its variants.
pub struct GatedDeltaNet {
    module: Module,
    /// Weight of `conv1d`, [channels, 1, kernel].
    conv1d: Tensor,
    dt_bias: Tensor,
    a_log: Tensor,
    norm: GatedRmsNorm,
    out_proj: Linear,
    projections: Projections,
    sizes: DeltaNetConfig,
    activation: Activation,
    /// True if the package causal-conv1d runs the convolution.
    by_package: bool,
}

impl GatedDeltaNet {
    pub fn new(b: &Builder, c: &DeltaDecoderConfig) -> Self {
        let (t, d) = (b.tape(), c.delta);
        let channels = 2 * d.keys() + d.values();
        let conv1d = t.scope("conv1d", || b.weight("weight", [channels, 1, d.kernel]));
        let first = c.form.fused.then(|| Projections::fused(b, c.hidden, d));
        let dt_bias = b.weight("dt_bias", [d.value_heads]);
        // `A`, whose logarithm is the parameter, is a variable of the constructor.
        let initial = t.empty([d.value_heads], b.dtype(), "A");
        let made = Self {
            module: b.module(),
            conv1d,
            dt_bias,
            a_log: b.weight("A_log", [d.value_heads]),
            norm: GatedRmsNorm::new(b, "norm", d.value_width),
            out_proj: Linear::new(b, "out_proj", d.values(), c.hidden, false),
            projections: first.unwrap_or_else(|| Projections::separate(b, c.hidden, d)),
            sizes: d,
            activation: c.activation,
            by_package: b.has_causal_conv1d([channels, d.kernel], c.activation == Activation::Silu),
        };
        drop(initial);
        made
    }

    /// Runs `_init_weights` at the end of the constructor of the model that contains this.
    pub fn initialise(&self, t: &Tape) {
        drop(t.empty([self.sizes.value_heads], self.a_log.dtype(), "A"));
    }

    /// [batch, seq, hidden] → the same; `padding` [batch, seq] marks positions that are not padding.
    pub fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, mut x: Tensor) -> Tensor {
        self.module.call(t, move || {
            if let Some(padding) = padding {
                x = t.mul(&x, &t.unsqueeze(padding, 2));
            }
            let d = &self.sizes;
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: &Tensor, heads, width| t.view(x, [batch, seq, heads, width]);
            let Projected {
                mut mixed,
                mut z,
                b,
                a,
                parts,
                _whole,
            } = self.projections.forward(t, d, &x);
            if let Some(cache) = cache {
                cache.keep(t.empty([batch, mixed.size(1), d.kernel], mixed.dtype(), "convolution state"));
            }
            mixed = self.convolve(t, &mixed);
            if cache.is_some() {
                mixed = t.narrow(&mixed, 2, seq);
            }
            mixed = t.transpose(&mixed, 1, 2);
            let [mut query, mut key, value] = {
                let parts = t.split(&mixed, 2, &[d.keys(), d.keys(), d.values()]);
                let keys = [&parts[0], &parts[1]].map(|x| heads(x, d.key_heads, d.key_width));
                let [query, key] = keys;
                [query, key, heads(&parts[2], d.value_heads, d.value_width)]
            };
            drop(parts);
            let beta = t.sigmoid(&b);
            let decay = self.decay(t, &a);
            let times = d.value_heads / d.key_heads;
            if times > 1 {
                query = t.repeat_each(&query, times, 2);
                key = t.repeat_each(&key, times, 2);
            }
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
            out = t.reshape(&out, [batch * seq * d.value_heads, d.value_width]);
            z = t.reshape(&z, *out.shape());
            out = self.norm.call(t, &out, &z);
            out = t.view(&out, [batch, seq, d.values()]);
            self.out_proj.call(t, &out)
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
            let padding = self.sizes.kernel - 1;
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), None, padding);
            t.slice(&out, 2, x.size(2))
        };
        out = nn::activate(t, self.activation, out);
        t.to_dtype(&out, x.dtype())
    }

    /// `-A_log.float().exp() * softplus(a.float() + dt_bias)`.
    fn decay(&self, t: &Tape, a: &Tensor) -> Tensor {
        let rate = {
            let log = t.to_dtype(&self.a_log, DType::F32);
            let exp = t.exp(&log);
            drop(log);
            t.neg(&exp)
        };
        let step = {
            let wide = t.to_dtype(a, DType::F32);
            let shifted = t.add(&wide, &self.dt_bias);
            drop(wide);
            t.softplus(&shifted)
        };
        t.mul(&rate, &step)
    }
}
