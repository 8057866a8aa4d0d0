//! Merging of adapters into the weights (`merge` in `peft/tuners/lora/layer.py` and `bnb.py`, 0.21).

use std::any::Any;

use super::super::SimulateError;
use super::super::build::build;
use super::loads::on_card;
use super::quantised::Loaded;
use super::run::{Run, stops};
use super::script::peaks_since;
use crate::dtype::DType;
use crate::nn::quantised_once;
use crate::report::{HostBytes, Occasion, OnCard};
use crate::setup::Freeze;
use crate::tape::{Tape, Tensor};
use crate::units::Bytes;

/// An adapter, and the path of its map.
struct Pair {
    path: String,
    maps: [Tensor; 2],
}

/// `merge_and_unload` of a model that lies on the card, without optimizer; `None` without adapters, or beside adapters on
/// fused experts, whose merging is not simulated.
pub(super) fn merge(run: &Run<'_>) -> Result<Option<OnCard>, SimulateError> {
    if !run.adapts() || run.model.adapts_experts(run.setup) {
        return Ok(None);
    }
    let (tape, params, _model): (Tape, Vec<Tensor>, Box<dyn Any>) = match run.setup.freeze {
        Freeze::Qlora => {
            let loaded = Loaded::new(run);
            (loaded.tape.clone(), loaded.params.clone(), Box::new(loaded))
        }
        _ => {
            let tape = Tape::new(run.gpu);
            let built = build(&tape, run.model, &run.loaded());
            (tape, built.params.clone(), Box::new(built))
        }
    };
    stops(tape.failure())?;
    let from = tape.mark();
    let packed: Vec<String> = params
        .iter()
        .filter(|param| param.dtype() == DType::U8)
        .map(|param| tape.path_of(param))
        .collect();
    let mut largest = Bytes::ZERO;
    for pair in pairs(&tape, &params) {
        let is_packed = packed
            .iter()
            .any(|path| path.strip_suffix(".weight") == Some(&pair.path));
        match is_packed {
            true => largest = largest.max(merge_packed(&tape, run, &pair)),
            false => merge_whole(&tape, &pair),
        }
        pair.maps.iter().for_each(|map| tape.give_up(map));
    }
    let host = HostBytes::exactly(largest);
    Ok(Some(on_card(Occasion::Merge, peaks_since(&tape, from)?, host)))
}

/// Adapters in the order of modules.
fn pairs(t: &Tape, params: &[Tensor]) -> Vec<Pair> {
    let of = |map: &str| {
        let found = params.iter().filter_map(|param| {
            let path = t.path_of(param);
            Some((path.strip_suffix(map)?.to_owned(), param.clone()))
        });
        found.collect::<Vec<_>>()
    };
    let (first, second) = (of(".lora_A.weight"), of(".lora_B.weight"));
    let paired = first.into_iter().zip(second);
    paired.map(|((path, a), (_, b))| Pair { path, maps: [a, b] }).collect()
}

/// `(B @ A) * scaling`.
fn delta(t: &Tape, pair: &Pair) -> Tensor {
    let [a, b] = &pair.maps;
    let product = t.matmul(b, a);
    t.scale(&product)
}

/// `weight.data += delta`.
fn merge_whole(t: &Tape, pair: &Pair) {
    t.no_grad(|| drop(delta(t, pair)));
}

/// Dequantises a weight, adds to it, and quantises the sum again, which passes through the host; returns its bytes there.
fn merge_packed(t: &Tape, run: &Run<'_>, pair: &Pair) -> Bytes {
    t.no_grad(|| {
        let [a, b] = &pair.maps;
        let shape = [b.size(0), a.last()];
        let elements = shape[0] * shape[1];
        let output = {
            let _scales = t.empty([elements.div_ceil(64)], DType::F32, "scales");
            t.empty(shape, run.setup.precision.products(), "4-bit weight in full")
        };
        let delta = delta(t, pair);
        // Of two types, the wider one.
        let dtype = if delta.dtype() == output.dtype() {
            delta.dtype()
        } else {
            DType::F32
        };
        let sum = t.empty(shape, dtype, "merged weight");
        // In place of the old weight, which is freed after it; their sizes are the same.
        quantised_once(t, shape, dtype);
        drop((sum, delta, output));
        Bytes::new(elements * dtype.width())
    })
}
