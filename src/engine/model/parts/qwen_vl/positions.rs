//! Positions of time, height and width for every token (`get_rope_index`).

use super::layout::{Grid, Layout, Span};
use crate::dtype::DType;
use crate::nn::{AXES, ids};
use crate::tape::{Tape, Tensor};

/// `get_rope_index`: position ids [3, batch, seq], and the difference between each sample's last position and its
/// length, [batch, 1].
pub fn rope_index(t: &Tape, layout: &Layout) -> (Tensor, Tensor) {
    let position_ids = ids(t, &[AXES, layout.batch, layout.seq], "position ids");
    let mut deltas = Vec::with_capacity(layout.batch as usize);
    let mut sample = Sample::default();
    for i in 0..layout.batch {
        sample.selected = None;
        sample.walk(t, layout, i);
        let highest = ids(t, &[], "max");
        let next = ids(t, &[], "add a number");
        drop(highest);
        deltas.push(ids(t, &[], "sub a number"));
        drop(next);
    }
    let deltas = {
        let stacked = ids(t, &[layout.batch, 1], "rope_deltas");
        drop(deltas);
        stacked
    };
    (position_ids, deltas)
}

/// Variables of the loop over samples, which outlive its iterations.
#[derive(Default)]
struct Sample {
    /// Ids and token types without padding.
    selected: Option<[Tensor; 2]>,
    parts: Vec<Tensor>,
    current: Option<Tensor>,
    image: Option<Tensor>,
    positions: Option<Tensor>,
}

impl Sample {
    fn walk(&mut self, t: &Tape, layout: &Layout, i: u64) {
        let select = |dtype| {
            let padding = t.empty([layout.seq], DType::Bool, "padding mask");
            t.index_ids(&padding, layout.positions_of(i), dtype)
        };
        self.selected = Some([select(DType::I64), select(DType::I32)]);
        self.current = None;
        self.parts.clear();
        for run in layout.sample(i) {
            match run {
                Span::Text(n) => self.parts.push(text_positions(t, n)),
                Span::Image(grid) => self.image(t, &grid, layout.merge),
            }
        }
        let positions = layout.positions_of(i);
        self.positions = Some(ids(t, &[AXES, positions], "positions of a sample"));
        let padding = t.empty([layout.seq], DType::Bool, "padding mask");
        drop(t.nonzero(&padding, positions));
    }

    fn image(&mut self, t: &Tape, grid: &Grid, merge: u64) {
        let image = image_positions(t, grid, merge);
        self.image = Some(image.clone());
        self.parts.push(image);
        drop(t.empty([], DType::Bool, "comparison"));
        let side = ids(t, &[], "floor_divide");
        // A Python number becomes a tensor with the first image, which is then added to in place.
        self.current.get_or_insert_with(|| ids(t, &[], "add"));
        drop(side);
    }
}

fn text_positions(t: &Tape, n: u64) -> Tensor {
    let arange = ids(t, &[n], "arange");
    let shifted = ids(t, &[AXES, n], "positions of text");
    drop(arange);
    shifted
}

/// `get_vision_position_ids` of the whole model: [3, tokens].
fn image_positions(t: &Tape, grid: &Grid, merge: u64) -> Tensor {
    let [frames, rows, columns] = [grid.frames, grid.rows / merge, grid.columns / merge];
    let axis = |n| {
        let arange = ids(t, &[n], "arange");
        let moved = t.compute(&arange, DType::I64, "positions of an axis");
        drop(arange);
        moved
    };
    let axes = [axis(frames), axis(rows), axis(columns)];
    let stacked = ids(t, &[AXES, frames * rows * columns], "positions of an image");
    drop(axes);
    stacked
}
