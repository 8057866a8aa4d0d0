//! Attention of the text's own stream, and of the streams that predict.

use super::ProphetNetConfig;
use super::inputs::Pair;
use crate::dtype::DType;
use crate::nn::{Builder, KvCache, Linear};
use crate::tape::dims::Dims;
use crate::tape::{Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct Shared {
    pub masks: Pair,
    pub buckets: Pair,
    pub cache: Option<KvCache>,
}

/// `ProphetNetNgramSelfAttention`.
pub(super) struct StreamAttention {
    module: Module,
    key: Linear,
    value: Linear,
    query: Linear,
    out: Linear,
    distances: Linear,
    heads: u64,
    streams: u64,
    buckets: u64,
    dropout: f64,
    attention_dropout: f64,
}

/// One stream's part of something, and those of the others.
type Parts = (Tensor, Vec<Tensor>);

impl StreamAttention {
    /// Makes it.
    pub fn new(b: &Builder, c: &ProphetNetConfig) -> Self {
        let map = |name| Linear::new(b, name, c.hidden, c.hidden, true);
        Self {
            module: b.module(),
            key: map("key_proj"),
            value: map("value_proj"),
            query: map("query_proj"),
            out: map("out_proj"),
            distances: Linear::new(b, "relative_pos_embeddings", c.hidden, c.buckets * c.heads, true),
            heads: c.heads,
            streams: c.streams,
            buckets: c.buckets,
            dropout: c.dropout,
            attention_dropout: c.attention_dropout,
        }
    }

    /// Output of all streams one after the other, [batch, (1 + streams) × seq, hidden], and the weights.
    pub fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, [Tensor; 2]) {
        self.module.call(t, || {
            let hidden = x.last();
            let ([q, k, v], of_x) = self.projected(t, x);
            let (mut main_k, mut main_v) = (k.0.clone(), v.0.clone());
            if let Some(cache) = &shared.cache {
                (main_k, main_v) = cache.update(t, &main_k, &main_v);
            }
            let [batch, seq] = [x.size(0), q.0.size(2)];
            let (attended, main_weights, main_held) = {
                let scores = t.matmul(&q.0, &t.transpose(&main_k, 2, 3));
                let distances = self.main_distances(t, &of_x.0, &shared.buckets.main, *scores.shape());
                self.attended(t, scores, (distances, shared.masks.main.clone()), &main_v)
            };
            let flat = t.reshape(&t.transpose(&attended, 1, 2), [batch, 1, seq, hidden]);
            drop(attended);
            let main_out = self.out.call(t, &flat);
            drop(flat);
            let queries = stacked(t, &q.1, 1);
            let joined = |own: &Tensor, others: &[Tensor]| -> Vec<Tensor> {
                others.iter().map(|other| t.cat(&[own, other], 2)).collect()
            };
            let keys = stacked(t, &joined(&main_k, &k.1), 1);
            let of_streams = stacked(t, &of_x.1, 2);
            let values = stacked(t, &joined(&main_v, &v.1), 2);
            let (attended, weights, held) = {
                let scores = t.matmul(&queries, &t.transpose(&keys, 3, 4));
                let distances = self.stream_distances(t, &of_streams, &shared.buckets.predict, *scores.shape());
                let mask = t.permute(&shared.masks.predict, &[0, 2, 1, 3, 4]);
                self.attended(t, scores, (distances, mask), &t.transpose(&values, 1, 2))
            };
            let flat = t.reshape(&t.transpose(&attended, 2, 3), [batch, self.streams, seq, hidden]);
            drop(attended);
            let predict_out = self.out.call(t, &flat);
            drop(flat);
            let out = {
                let both = t.cat(&[&main_out, &predict_out], 1);
                t.view(&both, [batch, (1 + self.streams) * seq, hidden])
            };
            let dropped = t.functional_dropout(&out, self.dropout);
            drop((out, values, of_streams, main_out, predict_out, main_held, held));
            (dropped, [main_weights, weights])
        })
    }

    /// Queries, keys and values by streams, [batch, heads, seq, width] each, and the streams themselves.
    fn projected(&self, t: &Tape, x: &Tensor) -> ([Parts; 3], Parts) {
        let [batch, all, hidden] = [x.size(0), x.size(1), x.size(2)];
        let [mut q, mut k, mut v] = [&self.query, &self.key, &self.value].map(|map| map.call(t, x));
        q = t.scale(&q);
        let shaped = |x: &Tensor| {
            let split = t.view(x, [batch, all, self.heads, hidden / self.heads]);
            t.contiguous(&t.transpose(&split, 1, 2))
        };
        q = shaped(&q);
        k = shaped(&k);
        v = shaped(&v);
        let count = 1 + self.streams;
        let sizes = vec![all / count; count as usize];
        let parts = |x: &Tensor, dim| {
            let mut parts = t.split(x, dim, &sizes).into_iter();
            let first = parts.next().unwrap_or_else(|| x.clone());
            (first, parts.collect::<Vec<_>>())
        };
        let of_x = parts(x, 1);
        ([&q, &k, &v].map(|x| parts(x, 2)), of_x)
    }

    /// What attention makes of scores, its weights, and what the caller's variables hold.
    fn attended(
        &self,
        t: &Tape,
        scores: Tensor,
        (distances, mask): (Tensor, Tensor),
        values: &Tensor,
    ) -> (Tensor, Tensor, Vec<Tensor>) {
        let mut weights = t.add(&scores, &distances);
        drop(scores);
        // The streams that predict get their mask in the type of the scores.
        let mask = if mask.dim() == 5 {
            t.to_dtype(&mask, weights.dtype())
        } else {
            mask
        };
        weights = t.add(&weights, &mask);
        let mut probs = t.softmax(&weights, Some(DType::F32));
        probs = t.to_dtype(&probs, weights.dtype());
        probs = t.functional_dropout(&probs, self.attention_dropout);
        let out = t.matmul(&probs, values);
        (out, probs, vec![weights, distances, mask])
    }

    /// `get_main_relative_pos_embeddings`, of the shape of the scores.
    fn main_distances(&self, t: &Tape, x: &Tensor, kinds: &Tensor, scores: Dims) -> Tensor {
        let [batch, seq] = [x.size(0), x.size(1)];
        let embedded = self.distances.call(t, x);
        let places = {
            let repeated = t.empty([batch, self.heads * seq, seq], kinds.dtype(), "repeat");
            t.compute(&t.view(&repeated, [batch * self.heads * seq, seq]), DType::I64, "long")
        };
        let flat = {
            let split = t.view(&embedded, [batch, seq, self.buckets, self.heads]);
            drop(embedded);
            t.reshape(
                &t.permute(&split, &[0, 3, 1, 2]),
                [batch * self.heads * seq, self.buckets],
            )
        };
        let gathered = t.gather_last(&flat, &places);
        t.view(&gathered, scores)
    }

    /// `get_predict_relative_pos_embeddings`, of the shape of the scores.
    fn stream_distances(&self, t: &Tape, x: &Tensor, kinds: &Tensor, scores: Dims) -> Tensor {
        let [batch, seq, n] = [x.size(0), x.size(1), self.streams];
        let rows = batch * n * seq * self.heads;
        let flat = {
            let embedded = self.distances.call(t, &t.transpose(x, 1, 2));
            let split = t.view(&embedded, [batch, n, seq, self.buckets, self.heads]);
            drop(embedded);
            t.reshape(&t.permute(&split, &[0, 2, 1, 4, 3]), [rows, self.buckets])
        };
        let places = {
            let repeated = t.empty([n, batch, self.heads * seq, 2 * seq], kinds.dtype(), "repeat");
            t.compute(&t.view(&repeated, [rows, 2 * seq]), DType::I64, "long")
        };
        let gathered = t.gather_last(&flat, &places);
        t.view(&gathered, scores)
    }
}

/// `torch.stack(parts, dim)`, whose gradient is views as that of joined parts is.
fn stacked(t: &Tape, parts: &[Tensor], dim: usize) -> Tensor {
    let parts: Vec<Tensor> = parts.iter().map(|part| t.unsqueeze(part, dim)).collect();
    let parts: Vec<&Tensor> = parts.iter().collect();
    t.cat(&parts, dim)
}
