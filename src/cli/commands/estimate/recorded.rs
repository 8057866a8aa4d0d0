//! `vramscope estimate --recording`: replays a training script's own steps, recorded without a GPU.

use std::io::BufReader;

use vramscope_engine::device::Device;
use vramscope_engine::recording::{self, Played, Run};
use vramscope_engine::report::outside;
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;

use super::Estimate;
use super::batch::Line;
use crate::failure::Failure;
use crate::input::parallel_flags::ParallelFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::time_flags::TimeFlags;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};

impl Estimate {
    /// Replays a recording, and compares it with the named card, or else with the card it was recorded for.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run_recorded(self, source: &Source) -> Result<(), Failure> {
        if self.setup != SetupFlags::default() || self.parallel != ParallelFlags::default() {
            return Err(Failure::Input(
                "--recording holds its own setup; leave the flags of the training setup out, or record again with other \
                 arguments of the script"
                    .into(),
            ));
        }
        if self.time != TimeFlags::default() {
            return Err(Failure::Input(
                "--recording tells memory and no time; leave the flags of time out".into(),
            ));
        }
        let named = self.room.target()?;
        let gpu = self.room.names_card().then(|| self.room.gpu()).transpose()?;
        let played = play(source, gpu)?;
        let own = Device::by_name(&played.about.header.gpu.name).ok();
        let target = named.or(own.map(Target::Card));
        let outside = match (self.room.names_card(), own) {
            (false, Some(own)) => outside::total(own),
            _ => self.room.outside()?,
        };
        let gpus = played.about.header.world;
        let target = target.map(|target| (target, Fit::of_each(&played.report, target.room(), gpus)));
        show(played, self.format.unwrap_or(Format::Text), (target, outside))
    }
}

/// Reads and replays a recording, for a card of this shape if one was named.
fn play(source: &Source, gpu: Option<Gpu>) -> Result<Played, Failure> {
    let failed = |error: recording::RecordingError| Failure::Input(format!("{source}: {error}"));
    let (input, _) = source.unpacked()?;
    let run: Run = recording::read(BufReader::new(input), gpu).map_err(failed)?;
    recording::report(run).map_err(failed)
}

/// Writes the result.
fn show(played: Played, format: Format, (target, outside): (Option<(Target, Fit)>, Bytes)) -> Result<(), Failure> {
    match format {
        Format::Text => output::print(&text::recorded(&played, target.as_ref(), terminal::width())),
        Format::Json => {
            let target = target.as_ref().map(|(target, fit)| (target.name(), fit));
            output::print_json(&played.answer(target, outside))
        }
        Format::Jsonl => output::print_line(&Line::new(0, &Ok(played.report), outside, None)),
    }
}
