//! Layout of text and image tokens in a sample.

use super::patches::QwenPatches;
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
pub enum Span {
    /// This many text tokens.
    Text(u64),
    /// The tokens of one image.
    Image(Grid),
}

/// A batch of samples, each with its images, every one between a start and an end token, then text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Samples.
    pub batch: u64,
    /// Positions of a row.
    pub seq: u64,
    /// Patches along each side of the square that becomes one token.
    pub merge: u64,
    /// Positions of each sample, if they differ.
    lengths: Vec<u64>,
    /// Images of each sample.
    counts: Vec<usize>,
    all: Vec<Grid>,
}

impl Layout {
    /// Makes the layout of a setup.
    pub fn of(setup: &Setup, patches: &QwenPatches) -> Self {
        let grid = |[rows, columns]: [u64; 2]| Grid {
            frames: 1,
            rows,
            columns,
        };
        let given: Vec<Grid> = patches.grids(setup).into_iter().map(grid).collect();
        let counts = match setup.image_counts.as_slice() {
            [] => vec![given.len(); setup.batch as usize],
            counts => counts.iter().map(|count| *count as usize).collect(),
        };
        Self {
            batch: setup.batch,
            seq: setup.seq,
            merge: patches.merge,
            lengths: setup.lengths.clone(),
            counts,
            all: setup.of_all_samples(given),
        }
    }

    /// Positions of a sample that are not padding.
    pub fn positions_of(&self, i: u64) -> u64 {
        self.lengths.get(i as usize).copied().unwrap_or(self.seq)
    }

    /// Returns the layout once patches are merged, with the sides of all images `by` times shorter.
    pub fn reduced(&self, by: u64) -> Self {
        let image = |image: &Grid| Grid {
            rows: image.rows / by,
            columns: image.columns / by,
            ..*image
        };
        Self {
            all: self.all.iter().map(image).collect(),
            ..self.clone()
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

    /// The images of a sample.
    pub fn images_of(&self, i: u64) -> &[Grid] {
        let i = i as usize;
        let before: usize = self.counts[..i].iter().sum();
        &self.all[before..][..self.counts[i]]
    }

    /// Runs of positions of a sample: a start token, an image, an end token, and so on; the rest is text.
    pub fn sample(&self, i: u64) -> Vec<Span> {
        let images = self.images_of(i);
        let mut runs = vec![Span::Text(1)];
        let mut used = 1;
        for (n, image) in images.iter().enumerate() {
            let last = n + 1 == images.len();
            used += self.tokens_of(image) + 1;
            runs.push(Span::Image(*image));
            runs.push(Span::Text(if last {
                1 + self.positions_of(i).saturating_sub(used)
            } else {
                2
            }));
            used += 1;
        }
        runs
    }
}
