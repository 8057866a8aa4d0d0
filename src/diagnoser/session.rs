//! Files, one after another, and what they mean together.

use serde::Serialize;
use vramscope_engine::diagnose::snapshot::Category;
use vramscope_engine::diagnose::words::{self, Said};
use vramscope_engine::diagnose::{Context, Evidence, Finding, Piece, Standing, diagnose, read};
use vramscope_engine::units::Bytes;

/// What was read so far.
#[derive(Debug, Default)]
pub struct Session {
    files: Vec<(String, Result<Vec<Piece>, String>)>,
}

/// What the page shows.
#[derive(Serialize)]
struct Answer<'a> {
    /// Name, line and kind of each piece.
    read: Vec<(&'a str, usize, &'static str)>,
    /// Name and why nothing of it was understood.
    refused: Vec<(&'a str, &'a str)>,
    findings: Vec<Told>,
    recordings: Vec<Recording<'a>>,
}

#[derive(Serialize)]
struct Told {
    code: &'static str,
    standing: Standing,
    row: &'static str,
    title: Said,
    numbers: Vec<Said>,
    next: Vec<Said>,
    gauge: Option<(Bytes, Bytes)>,
}

/// The curve of a snapshot.
#[derive(Serialize)]
struct Recording<'a> {
    device: u32,
    events: u32,
    peak: Bytes,
    /// In the order in which they are stacked.
    categories: [Category; Category::ALL.len()],
    columns: &'a [[Bytes; Category::ALL.len()]],
}

impl Session {
    /// Takes in a file, unpacked.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        let pieces = read(bytes).map_err(|refusal| refusal.to_string());
        self.files.push((name.to_string(), pieces));
    }

    /// What all files together mean, as JSON.
    pub fn answer(&self) -> String {
        let understood = self
            .files
            .iter()
            .filter_map(|(name, pieces)| Some((name, pieces.as_ref().ok()?)));
        let all: Vec<(&str, &Piece)> = understood
            .flat_map(|(name, pieces)| pieces.iter().map(move |piece| (name.as_str(), piece)))
            .collect();
        let pieces: Vec<Piece> = all.iter().map(|(_, piece)| (*piece).clone()).collect();
        let recordings = all.iter().filter_map(|(_, piece)| match &piece.evidence {
            Evidence::Snapshot(summary) => Some(Recording {
                device: summary.device,
                events: summary.events,
                peak: summary.peak,
                categories: Category::ALL,
                columns: &summary.columns,
            }),
            _ => None,
        });
        let refused = self.files.iter().filter_map(|(name, pieces)| {
            let refusal = pieces.as_ref().err()?;
            Some((name.as_str(), refusal.as_str()))
        });
        let answer = Answer {
            read: all
                .iter()
                .map(|(name, piece)| (*name, piece.line, piece.evidence.name()))
                .collect(),
            refused: refused.collect(),
            findings: diagnose(&pieces, &Context::default()).iter().map(Told::of).collect(),
            recordings: recordings.collect(),
        };
        // Plain data into a text: nothing can fail.
        serde_json::to_string(&answer).unwrap_or_default()
    }
}

impl Told {
    fn of(finding: &Finding) -> Self {
        let is_ruled_out = finding.standing == Standing::RuledOut;
        let steps = finding.steps.iter().filter(|_| !is_ruled_out);
        Self {
            code: finding.cause.code(),
            standing: finding.standing,
            row: finding.row(),
            title: words::title(&finding.cause, finding.standing),
            numbers: words::evidence(&finding.cause),
            next: steps.map(|step| words::step(*step)).collect(),
            gauge: finding.cause.gauge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_answered_together() {
        let mut session = Session::default();
        session.add("a.txt", b"CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)");
        session.add("b.txt", b"nothing");
        let answer: serde_json::Value = serde_json::from_str(&session.answer()).expect("JSON");
        assert_eq!(
            answer["read"][0],
            serde_json::json!(["a.txt", 1, "out-of-memory error"])
        );
        assert_eq!(answer["refused"][0][0], "b.txt");
        assert_eq!(answer["findings"][0]["code"], "out-of-capacity");
        assert_eq!(answer["findings"][0]["title"]["key"], "t_out_of_capacity");
    }

    /// The page's English is the command line's.
    #[test]
    fn both_faces_say_the_same_in_english() {
        let engine = include_str!("../engine/diagnose/finding/words/en.json");
        assert_eq!(engine, include_str!("../app/locales/en/finding.json"));
    }
}
