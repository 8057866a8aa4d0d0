//! Replays recordings, in a lazily loaded chunk of the program.

#[cfg(target_arch = "wasm32")]
mod inflate;

use vramscope_engine::device::Device;
use vramscope_engine::recording::{self, About, Played};
use vramscope_engine::report::outside;
use vramscope_engine::units::Bytes;

use super::coded::Coded;
use super::export::pretty;
use super::protocol::Answer;
#[cfg(target_arch = "wasm32")]
use super::recorded::MOST_UNPACKED;
use super::recorded::{Facts, Fault, RecordedRun, Unpacked};
use super::run::Ran;
use super::slices::Kept;
use super::view::{Card, Inputs, Run};
use crate::state::{Draft, Key, Reading};

/// Unpacks a file to the lines of a recording.
#[cfg(target_arch = "wasm32")]
pub type Unpack = fn(std::rc::Rc<Vec<u8>>) -> std::pin::Pin<Box<dyn Future<Output = Unpacked>>>;

/// Answers a question about a recording, and returns the run to keep.
pub type Play = fn(u32, &Unpacked, &Draft, bool) -> (Answer, Option<Kept>);

/// Functions that replay recordings.
#[derive(Debug, Clone, Copy)]
pub struct Recorder {
    /// Unpacks a file to the lines of a recording.
    #[cfg(target_arch = "wasm32")]
    pub unpack: Unpack,
    /// Replays a recording for a card and an allocator.
    pub play: Play,
    /// Formats the memory of a run as the command line's `--format json` does.
    pub json: fn(&Kept) -> Option<Answer>,
}

/// Returns the functions of this chunk.
pub fn recorder() -> Recorder {
    Recorder {
        #[cfg(target_arch = "wasm32")]
        unpack: |packed| Box::pin(inflate::unpack(packed)),
        play,
        json,
    }
}

fn play(id: u32, unpacked: &Unpacked, entries: &Draft, first: bool) -> (Answer, Option<Kept>) {
    let done = unpacked.as_ref().map_err(Clone::clone);
    match done.and_then(|lines| run(id, lines, entries, first)) {
        Ok((run, kept)) => (Answer::Recorded(Coded::of(&Ok(run))), Some(kept)),
        Err(fault) => (Answer::Recorded(Coded::of(&Err(fault))), None),
    }
}

fn run(id: u32, lines: &[u8], entries: &Draft, first: bool) -> Result<(RecordedRun, Kept), Fault> {
    let reading = Reading::of(entries, &Draft::default());
    let named = Device::by_name(&reading.gpu);
    let gpu = named.as_ref().ok().map(|device| device.gpu().unwrap_or_default());
    let (read, own) = match recording::read(lines, gpu) {
        Err(recording::RecordingError::OtherCard { .. }) if first => (recording::read(lines, None)?, true),
        read => (read?, false),
    };
    let recorded_segments = read.expandable_segments();
    let read = match reading.good.get(Key::ExpandableSegments) {
        "true" => read.with_expandable_segments(true),
        "false" => read.with_expandable_segments(false),
        _ => read,
    };
    let Played { about, report, asked } = recording::report(read)?;
    let known = Device::by_name(&about.header.gpu.name).ok();
    let device = match known {
        Some(known) if own => Ok(known),
        _ => named.map_err(|error| error.to_string()),
    };
    let card = device.map(|device| Card::of(device, reading.limit, &report, about.header.world));
    let ran = Ran { report, pass: None };
    let inputs = Inputs {
        positions: None,
        image_tokens: None,
        logits: None,
    };
    let run = Run::of(id, &ran, inputs, card.clone());
    let facts = facts(&about, known, recorded_segments);
    let kept = Kept {
        id,
        subject: None,
        recorded: Some(Box::new((about, asked))),
        ran,
        card: card.ok(),
    };
    Ok((RecordedRun { run, facts }, kept))
}

fn facts(about: &About, known: Option<&Device>, expandable_segments: bool) -> Facts {
    let header = &about.header;
    let version = |(name, version): (&String, &String)| (name.clone(), version.clone());
    Facts {
        model: about.model.clone(),
        card: header.gpu.name.clone(),
        capability: header.gpu.capability,
        known_card: known.map(|device| device.name.clone()),
        steps: about.steps,
        operations: about.operations,
        versions: header.versions.iter().map(version).collect(),
        command: header.command.as_ref().map(|words| words.join(" ")).unwrap_or_default(),
        rank: [header.rank, header.world],
        expandable_segments,
    }
}

fn json(kept: &Kept) -> Option<Answer> {
    let (about, asked) = (**kept.recorded.as_ref()?).clone();
    let played = Played {
        about,
        report: kept.ran.report.clone(),
        asked,
    };
    let device = kept.card.as_ref().and_then(|card| Device::by_name(&card.name).ok());
    let target = kept.card.as_ref().map(|card| (&*card.name, &card.fit));
    let answer = played.answer(target, device.map_or(Bytes::ZERO, outside::total));
    Some(Answer::File(pretty(&answer)))
}
