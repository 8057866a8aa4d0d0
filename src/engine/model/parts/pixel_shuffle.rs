//! Pixel shuffles: each square of `factor` × `factor` patches becomes one position of `factor`² times the width.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::tape::{Tape, Tensor};

/// `pixel_shuffle` of InternVL and Llama 4, which makes both results contiguous:
/// [images, rows, columns, width] → [images, rows ÷ factor, columns ÷ factor, factor² × width].
pub(crate) fn pixel_shuffle(t: &Tape, x: &Tensor, factor: u64) -> Tensor {
    let [images, rows, columns, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    let mut h = t.view(x, [images, rows, columns / factor, width * factor]);
    h = t.contiguous(&t.permute(&h, &[0, 2, 1, 3]));
    h = t.view(&h, [images, columns / factor, rows / factor, width * factor * factor]);
    t.contiguous(&t.permute(&h, &[0, 2, 1, 3]))
}

/// `pixel_shuffle` of Aya Vision and `pixel_unshuffle` of LFM2-VL, which copy only where a reshape has to:
/// [images, rows, columns, width] → [images, rows ÷ factor, columns ÷ factor, factor² × width].
pub(crate) fn pixel_shuffle_by_reshapes(t: &Tape, x: &Tensor, factor: u64) -> Tensor {
    let [images, rows, columns, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    let mut h = t.reshape(x, [images, rows, columns / factor, width * factor]);
    h = t.permute(&h, &[0, 2, 1, 3]);
    h = t.reshape(&h, [images, columns / factor, rows / factor, width * factor * factor]);
    t.permute(&h, &[0, 2, 1, 3])
}

/// Reads the factor of a pixel shuffle under `key`, which holds 1 ÷ factor; 2 if absent.
pub(crate) fn read_inverse_factor(s: &Section, key: &str) -> Result<u64, ModelError> {
    let ratio = s.optional_number(key)?.unwrap_or(0.5);
    let whole = (1..=limits::SHUFFLE).find(|n| (ratio * f64::from(*n) - 1.0).abs() < 1e-9);
    match (whole, s.value(key)) {
        (Some(n), _) => Ok(u64::from(n)),
        (None, Some(value)) => Err(s.wrong(key, value, &format!("one of 1, 0.5, 0.25, … 1 ÷ {}", limits::SHUFFLE))),
        (None, None) => Ok(2),
    }
}
