//! Derives smaller samples (fewer pixels, images or frames) if the person allows them.

use super::space::{Entry, Input};
use crate::Axis;
use vramscope_engine::model::ModelError;
use vramscope_engine::{Model, Setup};

/// Scales of an image's side as fractions, each with its distance: a ranking, as in [`distance`](super::distance).
const SCALES: [([u64; 2], u32); 2] = [([3, 4], 1), ([1, 2], 3)];

/// Returns the asked sample, and each smaller one that the `allowed` settings permit. Positions of removed image tokens
/// are removed too; the text keeps its length.
///
/// `model` builds the model of a setup, since in some families image sizes and frames belong to the model.
///
/// # Errors
/// If the asked setup has no model.
pub fn inputs(
    model: impl Fn(&Setup) -> Result<Model, ModelError>,
    asked: &Setup,
    allowed: &[Entry],
) -> Result<Vec<Input>, ModelError> {
    let asked = &with_one_size(asked);
    let first = Input {
        model: model(asked)?,
        setup: asked.clone(),
        distance: 0,
    };
    let mut all = vec![first];
    for entry in [Entry::Resolution, Entry::Images, Entry::Frames] {
        if !allowed.contains(&entry) {
            continue;
        }
        let smaller: Vec<Input> = all
            .iter()
            .flat_map(|input| smaller(entry, input))
            .filter_map(|(setup, distance)| {
                let model = model(&setup).ok()?;
                let setup = with_text_of(asked, &all[0].model, setup, &model);
                Some(Input { model, setup, distance })
            })
            .collect();
        all.extend(smaller);
    }
    Ok(all)
}

/// Expands a single given image size to all images of a sample.
fn with_one_size(asked: &Setup) -> Setup {
    let mut setup = asked.clone();
    if let [size] = setup.image_sizes[..] {
        setup.image_sizes = vec![size; setup.images.max(1) as usize];
    }
    setup
}

/// Returns true if a sample is at most as large as another one in every respect.
pub(super) fn is_within(small: &Setup, large: &Setup) -> bool {
    let sides = |a: &[u64; 2], b: &[u64; 2]| a[0] <= b[0] && a[1] <= b[1];
    let sizes = &small.image_sizes;
    small.seq <= large.seq
        && small.images <= large.images
        && small.image <= large.image
        && small.frames <= large.frames
        && small.grid.zip(large.grid).is_none_or(|(a, b)| sides(&a, &b))
        && small.grid.is_some() == large.grid.is_some()
        && sizes.len() <= large.image_sizes.len()
        && sizes.is_empty() == large.image_sizes.is_empty()
        && sizes.iter().zip(&large.image_sizes).all(|(a, b)| sides(a, b))
}

fn smaller(entry: Entry, input: &Input) -> Vec<(Setup, u32)> {
    let Input { model, setup, distance } = input;
    match entry {
        Entry::Resolution => SCALES
            .iter()
            .filter_map(|&(scale, far)| Some((scaled(model, setup, scale)?, distance + far)))
            .collect(),
        Entry::Images => halves(count(model, setup))
            .map(|(images, far)| (with_images(setup, images), distance + 3 * far))
            .collect(),
        Entry::Frames if Axis::FRAMES.is_of(model) => halves(Axis::FRAMES.value(model, setup))
            .filter(|(frames, _)| frames.is_multiple_of(Axis::FRAMES.unit(model)))
            .map(|(frames, far)| (Axis::FRAMES.set(setup, frames), distance + 2 * far))
            .collect(),
        _ => Vec::new(),
    }
}

/// Repeated halves of a count down to one, with the number of halvings.
fn halves(count: u64) -> impl Iterator<Item = (u64, u32)> {
    let next = |&(n, times): &(u64, u32)| (n > 1).then_some((n / 2, times + 1));
    std::iter::successors(Some((count, 0)), next).skip(1)
}

fn count(model: &Model, setup: &Setup) -> u64 {
    if !Axis::IMAGES.is_of(model) {
        return 1;
    }
    match setup.image_sizes.len() {
        0 => setup.images,
        sizes => sizes as u64,
    }
}

fn with_images(setup: &Setup, images: u64) -> Setup {
    let mut setup = setup.clone();
    setup.images = images;
    setup.image_sizes.truncate(images as usize);
    setup
}

fn scaled(model: &Model, setup: &Setup, [part, whole]: [u64; 2]) -> Option<Setup> {
    let mut smaller = setup.clone();
    let unit = Axis::IMAGE.unit(model).max(1);
    let down = |side: u64, unit: u64| (side * part / whole / unit).max(1) * unit;
    if !setup.image_sizes.is_empty() {
        for size in &mut smaller.image_sizes {
            *size = size.map(|side| down(side, 1));
        }
    } else if let Some(grid) = setup.grid {
        smaller.grid = Some(grid.map(|side| down(side, 2)));
    } else if Axis::IMAGE.is_of(model) {
        smaller.image = Some(down(Axis::IMAGE.value(model, setup), unit));
    }
    (smaller != *setup).then_some(smaller)
}

/// Shortens the sequence by the positions that the smaller images no longer need.
fn with_text_of(asked: &Setup, first: &Model, mut setup: Setup, model: &Model) -> Setup {
    if setup.lengths.is_empty() {
        let less = first.image_tokens(asked).saturating_sub(model.image_tokens(&setup));
        setup.seq = asked.seq.saturating_sub(less);
    }
    setup
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_pixels_leave_the_text_as_long_as_it_is() {
        let asked = Setup {
            seq: 3000,
            image_sizes: vec![[720, 1280]; 2],
            ..Setup::default()
        };
        let model = |_: &Setup| Model::from_catalogue("qwen2.5-vl-7b");
        let all = inputs(model, &asked, &[Entry::Resolution, Entry::Images]).unwrap();
        assert_eq!(all.len(), 6);
        let text = |input: &Input| input.setup.seq - input.model.image_tokens(&input.setup);
        assert!(all.iter().all(|input| text(input) == text(&all[0])));
        assert!(
            all[1..]
                .iter()
                .all(|input| input.distance > 0 && input.setup.seq < 3000)
        );
        assert_eq!(inputs(model, &asked, &[]).unwrap().len(), 1);
    }

    #[test]
    fn frames_are_whole_tubelets() {
        let model = |setup: &Setup| {
            let text = format!(r#"{{"model":"videomae-base","frames":{}}}"#, setup.frames.unwrap_or(16));
            Model::from_case(&vramscope_engine::Case::from_json(&text).unwrap().unwrap())
        };
        let all = inputs(model, &Setup::default(), &[Entry::Frames]).unwrap();
        let frames: Vec<_> = all.iter().map(|input| input.setup.frames).collect();
        assert_eq!(frames, [None, Some(8), Some(4), Some(2)]);
    }
}
