//! MiniCPM-V 4.6's merger (`transformers/models/minicpmv4_6/modeling_minicpmv4_6.py`).

use super::config::MiniCpmV46Config;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::parts::qwen_vl::Layout;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Tape, Tensor};

/// Patches along each side of the square that becomes one.
const SIDE: u64 = 2;

/// `MiniCPMV4_6Merger`: rounds of joining squares of patches.
pub struct Merger {
    mlp: Vec<DownsampleMlp>,
}

/// `MiniCPMV4_6DownsampleMLP`.
struct DownsampleMlp {
    pre_norm: LayerNorm,
    linear_1: Linear,
    linear_2: Linear,
}

/// Variables of the loop over images that are numbers on the GPU, in the type of the images' sizes; each holds its value
/// until it gets the next.
struct Numbers<'a> {
    t: &'a Tape,
    dtype: DType,
    patches: Option<Tensor>,
    start: Option<Tensor>,
    size: [Option<Tensor>; 2],
    merged: [Option<Tensor>; 2],
}

impl Merger {
    pub fn new(b: &Builder, c: &MiniCpmV46Config) -> Self {
        let hidden = c.vision.tower.shape.hidden;
        let mlp = |i: u64| {
            let out = if i + 1 == c.rounds { c.text.hidden } else { hidden };
            b.tape()
                .layer("mlp", i as usize, || DownsampleMlp::new(b, SIDE * SIDE * hidden, out))
        };
        Self {
            mlp: (0..c.rounds).map(mlp).collect(),
        }
    }

    /// [1, patches, hidden] of images of these `sizes` → the tokens of each image.
    pub fn forward(&self, t: &Tape, features: &Tensor, layout: &Layout, sizes: &Tensor) -> Vec<Tensor> {
        let mut numbers = Numbers::new(t, sizes.dtype());
        let mut processed = Vec::with_capacity(layout.images().len());
        for image in layout.images() {
            let mut sides = [image.rows, image.columns];
            numbers.begin();
            let whole = t.select(features, 0);
            let end = numbers.number("add");
            let part = t.slice(&whole, 0, sides[0] * sides[1]);
            drop(end);
            let mut h = {
                let joined = joined(t, &part, sides, &mut numbers);
                drop((part, whole));
                t.layer("mlp", 0, || self.mlp[0].forward(t, joined))
            };
            for (i, mlp) in self.mlp.iter().enumerate().skip(1) {
                numbers.next_round();
                sides = sides.map(|n| n / SIDE);
                h = joined(t, &h, sides, &mut numbers);
                h = t.layer("mlp", i, || mlp.forward(t, h));
            }
            numbers.advance();
            processed.push(h);
        }
        processed
    }
}

/// Joins squares of patches [rows × columns, width].
fn joined(t: &Tape, x: &Tensor, [rows, columns]: [u64; 2], numbers: &mut Numbers<'_>) -> Tensor {
    let (width, [rows, columns]) = (x.last(), [rows / SIDE, columns / SIDE]);
    let squares = t.permute(&t.view(x, [rows, SIDE, columns, SIDE, width]), &[0, 2, 1, 3, 4]);
    let tokens = numbers.number("mul");
    let out = t.reshape(&squares, [rows * columns, SIDE * SIDE * width]);
    drop(tokens);
    out
}

impl<'a> Numbers<'a> {
    fn new(t: &'a Tape, dtype: DType) -> Self {
        Self {
            t,
            dtype,
            patches: None,
            start: None,
            size: [None, None],
            merged: [None, None],
        }
    }

    fn number(&self, name: &'static str) -> Tensor {
        self.t.empty([], self.dtype, name)
    }

    /// Sizes of an image, which are views, and the numbers of its patches and of its squares' rows and columns.
    fn begin(&mut self) {
        self.size = [None, None];
        self.patches = Some(self.number("mul"));
        self.halve_into_merged();
    }

    fn halve_into_merged(&mut self) {
        let [rows, columns] = [self.number("floor_divide"), self.number("floor_divide")];
        self.merged = [Some(rows), Some(columns)];
    }

    /// Checks that the sides are even, halves them, and the squares' again.
    fn next_round(&mut self) {
        for _ in 0..2 {
            let rest = self.number("remainder");
            let differs = self.t.empty([], DType::Bool, "comparison");
            drop((rest, differs));
        }
        for i in 0..2 {
            self.size[i] = Some(self.number("floor_divide"));
        }
        self.halve_into_merged();
    }

    /// `start += num_patches`: a number of Python's becomes a tensor with the first image, which is then added to in place.
    fn advance(&mut self) {
        if self.start.is_none() {
            self.start = Some(self.number("add"));
        }
    }
}

impl DownsampleMlp {
    fn new(b: &Builder, width: u64, out: u64) -> Self {
        Self {
            pre_norm: LayerNorm::new(b, "pre_norm", width),
            linear_1: Linear::new(b, "linear_1", width, width, true),
            linear_2: Linear::new(b, "linear_2", width, out, true),
        }
    }

    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let mut h = self.pre_norm.call(t, &x);
        h = self.linear_1.call(t, &h);
        h = nn::activate(t, Activation::Gelu, h);
        let out = self.linear_2.call(t, &h);
        drop(x);
        out
    }
}
