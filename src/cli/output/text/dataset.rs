//! Formats what a dataset says of a run.

use vramscope_engine::format::{gib, grouped};

use super::paint::{QUIET, STRONG};
use crate::output::dataset::{Counted, MicroBatch, OfData};

/// Formats samples, their positions, and the micro-batches that decide.
pub fn render(data: &OfData) -> String {
    let mut rows = vec![
        ("samples", samples(data)),
        ("positions", positions(data)),
        ("tokens", counted(data.tokens).to_owned()),
    ];
    rows.push(("typical micro-batch", micro_batch(&data.typical)));
    rows.push((
        "longest micro-batch",
        format!("{}, of which the figures are", micro_batch(&data.longest)),
    ));
    if let Some(fits) = data.fits {
        let share = format!("{:.1}% of the samples", 100.0 * fits.share);
        rows.push((
            "fits",
            match fits.share > 0.0 {
                true => format!("{share}: those of at most {} positions", grouped(fits.positions)),
                false => "none of the samples".to_owned(),
            },
        ));
    }
    let rows = rows
        .into_iter()
        .map(|(name, value)| format!("  {QUIET}{name:<21}{QUIET:#}{value}\n"));
    format!("{STRONG}Data{STRONG:#}  {}\n{}\n", data.file, rows.collect::<String>())
}

fn samples(data: &OfData) -> String {
    let read = grouped(data.samples as u64);
    match data.unread {
        0 => read,
        unread => format!("{read}, and {} that cannot be read", grouped(unread)),
    }
}

fn positions(data: &OfData) -> String {
    let of = &data.positions;
    let [p50, p95, p99, most] = [of.p50, of.p95, of.p99, of.most].map(grouped);
    let cut = data
        .limit
        .map_or_else(String::new, |limit| format!("; cut to {}", grouped(limit)));
    format!("at most {p50} in half of them, {p95} in 95%, {p99} in 99%, {most} in all{cut}")
}

const fn counted(by: Counted) -> &'static str {
    match by {
        Counted::File => "as the file counts them",
        Counted::Tokenizer => "counted by the model's tokenizer, with room for its chat template",
        Counted::Bytes => {
            "at most one a byte; a tokenizer.json beside the model's config.json, or --tokenizer, counts them"
        }
    }
}

fn micro_batch(of: &MicroBatch) -> String {
    let images = match of.images {
        0 => String::new(),
        1 => ", 1 image".to_owned(),
        images => format!(", {images} images"),
    };
    format!(
        "{} allocated, {} reserved ({} positions{images})",
        gib(of.peak_allocated),
        gib(of.peak_reserved),
        grouped(of.positions)
    )
}
