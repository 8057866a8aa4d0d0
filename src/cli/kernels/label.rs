//! One line that names a kernel, for people and for choosing kernels by words.

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{Class, Kernel, Layout};
use vramscope_engine::units::Bytes;

/// Such as `gemm bf16 8192x8192x8192 nt` or `attention cudnn bf16 1x32x8192x128 causal forward`.
pub fn label(kernel: &Kernel) -> String {
    let shape = &kernel.shape;
    let mut words = vec![kernel.class.name().to_owned()];
    words.extend(kernel.algorithm.map(|a| algorithm(kernel, a)));
    words.extend(kernel.precision.map(|p| p.name().to_owned()));
    let extents = match kernel.class {
        Class::Gemm => joined(&[shape.m, shape.n, shape.k]),
        Class::Attention => joined(&[shape.batch, shape.heads, shape.length, shape.head_dim]),
        _ => joined(&[shape.rows, shape.columns, shape.elements]),
    };
    words.extend(Some(extents).filter(|text| !text.is_empty()));
    words.extend(shape.bytes.map(|n| Bytes::new(n).to_string().replace(' ', "")));
    words.extend(shape.devices.map(|n| format!("{n} cards")));
    words.extend(kernel.layout.map(|layout| {
        let name = match layout {
            Layout::Nn => "nn",
            Layout::Nt => "nt",
            Layout::Tn => "tn",
        };
        name.to_owned()
    }));
    words.extend(
        kernel
            .pinned
            .map(|pinned| if pinned { "pinned" } else { "pageable" }.to_owned()),
    );
    words.extend(kernel.causal.filter(|c| *c).map(|_| "causal".to_owned()));
    words.extend(kernel.pass.map(|pass| pass.name().to_owned()));
    words.join(" ")
}

fn algorithm(kernel: &Kernel, algorithm: Algorithm) -> String {
    let shape = &kernel.shape;
    let number = match algorithm {
        Algorithm::Sliding => shape.window,
        Algorithm::TopK => shape.kept_percent,
        Algorithm::Chunked => shape.chunk,
        _ => None,
    };
    format!(
        "{}{}",
        algorithm.name(),
        number.map_or_else(String::new, |n| n.to_string())
    )
}

fn joined(extents: &[Option<u64>]) -> String {
    let stated: Vec<String> = extents.iter().flatten().map(u64::to_string).collect();
    stated.join("x")
}
