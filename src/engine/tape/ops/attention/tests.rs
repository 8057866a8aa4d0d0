//! Tests attention against recorded calls of `scaled_dot_product_attention` on an H200 (torch 2.11).

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::smallvec;

use super::*;
use crate::tape::log::Event;
use crate::tape::{Failure, Gpu};

/// A recorded call with the bytes that it allocated (+) and freed (−).
struct Row<'a> {
    dtype: DType,
    /// Elements of a head of queries and keys, and of values.
    widths: [u64; 2],
    seq: u64,
    mask: &'a str,
    dropout: f64,
    shared: bool,
    trained: bool,
    /// True if cuDNN comes first, as on the GPU of the recording.
    cudnn: bool,
    events: Vec<i64>,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let mut next = || words.next().unwrap();
        Self {
            cudnn: next() == "cudnn",
            dtype: match next() {
                "bf16" => DType::Bf16,
                "fp16" => DType::F16,
                _ => DType::F32,
            },
            widths: {
                let given = next();
                let (width, of_values) = given.split_once('/').unwrap_or((given, given));
                [width, of_values].map(|width| width.parse().unwrap())
            },
            seq: next().parse().unwrap(),
            mask: next(),
            dropout: next().parse().unwrap(),
            shared: next() == "gqa",
            trained: next() == "grad",
            events: words.map(|w| w.parse().unwrap()).collect(),
        }
    }
}

/// Makes [2, heads, seq, width] as a transposed view, whose gradient is kept in `sink`.
fn input(t: &Tape, row: &Row<'_>, [heads, width]: [u64; 2], sink: &Rc<RefCell<Vec<Tensor>>>) -> Tensor {
    let base = t.empty([2, row.seq, heads, width], row.dtype, "input");
    let leaf = t.require_grad(&base);
    let source = if row.trained { leaf } else { base };
    let rec = t.record("Keep", &[&source]);
    let out = source.alias(source.shape().swapped(1, 2), source.strides().swapped(1, 2));
    let sink = sink.clone();
    rec.finish(t, out, move |_, b| {
        sink.borrow_mut().push(b.grad().clone());
        smallvec![None]
    })
}

/// Makes a loss whose gradient with respect to `out` has the layout of the queries, and is kept.
fn loss(t: &Tape, out: &Tensor, sink: &Rc<RefCell<Vec<Tensor>>>) -> Tensor {
    let rec = t.record("Loss", &[out]);
    let [b, h, s, d] = [out.size(0), out.size(1), out.size(2), out.size(3)];
    let (dtype, sink) = (out.dtype(), sink.clone());
    rec.finish(t, t.empty([], DType::F32, "loss"), move |t, _| {
        let g = t.transpose(&t.empty([b, s, h, d], dtype, "gradient"), 1, 2);
        sink.borrow_mut().push(g.clone());
        smallvec![Some(g)]
    })
}

/// Bytes that the tape allocates and frees for that call.
fn simulated(row: &Row<'_>) -> Vec<i64> {
    let gpu = Gpu {
        capability: if row.cudnn { (9, 0) } else { (8, 0) },
        ..Gpu::H200
    };
    let t = Tape::new(gpu);
    t.as_kind(Kind::Temporary, || {
        drop(t.mm(&t.empty([8, 8], DType::F32, "a"), &t.empty([8, 8], DType::F32, "b")))
    });
    let sink = Rc::new(RefCell::new(Vec::new()));
    let kv_heads = if row.shared { 2 } else { 8 };
    let [width, of_values] = row.widths;
    let shapes = [[8, width], [kv_heads, width], [kv_heads, of_values]];
    let [q, k, v] = shapes.map(|shape| input(&t, row, shape, &sink));
    let square = [2, 1, row.seq, row.seq];
    let mask = match row.mask {
        "bool" => Some(Mask::Bool(t.empty(square, DType::Bool, "mask"))),
        "float" => Some(Mask::Bias(t.empty(square, row.dtype, "mask"))),
        _ => None,
    };
    let start = t.mark();
    let out = t.sdpa(&SdpaInputs {
        q: &q,
        k: &k,
        v: &v,
        mask: mask.as_ref(),
        dropout: row.dropout,
        enable_gqa: row.shared,
    });
    let forward = t.mark();
    if row.trained {
        let loss = loss(&t, &out, &sink);
        t.backward(&loss);
        drop(loss);
    }
    let end = t.mark();
    drop((q, k, v, mask, out, sink));
    let log = t.finish();
    let of_loss = log.events[forward..end].iter().take(3).map(|e| e.storage());
    let of_loss: Vec<_> = of_loss.collect();
    let counts = |e: &&Event| {
        let id = e.storage();
        log.allocations[id as usize].kind != Kind::Workspace && !of_loss.contains(&id)
    };
    let signed = |e: &Event| {
        let bytes = log.allocations[e.storage() as usize].bytes as i64;
        if e.is_alloc() { bytes } else { -bytes }
    };
    log.events[start..end].iter().filter(counts).map(signed).collect()
}

