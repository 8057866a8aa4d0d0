//! Attention: some queries, and in backward some keys, each against all that it meets.

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{Check, Kernel, Pass, Precision};

use super::rows::{seen, softmax};
use super::{And, Given, Pairs, Place, Reader, places, rounding};
use crate::kernels::random;
use crate::kernels::work::Extents;

const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const OUTPUT_GRADIENT: usize = 3;

struct Reference<'a> {
    kernel: &'a Kernel,
    given: &'a Given<'a>,
    extents: Extents,
}

pub(super) fn attention(kernel: &Kernel, given: &Given<'_>, reader: &mut dyn Reader) -> Result<Check, String> {
    let reference = Reference {
        kernel,
        given,
        extents: Extents::of(kernel),
    };
    let u = rounding(given.precision);
    let forward = reference.queries(reader)?;
    let Some(Pass::Backward | Pass::ForwardBackward) = kernel.pass else {
        // Probabilities are rounded before the second product, results after it; unfused kernels round
        // scores too.
        return Ok(forward.check("fp64 on the CPU, queries drawn at random", 8.0 * u + 1e-4));
    };
    let how = "fp64 on the CPU, queries and keys drawn at random";
    let parts = [
        forward,
        reference.query_gradients(reader)?,
        reference.key_gradients(reader)?,
    ];
    let [forward, queries, keys] = parts.map(|pairs| pairs.check(how, 12.0 * u + 1e-4));
    let check = forward.and(queries).and(keys);
    Ok(check)
}

