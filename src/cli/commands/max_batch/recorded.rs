//! `max-batch --recording`: finds the largest batch of a training script's own steps, recorded at several sizes.

use serde::Serialize;
use vramscope_engine::device::Device;
use vramscope_engine::recording::{Opened, Sizes};
use vramscope_engine::report::outside;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Largest, MaxBatch as Found, RecordedLimits, largest_recorded};

use super::{Line, MaxBatch, Try, no_limit};
use crate::failure::Failure;
use crate::input::recorded::{failed, open};
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::output::target::Target;
use crate::output::{self, Format, terminal, text};

/// Name of the size that is searched.
const BATCH: &str = "batch";

/// Answer as JSON.
#[derive(Serialize)]
struct RecordedMaxBatch<'a> {
    model: &'a str,
    sizes: Vec<(String, u64)>,
    limit: Bytes,
    steps: u64,
    max_batch: u64,
    recorded: [u64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    tries: Vec<Try>,
}

impl MaxBatch {
    /// Answers for a recording of all sizes.
    pub(super) fn run_recorded(mut self, source: &Source) -> Result<(), Failure> {
        let mut sizes = self.setup.take_sizes();
        sizes.extend(self.at.take().map(|at| at.0).unwrap_or_default());
        if sizes.iter().any(|(name, _)| name == BATCH) {
            return Err(Failure::Input("batch is what max-batch looks for; leave it out".into()));
        }
        if self.setup != SetupFlags::default() {
            return Err(Failure::Input(
                "--recording holds its own setup; leave the flags of the training setup out, or record again with other \
                 arguments of the script"
                    .into(),
            ));
        }
        let gpu = self.room.names_card().then(|| self.room.gpu()).transpose()?;
        let Opened::Sizes(all) = open(source, gpu)? else {
            return Err(Failure::Input(format!(
                "{source}: the recording holds one batch; record several with `vramscope record --vary batch=--ARGUMENT:1,2,4` \
                 and give the file that ends in .sizes.gz"
            )));
        };
        let named = self.room.target()?;
        let own = Device::by_name(&all.header().gpu.name).ok();
        let limit = match (self.room.for_allocator_of(all.header().world)?, own) {
            (Some(limit), _) => limit,
            (None, Some(own)) => outside::for_allocator(own, all.header().world),
            (None, None) => return Err(no_limit()),
        };
        let target = named.or(own.map(Target::Card));
        let card = target
            .as_ref()
            .filter(|t| matches!(t, Target::Card(_)))
            .map(Target::name);
        let (at, point) = point(&all, &sizes, source)?;
        let limits = RecordedLimits {
            gpu,
            overrides: self.overrides.of(),
            limit,
            steps: self.steps,
        };
        let largest = largest_recorded(&all, (at, &point), limits);
        let largest = largest.map_err(|error| failed(source, &error))?;
        let sizes = all
            .names()
            .iter()
            .cloned()
            .zip(point)
            .filter(|(name, _)| name != BATCH)
            .collect();
        let model = all.model().unwrap_or("recording");
        self.show(largest, (model, sizes), (card, limit))
    }

    fn show(
        &self,
        largest: Largest,
        (model, sizes): (&str, Vec<(String, u64)>),
        (card, limit): (Option<&str>, Bytes),
    ) -> Result<(), Failure> {
        let found = Found {
            max_batch: largest.value.unwrap_or_default(),
            tries: largest.tries,
            end: None,
        };
        let beyond = largest.beyond.as_deref();
        match self.format.unwrap_or(Format::Text) {
            Format::Text => {
                let [least, most] = largest.range;
                let words = sizes.iter().map(|(name, value)| format!("{name} {value}"));
                let words = words.chain([format!("recorded for batch {least} to {most}")]);
                let answer = text::MaxBatch {
                    model,
                    setup: words.collect::<Vec<_>>().join(" · "),
                    room: (card, limit),
                    steps: self.steps,
                    found: &found,
                    lasting: None,
                    beyond,
                };
                output::print(&answer.render(terminal::width()))
            }
            Format::Json => output::print_json(&RecordedMaxBatch {
                model,
                sizes,
                limit,
                steps: self.steps,
                max_batch: found.max_batch,
                recorded: largest.range,
                record: beyond,
                tries: found.tries.iter().map(Try::new).collect(),
            }),
            Format::Jsonl => output::print_json_line(&Line::new(0, &Ok(found.max_batch))),
        }
    }
}

/// Returns the position of the batch among the sizes, and a point with the values of the others.
fn point(all: &Sizes, sizes: &[(String, u64)], source: &Source) -> Result<(usize, Vec<u64>), Failure> {
    let at = all.names().iter().position(|name| name == BATCH);
    let at = at.ok_or_else(|| {
        Failure::Input(format!(
            "{source}: the recording varies {}, and no batch; record several batches with `vramscope record --vary \
             batch=--ARGUMENT:1,2,4`",
            all.names().join(", ")
        ))
    })?;
    let point = all.point(sizes).map_err(|error| failed(source, &error))?;
    Ok((at, point))
}