/// Sorts frees between two allocations, which have no order.
fn canonical(events: &[i64]) -> Vec<i64> {
    let mut out = events.to_vec();
    out.chunk_by_mut(|a, b| *a < 0 && *b < 0)
        .for_each(<[i64]>::sort_unstable);
    out
}

#[test]
fn calls_allocate_what_was_recorded() {
    for line in include_str!("recorded_calls.txt").lines() {
        let row = Row::read(line);
        let label = line.split(" + ").next().unwrap_or(line);
        assert_eq!(canonical(&simulated(&row)), canonical(&row.events), "{label}");
    }
}

/// Bytes that one call in bf16, forward and backward, allocates; inputs are [1, 4, 300, 64], as views of projections.
fn bytes_of(attend: impl FnOnce(&Tape, [&Tensor; 3]) -> Tensor) -> Vec<u64> {
    let t = Tape::new(Gpu::H200);
    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let projected = t.parameter([1, 300, 4, 64], DType::Bf16, name);
        t.transpose(&projected, 1, 2)
    });
    let start = t.mark();
    let out = attend(&t, [&q, &k, &v]);
    t.backward(&out);
    drop((q, k, v, out));
    let log = t.finish();
    let allocations = log.events[start..].iter().filter(|e| e.is_alloc());
    allocations
        .map(|e| log.allocations[e.storage() as usize].bytes)
        .collect()
}

#[test]
fn the_package_calls_the_kernels_that_pytorch_ships() {
    let call = |t: &Tape, [q, k, v]: [&Tensor; 3], of_package: bool| {
        let call = SdpaInputs {
            q,
            k,
            v,
            mask: None,
            dropout: 0.0,
            enable_gqa: false,
        };
        if of_package {
            t.flash_attention(&call)
        } else {
            t.flash_sdpa(&call)
        }
    };
    let package = bytes_of(|t, qkv| call(t, qkv, true));
    let mut pytorch = bytes_of(|t, qkv| call(t, qkv, false));
    let unused = pytorch.iter().position(|b| *b == 8).unwrap();
    pytorch.remove(unused);
    assert_eq!(package, pytorch);
}

#[test]
fn each_segment_gets_rows_of_its_own_in_what_backward_sums() {
    let sums = |segments| bytes_of(|t, qkv| t.flash_attention_of_segments(qkv, segments));
    let (one, three) = (sums(1), sums(3));
    let grown: Vec<u64> = one.iter().zip(&three).map(|(a, b)| b - a).filter(|d| *d > 0).collect();
    assert_eq!(grown, [2 * 128 * 4 * 4, 2 * 128 * 4 * 64 * 4]);
}

#[test]
fn flash_attention_fails_in_fp32() {
    let t = Tape::new(Gpu::H200);
    let x = t.empty([1, 4, 300, 64], DType::F32, "x");
    t.flash_attention_of_segments([&x, &x, &x], 1);
    assert!(t.failure() == Some(Failure::FlashInFp32));
}
