//! Reference of attention for some queries, and in backward some keys, each against all others that it attends to.

use vramscope_benchmark::{Check, Kernel, Pass};
use vramscope_engine::attention::Algorithm;

use super::rows::{seen, softmax};
use super::{And, Given, Pairs, Reader, TensorIndex, places, rounding};
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
        // Probabilities are rounded before the second product, results after it; unfused kernels also round the scores.
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
    /// The key head that a query head uses.
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

    /// First visible key of a query, and the scores from there on.
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

    /// Keeps only the highest scores. The selection depends on the rounding of the scores, so they are rounded here as
    /// the kernel rounds them: after the product and after the scale.
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
        // Longer sequences cost more per query.
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
        let results = reader.read(TensorIndex::Output(output), row * width, width)?;
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

    /// Checks gradients of some keys and values of two heads, to which all queries that see the key contribute.
    fn key_gradients(&self, reader: &mut dyn Reader) -> Result<Pairs, String> {
        let e = self.extents;
        if e.heads != e.kv_heads {
            return Ok(Pairs::default());
        }
        let mut pairs = Pairs::default();
        for head in places(e.batch * e.heads, 2) {
            let row = |input| (0..e.length).map(move |i| self.row(input, head, i)).collect();
            let (queries, upstream): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (row(QUERY), row(OUTPUT_GRADIENT));
            let Some(rows) = self.rows(head, reader)? else {
                self.sum_of_value_gradients(head, &upstream, reader, &mut pairs)?;
                continue;
            };
            let results = reader.read(TensorIndex::Output(0), head * e.length * e.width, e.length * e.width)?;
            for key in places(e.length, 4) {
                let (of_key, of_value) = (self.row(KEY, head, key), self.row(VALUE, head, key));
                let width = e.width as usize;
                let (mut key_gradient, mut value_gradient) = (vec![0.0; width], vec![0.0; width]);
                for (i, row) in rows.iter().enumerate() {
                    let probability = match row {
                        Row::Sum(_) if key >= seen(&e, i as u64) => continue,
                        Row::Sum(sum) => (dot(&queries[i], &of_key) * self.scale() - sum).exp(),
                        Row::Probabilities(first, all) => match key.checked_sub(*first) {
                            Some(at) => all.get(at as usize).copied().unwrap_or(0.0),
                            None => 0.0,
                        },
                    };
                    if probability == 0.0 {
                        continue;
                    }
                    let result = results[i * width..][..width].iter().map(|x| f64::from(*x));
                    let mean: f64 = result.zip(&upstream[i]).map(|(o, g)| o * g).sum();
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

    /// Intermediate values from which the probabilities of a head's queries follow. Kernels that keep the log-sum-exp
    /// provide it, which follows from results compared before; others provide the probabilities. `None` if those would
    /// take the CPU too long.
    fn rows(&self, head: u64, reader: &mut dyn Reader) -> Result<Option<Vec<Row>>, String> {
        /// Largest number of queries and keys for which all pairs are computed.
        const LONGEST: u64 = 512;
        let length = self.extents.length;
        let computed = |query| {
            let (first, scores) = self.scores(head, query);
            Row::Probabilities(first, softmax(&scores))
        };
        match self.kernel.algorithm {
            Some(Algorithm::TopK | Algorithm::Chunked | Algorithm::Sliding) if length > LONGEST => Ok(None),
            Some(Algorithm::TopK | Algorithm::Chunked | Algorithm::Sliding) => {
                Ok(Some((0..length).map(computed).collect()))
            }
            _ => {
                let sums = reader.read(TensorIndex::Output(1), head * length, length)?;
                Ok(Some(sums.into_iter().map(|sum| Row::Sum(f64::from(sum))).collect()))
            }
        }
    }

    /// Checks sums: each query's probabilities add up to 1, so a head's gradients of values add up to those of its
    /// results.
    fn sum_of_value_gradients(
        &self,
        head: u64,
        upstream: &[Vec<f64>],
        reader: &mut dyn Reader,
        pairs: &mut Pairs,
    ) -> Result<(), String> {
        let (length, width) = (self.extents.length, self.extents.width as usize);
        let rows = reader.read(
            TensorIndex::Output(4),
            head * length * width as u64,
            length * width as u64,
        )?;
        let mut sums = vec![0.0; width];
        for row in rows.chunks(width) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        // Divide by the square root of their number, so that the sums have the size of the other values.
        let root = (length as f64).sqrt();
        for (x, sum) in sums.into_iter().enumerate() {
            let expected: f64 = upstream.iter().map(|row| row[x]).sum();
            pairs.push((sum / root) as f32, expected / root);
        }
        Ok(())
    }
}

/// Values from which a query's probabilities follow.
enum Row {
    /// The logarithm of its sum of exponentials (log-sum-exp).
    Sum(f64),
    /// The first visible key, and the probabilities from there on.
    Probabilities(u64, Vec<f64>),
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