impl Reference<'_> {
    /// The key head that a query head reads.
    fn key_head(&self, head: u64) -> u64 {
        let e = &self.extents;
        let (sample, head) = (head / e.heads, head % e.heads);
        sample * e.kv_heads + head / (e.heads / e.kv_heads)
    }

    fn row(&self, input: usize, head: u64, position: u64) -> Vec<f64> {
        let (length, width) = (self.extents.length, self.extents.width);
        let start = (head * length + position) * width;
        (start..start + width)
            .map(|place| self.given.at(input, place))
            .collect()
    }

    fn scale(&self) -> f64 {
        1.0 / (self.extents.width as f64).sqrt()
    }

    /// The keys that a query sees, and their scores.
    fn scores(&self, head: u64, query: u64) -> (u64, Vec<f64>) {
        let e = &self.extents;
        let of_query = self.row(QUERY, head, query);
        let range = match self.kernel.algorithm {
            Some(Algorithm::Sliding) => {
                let half = (self.kernel.shape.window.unwrap_or(e.length) / 2).max(1);
                let begin = query / half * half;
                let ahead = if e.causal { half } else { 2 * half };
                begin.saturating_sub(half)..(begin + ahead).min(e.length)
            }
            _ => 0..seen(e, query),
        };
        let first = range.start;
        let key_head = self.key_head(head);
        let score = |key| {
            let of_key = self.row(KEY, key_head, key);
            of_query.iter().zip(&of_key).map(|(q, k)| q * k).sum::<f64>()
        };
        let scores: Vec<f64> = range.map(score).collect();
        match self.kernel.algorithm {
            Some(Algorithm::TopK) => (first, self.kept(&scores)),
            _ => (first, scores.into_iter().map(|s| s * self.scale()).collect()),
        }
    }

    /// Scores of which only the highest are kept. Which those are depends on how scores are rounded, so
    /// they are rounded here as the kernel rounds them: after the product and after the scale.
    fn kept(&self, scores: &[f64]) -> Vec<f64> {
        let precision = self.given.precision;
        let rounded = |s: &f64| {
            let product = random::round(*s as f32, precision);
            random::round(product * self.scale() as f32, precision)
        };
        let scores: Vec<f32> = scores.iter().map(rounded).collect();
        let mut order = scores.clone();
        order.sort_by(|a, b| b.total_cmp(a));
        let percent = self.kernel.shape.kept_percent.unwrap_or(100);
        let kept = (self.extents.length * percent / 100).max(1) as usize;
        let lowest = order[kept - 1];
        let hide = |s: f32| if s >= lowest { f64::from(s) } else { f64::NEG_INFINITY };
        scores.into_iter().map(hide).collect()
    }

    fn sampled(&self) -> Vec<[u64; 2]> {
        let e = &self.extents;
        // Longer sequences cost more for each.
        let count = (1 << 16 >> e.length.ilog2()).clamp(6, 32);
        let all = places(e.batch * e.heads * e.length, count);
        all.into_iter().map(|i| [i / e.length, i % e.length]).collect()
    }

    /// Σ weight × row over the rows of an input.
    fn weighted(&self, input: usize, head: u64, first: u64, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.extents.width as usize];
        for (position, weight) in (first..).zip(weights) {
            if *weight == 0.0 {
                continue;
            }
            let row = self.row(input, head, position);
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        }
        sum
    }

    fn compare(
        &self,
        reader: &mut dyn Reader,
        output: usize,
        row: u64,
        expected: &[f64],
        pairs: &mut Pairs,
    ) -> Result<(), String> {
        let width = self.extents.width;
        let results = reader.read(Place::Output(output), row * width, width)?;
        results
            .into_iter()
            .zip(expected)
            .for_each(|(out, reference)| pairs.push(out, *reference));
        Ok(())
    }

    fn queries(&self, reader: &mut dyn Reader) -> Result<Pairs, String> {
        let mut pairs = Pairs::default();
        for [head, query] in self.sampled() {
            let (first, scores) = self.scores(head, query);
            let expected = self.weighted(VALUE, self.key_head(head), first, &softmax(&scores));
            self.compare(reader, 0, head * self.extents.length + query, &expected, &mut pairs)?;
        }
        Ok(pairs)
    }

    fn query_gradients(&self, reader: &mut dyn Reader) -> Result<Pairs, String> {
        let mut pairs = Pairs::default();
        for [head, query] in self.sampled() {
            let (first, scores) = self.scores(head, query);
            let probabilities = softmax(&scores);
            let upstream = self.row(OUTPUT_GRADIENT, head, query);
            let key_head = self.key_head(head);
            let of_probability: Vec<f64> = (first..first + scores.len() as u64)
                .map(|key| dot(&upstream, &self.row(VALUE, key_head, key)))
                .collect();
            let mean = dot(&probabilities, &of_probability);
            let of_scores: Vec<f64> = probabilities
                .iter()
                .zip(&of_probability)
                .map(|(p, g)| p * (g - mean) * self.scale())
                .collect();
            let expected = self.weighted(KEY, key_head, first, &of_scores);
            self.compare(reader, 2, head * self.extents.length + query, &expected, &mut pairs)?;
        }
        Ok(pairs)
    }

    /// Gradients of some keys and values. All queries meet them, so each query's sum and its product of
    /// result and gradient are needed: both come from the results of forward, which were compared before.
    fn key_gradients(&self, reader: &mut dyn Reader) -> Result<Pairs, String> {
        let e = self.extents;
        if e.heads != e.kv_heads || self.given.precision == Precision::Fp32 {
            return Ok(Pairs::default());
        }
        let mut pairs = Pairs::default();
        let heads = places(e.batch * e.heads, 2);
        for head in heads {
            let sums = reader.read(Place::Output(1), head * e.length, e.length)?;
            let results = reader.read(Place::Output(0), head * e.length * e.width, e.length * e.width)?;
            let queries: Vec<Vec<f64>> = (0..e.length).map(|i| self.row(QUERY, head, i)).collect();
            let upstream: Vec<Vec<f64>> = (0..e.length).map(|i| self.row(OUTPUT_GRADIENT, head, i)).collect();
            for key in places(e.length, 4) {
                let (of_key, of_value) = (self.row(KEY, head, key), self.row(VALUE, head, key));
                let width = e.width as usize;
                let (mut key_gradient, mut value_gradient) = (vec![0.0; width], vec![0.0; width]);
                for query in (0..e.length).filter(|query| key < seen(&e, *query)) {
                    let i = query as usize;
                    let result = results[i * width..][..width].iter().map(|x| f64::from(*x));
                    let mean: f64 = result.zip(&upstream[i]).map(|(o, g)| o * g).sum();
                    let probability = (dot(&queries[i], &of_key) * self.scale() - f64::from(sums[i])).exp();
                    let of_score = probability * (dot(&upstream[i], &of_value) - mean) * self.scale();
                    for x in 0..width {
                        key_gradient[x] += of_score * queries[i][x];
                        value_gradient[x] += probability * upstream[i][x];
                    }
                }
                let row = head * e.length + key;
                self.compare(reader, 3, row, &key_gradient, &mut pairs)?;
                self.compare(reader, 4, row, &value_gradient, &mut pairs)?;
            }
        }
        Ok(pairs)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
