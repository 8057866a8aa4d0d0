//! Computes the curves of the attention page, one algorithm per slice.

use vramscope_engine::attention::{Algorithm, Call, Pass, memory, time};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::tape::Gpu;

use super::coded::Coded;
use super::protocol::{Answer, AttentionCurve};
use super::run::model;
use super::slices::Parts;
use crate::state::{Draft, Form, Key, Reading};

/// Attention shape that the entries describe; the model's own values fill in whatever they leave out.
///
/// # Errors
/// Returns the engine's message if the model cannot be read.
pub fn call(reading: &Reading) -> Result<Call, String> {
    let own = Call::of(&model(reading)?, &reading.setup);
    let count = |key: Key| Form::OptionalCount.read(reading.good.get(key)).ok()?.as_u64();
    let choice = |key: Key| reading.good.get(key);
    let heads = count(Key::Heads).unwrap_or(own.heads);
    Ok(Call {
        heads,
        // A head count entered alone means plain multi-head attention: no heads share keys and values.
        kv_heads: count(Key::KvHeads).unwrap_or(if heads == own.heads { own.kv_heads } else { heads }),
        width: count(Key::HeadDim).unwrap_or(own.width),
        dtype: match choice(Key::Dtype) {
            "bf16" => DType::Bf16,
            "fp16" => DType::F16,
            "fp32" => DType::F32,
            _ => own.dtype,
        },
        causal: match choice(Key::Causal) {
            "true" => true,
            "false" => false,
            _ => own.causal,
        },
        window: count(Key::Window).unwrap_or(own.window),
        kept_percent: count(Key::Topk).unwrap_or(own.kept_percent),
        chunk: count(Key::Chunk).unwrap_or(own.chunk),
        pass: match choice(Key::Pass) {
            "forward" => Pass::Forward,
            _ => Pass::Training,
        },
        ..own
    })
}

/// Algorithms selected for drawing, in the order of the legend.
pub fn algorithms(reading: &Reading) -> Vec<Algorithm> {
    let named: Vec<&str> = reading.good.get(Key::Algorithms).split(',').map(str::trim).collect();
    let asked = |a: &Algorithm| named.contains(&a.name());
    Algorithm::ALL.into_iter().filter(asked).collect()
}

/// Sequence lengths of the curves: two per doubling from 64 on, plus the pointed-at length and the last one.
pub fn lengths(reading: &Reading) -> Vec<u64> {
    let count = |key: Key| Form::Count.read(reading.good.get(key)).ok().and_then(|v| v.as_u64());
    let at = count(Key::At).filter(|at| (1..=MOST).contains(at));
    let longest = count(Key::Longest)
        .unwrap_or(16_384)
        .max(at.unwrap_or(0))
        .clamp(128, MOST);
    let mut all = vec![longest];
    all.extend(at);
    let mut octave = FIRST;
    while octave <= longest {
        all.extend([octave, octave + octave / 2]);
        octave *= 2;
    }
    all.retain(|&length| length <= longest);
    sort_by_key(&mut all, |length| *length);
    all.dedup();
    all
}

/// Shortest length drawn.
const FIRST: u64 = 64;
/// Longest length drawn.
const MOST: u64 = 1 << 20;

/// Computes the curves, one algorithm per slice.
pub struct AttentionWork {
    algorithms: std::vec::IntoIter<Algorithm>,
    asked: Option<(Call, Vec<u64>)>,
    device: Option<&'static Device>,
}

impl AttentionWork {
    /// Prepares the work. Produces no curves if the entries describe no readable model; the page reports that itself.
    pub fn of(draft: &Draft) -> Self {
        let reading = Reading::of(draft, &Draft::default());
        Self {
            algorithms: algorithms(&reading).into_iter(),
            asked: call(&reading).ok().map(|call| (call, lengths(&reading))),
            device: Device::by_name(&reading.gpu).ok(),
        }
    }
}

impl Parts for AttentionWork {
    fn left(&self) -> u32 {
        if self.asked.is_some() {
            self.algorithms.len() as u32
        } else {
            0
        }
    }

    fn next(&mut self) -> Option<Answer> {
        let (call, lengths) = self.asked.as_ref()?;
        let algorithm = self.algorithms.next()?;
        let gpu: Gpu = self.device.and_then(Device::gpu).unwrap_or_default();
        let bytes = |length| memory(call, algorithm, length, gpu).map(|m| m.peak.get());
        let seconds = |length| match self.device {
            Some(device) => time(call, algorithm, length, device)
                .map(|t| t.total.get())
                .map_err(|e| e.to_string()),
            None => Err("no card is chosen".into()),
        };
        Some(Answer::Attention(Coded::of(&AttentionCurve {
            algorithm: algorithm.name().to_owned(),
            memory: lengths
                .iter()
                .map(|&l| (l, bytes(l).map_err(|e| e.to_string())))
                .collect(),
            time: lengths.iter().map(|&l| (l, seconds(l))).collect(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::setup::Setting;

    fn reading(pairs: &[(Key, &str)]) -> Reading {
        let mut draft = Draft::default();
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        Reading::of(&draft, &Draft::default())
    }

    #[test]
    fn what_is_entered_stands_over_the_models_own() {
        let own = call(&reading(&[(Key::Model, "qwen2.5-7b")])).unwrap();
        assert_eq!((own.heads, own.kv_heads, own.width, own.causal), (28, 4, 128, true));
        let entered = [
            (Key::Model, "qwen2.5-7b"),
            (Key::Heads, "16"),
            (Key::HeadDim, "64"),
            (Key::Causal, "false"),
            (Key::Dtype, "fp32"),
            (Key::Pass, "forward"),
            (Setting::Batch.into(), "3"),
        ];
        let call = call(&reading(&entered)).unwrap();
        assert_eq!((call.heads, call.kv_heads, call.width), (16, 16, 64));
        assert_eq!((call.batch, call.dtype, call.pass), (3, DType::F32, Pass::Forward));
        assert!(!call.causal);
    }

    #[test]
    fn lengths_hold_what_is_pointed_at_and_end_where_asked() {
        let lengths = lengths(&reading(&[(Key::Longest, "1000"), (Key::At, "300")]));
        assert_eq!(lengths, [64, 96, 128, 192, 256, 300, 384, 512, 768, 1000]);
    }

    #[test]
    fn a_length_beyond_the_last_moves_the_end() {
        let lengths = lengths(&reading(&[(Key::Longest, "128"), (Key::At, "200")]));
        assert_eq!(lengths, [64, 96, 128, 192, 200]);
    }

    #[test]
    fn one_answer_comes_for_each_algorithm() {
        let mut draft = Draft::default();
        draft.set(Key::Algorithms, "flash, chunked,nonsense");
        draft.set(Key::Longest, "512");
        let mut work = AttentionWork::of(&draft);
        assert_eq!(work.left(), 2);
        let Some(Answer::Attention(flash)) = work.next() else {
            panic!("it is asked")
        };
        let flash = flash.open().expect("it was written just now");
        assert_eq!(flash.algorithm, "flash");
        assert!(flash.memory.iter().all(|(_, bytes)| bytes.is_ok()));
        assert!(flash.time.iter().all(|(_, seconds)| seconds.is_ok()));
    }
}
