//! Which positions of a sample are text and which are image tokens.

use crate::model::config::QwenPatches;
use crate::setup::Setup;

/// Patches of one image: frames, rows, columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Groups of frames (`temporal_patch_size` each); 1 for an image.
    pub frames: u64,
    /// Patches from top to bottom.
    pub rows: u64,
    /// Patches from left to right.
    pub columns: u64,
}

impl Grid {
    /// Patches.
    pub fn patches(&self) -> u64 {
        self.frames * self.rows * self.columns
    }
}

/// A run of positions of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// So many text tokens.
    Text(u64),
    /// The tokens of one image.
    Image(Grid),
}

/// A batch of samples that are alike: each image between a start and an end token, then text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Samples.
    pub batch: u64,
    /// Positions of a sample.
    pub seq: u64,
    /// Patches a side that become one token.
    pub merge: u64,
    per_sample: u64,
    all: Vec<Grid>,
}

impl Layout {
    /// The layout of a setup.
    pub fn of(setup: &Setup, patches: &QwenPatches) -> Self {
        let [rows, columns] = patches.grid(setup);
        let grid = Grid {
            frames: 1,
            rows,
            columns,
        };
        Self {
            batch: setup.batch,
            seq: setup.seq,
            merge: patches.merge,
            per_sample: setup.images,
            all: vec![grid; (setup.batch * setup.images) as usize],
        }
    }

    /// The images of all samples.
    pub fn images(&self) -> &[Grid] {
        &self.all
    }

    /// Patches of all images.
    pub fn patches(&self) -> u64 {
        self.all.iter().map(Grid::patches).sum()
    }

    /// Tokens of one image.
    pub fn tokens_of(&self, image: &Grid) -> u64 {
        image.patches() / (self.merge * self.merge)
    }

    /// Runs of positions of each sample: a start token, an image, an end token, and so on; what is
    /// left is text.
    pub fn sample(&self, i: u64) -> Vec<Run> {
        let images = &self.all[(i * self.per_sample) as usize..][..self.per_sample as usize];
        let mut runs = vec![Run::Text(1)];
        let mut used = 1;
        for (n, image) in images.iter().enumerate() {
            let last = n + 1 == images.len();
            used += self.tokens_of(image) + 1;
            runs.push(Run::Image(*image));
            runs.push(Run::Text(if last { 1 + self.seq.saturating_sub(used) } else { 2 }));
            used += 1;
        }
        runs
    }
}
