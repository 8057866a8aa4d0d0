//! Labels of kernels, for people and for selecting kernels by words.

use super::{Class, Direction, Kernel, Layout};
use vramscope_engine::attention::Algorithm;
use vramscope_engine::units::Bytes;

impl Kernel {
    /// Label of the kernel, such as `gemm bf16 8192x8192x8192 nt` or `attention cudnn bf16 1x32x8192x128 causal
    /// forward`: class, algorithm, type, stated extents, and anything else that distinguishes it.
    pub fn label(&self) -> String {
        let mut words = vec![self.class.name().to_owned()];
        words.extend(self.algorithm.map(|a| self.algorithm_label(a)));
        words.extend(self.precision.map(|p| p.name().to_owned()));
        words.extend(Some(self.extents_label()).filter(|text| !text.is_empty()));
        let rest = [
            self.direction.map(Direction::label),
            self.peer_access.map(|access| if access { "direct" } else { "staged" }),
            self.layout.map(Layout::label),
            self.pinned.map(|pinned| if pinned { "pinned" } else { "pageable" }),
            self.causal.filter(|c| *c).map(|_| "causal"),
            self.pass.map(|pass| pass.name()),
            self.frozen.filter(|f| *f).map(|_| "frozen"),
        ];
        words.extend(rest.into_iter().flatten().map(str::to_owned));
        words.join(" ")
    }

    /// Label of the extents alone, such as `8192x8192x8192` or `256.0MiB 2 cards`; empty if none is stated.
    pub fn extents_label(&self) -> String {
        let shape = &self.shape;
        let numbers = match self.class {
            Class::Gemm | Class::Convolution | Class::GroupedGemm => joined(&[shape.batch, shape.m, shape.n, shape.k]),
            Class::Attention => joined(&[shape.batch, shape.heads, shape.length, shape.head_dim]),
            Class::TransposeCopy => joined(&[shape.batch, shape.length, shape.heads, shape.head_dim]),
            _ => joined(&[shape.rows, shape.columns, shape.tensors, shape.elements]),
        };
        let mut words: Vec<String> = Some(numbers).filter(|text| !text.is_empty()).into_iter().collect();
        words.extend(shape.entries.map(|n| format!("of {n}")));
        words.extend(shape.bytes.map(|n| Bytes::new(n).to_string().replace(' ', "")));
        words.extend(shape.devices.map(|n| format!("{n} cards")));
        words.join(" ")
    }

    fn algorithm_label(&self, algorithm: Algorithm) -> String {
        let number = match algorithm {
            Algorithm::Sliding => self.shape.window,
            Algorithm::TopK => self.shape.kept_percent,
            Algorithm::Chunked => self.shape.chunk,
            _ => None,
        };
        format!(
            "{}{}",
            algorithm.name(),
            number.map_or_else(String::new, |n| n.to_string())
        )
    }
}

impl Direction {
    const fn label(self) -> &'static str {
        match self {
            Self::Forth => "forth",
            Self::Back => "back",
            Self::Both => "both",
        }
    }
}

impl Layout {
    const fn label(self) -> &'static str {
        match self {
            Self::Nn => "nn",
            Self::Nt => "nt",
            Self::Tn => "tn",
        }
    }
}

fn joined(extents: &[Option<u64>]) -> String {
    let stated: Vec<String> = extents.iter().flatten().map(u64::to_string).collect();
    stated.join("x")
}
