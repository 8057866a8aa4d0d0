//! Tests that the combined operation records the events of the separate ones.

use std::rc::Rc;

use super::super::super::gpu::Gpu;
use super::super::super::log::Log;
use super::super::attention::SdpaInputs;
use super::*;
use crate::dtype::DType;

const LENGTHS: [u64; 3] = [16, 16, 8];

/// Runs heads of 8 elements for 40 positions, with an operation after them that backward needs.
fn block(t: &Tape, x: &Tensor, cuts: Option<&Rc<Cuts>>) -> Tensor {
    let [q, k, v] = [(); 3].map(|()| t.scale(x));
    let (joined, _parts) = if let Some(cuts) = cuts {
        let (joined, parts) = t.attend_segments([&q, &k, &v], cuts, &attend);
        (joined, vec![parts])
    } else {
        one_by_one(t, [&q, &k, &v])
    };
    t.sigmoid(&joined)
}

fn one_by_one(t: &Tape, qkv: [&Tensor; 3]) -> (Tensor, Vec<Tensor>) {
    let [q, k, v] = qkv.map(|x| t.split(x, 2, &LENGTHS));
    let outs: Vec<Tensor> = (0..LENGTHS.len()).map(|i| attend(t, [&q[i], &k[i], &v[i]])).collect();
    let joined = t.cat(&outs.iter().collect::<Vec<_>>(), 1);
    (joined, outs)
}

fn attend(t: &Tape, [q, k, v]: [&Tensor; 3]) -> Tensor {
    let out = t.sdpa(&SdpaInputs {
        q,
        k,
        v,
        mask: None,
        dropout: 0.0,
        enable_gqa: false,
    });
    t.contiguous(&t.transpose(&out, 1, 2))
}

/// Bytes of each allocation, with the bytes freed since the one before, in order of size.
fn history(log: &Log) -> Vec<(Vec<u64>, u64)> {
    let mut all = Vec::new();
    let mut frees = Vec::new();
    for event in &log.events {
        let bytes = log.allocations[event.storage() as usize].bytes;
        if event.is_alloc() {
            frees.sort_unstable();
            all.push((std::mem::take(&mut frees), bytes));
        } else {
            frees.push(bytes);
        }
    }
    all
}

fn record(in_one: bool, dtype: DType, trained: bool, checkpointed: bool) -> Vec<(Vec<u64>, u64)> {
    let t = Tape::new(Gpu::H200);
    let mut x = t.empty([1, 40, 2, 8], dtype, "x");
    if trained {
        x = t.require_grad(&x);
    }
    let x = t.transpose(&x, 1, 2);
    let cuts = in_one.then(|| Rc::new(Cuts::new(LENGTHS.to_vec())));
    let y = if checkpointed {
        t.checkpoint(x, Rc::new(move |t: &Tape, x: Tensor| block(t, &x, cuts.as_ref())))
    } else {
        block(&t, &x, cuts.as_ref())
    };
    if trained {
        t.backward(&y);
    }
    drop(y);
    history(&t.finish())
}

#[test]
fn one_operation_lives_and_dies_like_many() {
    for dtype in [DType::Bf16, DType::F32] {
        for (trained, checkpointed) in [(false, false), (true, false), (true, true)] {
            let many = record(false, dtype, trained, checkpointed);
            assert!(many.len() > 2 * LENGTHS.len());
            let one = record(true, dtype, trained, checkpointed);
            assert_eq!(one, many, "{dtype:?}, trained {trained}, checkpointed {checkpointed}");
        }
    }
}
