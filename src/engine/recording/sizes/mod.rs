//! Recordings of all sizes: the lines that several recordings share, with polynomials for the numbers that differ.

mod polynomial;
mod read;
mod spelled;
mod structure;

use std::ops::RangeInclusive;

use self::structure::Structure;
use super::error::{Ranges, RecordingError};
use super::header::Header;
use super::run::{Point, RecordedRun};
use crate::tape::Gpu;

pub(super) use read::read_rest;

/// Values that one size of a recording can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Name of the size.
    pub name: String,
    /// Recorded values, in ascending order, each once.
    pub recorded: Vec<u64>,
    /// True if values between recorded ones are valid too, at some values of the other sizes.
    pub between: bool,
}

/// Training steps at all sizes between the recorded ones.
pub struct Sizes {
    header: Header,
    structures: Vec<Structure>,
}

impl Sizes {
    /// Returns the header of the file.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the names of the sizes that vary, in the order of every point.
    pub fn names(&self) -> &[String] {
        &self.header.sizes
    }

    /// Returns the class of the model, if one runs.
    pub fn model(&self) -> Option<&str> {
        self.structures.first()?.model()
    }

    /// Returns the sizes of the first recording.
    pub fn first(&self) -> &[u64] {
        self.structures.first().map_or(&[], Structure::first)
    }

    /// Returns the least and highest recorded value of each size over all structures.
    pub fn ranges(&self) -> Vec<RangeInclusive<u64>> {
        let of = |i: usize| {
            let values = || self.structures.iter().map(move |structure| &structure.ranges()[i]);
            let least = values().map(RangeInclusive::start).min().copied().unwrap_or_default();
            let most = values().map(RangeInclusive::end).max().copied().unwrap_or_default();
            least..=most
        };
        (0..self.names().len()).map(of).collect()
    }

    /// Returns the values that each size can take.
    pub fn axes(&self) -> Vec<Axis> {
        let of = |(i, name): (usize, &String)| Axis {
            name: name.clone(),
            recorded: self.recorded(i, None),
            between: self.structures.iter().any(|found| {
                let range = &found.ranges()[i];
                range.start() < range.end()
            }),
        };
        self.names().iter().enumerate().map(of).collect()
    }

    /// Returns the recorded values of a size, and another one if given, in ascending order, each once.
    fn recorded(&self, size: usize, also: Option<u64>) -> Vec<u64> {
        let recorded = self.structures.iter().flat_map(|found| found.values(size));
        let mut values: Vec<u64> = recorded.chain(also).collect();
        crate::order::sort_by_key(&mut values, |value| *value);
        values.dedup();
        values
    }

    /// Builds a point from named sizes; the others are those of the first recording.
    ///
    /// # Errors
    /// If a named size does not vary.
    pub fn point(&self, named: &[(String, u64)]) -> Result<Vec<u64>, RecordingError> {
        let mut point = self.first().to_vec();
        for (name, value) in named {
            let at = self.names().iter().position(|known| known == name);
            let at = at.ok_or_else(|| RecordingError::UnknownSize {
                asked: name.chars().take(40).collect(),
                known: self.names().join(", "),
            })?;
            point[at] = *value;
        }
        Ok(point)
    }

    /// Builds the run at a point for `gpu`, or for the card that it was made for if there is none.
    ///
    /// # Errors
    /// If no recorded structure is valid there; else like [`read`](super::read).
    pub fn at(&self, point: &[u64], gpu: Option<Gpu>) -> Result<RecordedRun, RecordingError> {
        let structure = self.structure(point)?;
        let mut run = structure.play(&self.header, point, gpu)?;
        run.about.at = Some(Point {
            sizes: self.names().iter().cloned().zip(point.iter().copied()).collect(),
            exact: self.named(structure),
        });
        Ok(run)
    }

    /// Checks that a recorded structure is valid at a point.
    ///
    /// # Errors
    /// If none is valid, or two structures surround the point.
    pub fn holds(&self, point: &[u64]) -> Result<(), RecordingError> {
        self.structure(point).map(|_| ())
    }

    /// Returns the structure that is valid at a point: the one recorded there, or the only one around it.
    fn structure(&self, point: &[u64]) -> Result<&Structure, RecordingError> {
        if let Some(recorded) = self.structures.iter().find(|structure| structure.recorded(point)) {
            return Ok(recorded);
        }
        // Two structures around a point are two sequences of operations, for example on both sides of a length from
        // which a model takes another branch; which of them runs here was not recorded.
        let mut around = self.structures.iter().filter(|structure| structure.holds(point));
        match (around.next(), around.next()) {
            (Some(only), None) => Ok(only),
            (found, _) => Err(RecordingError::OutOfRange {
                asked: self.names().iter().cloned().zip(point.iter().copied()).collect(),
                valid: self.valid(),
                between: found.is_some(),
                command: self.command(point),
            }),
        }
    }

    /// Returns the ranges of each structure, by name, each once.
    fn valid(&self) -> Vec<Ranges> {
        let mut all: Vec<Ranges> = self.structures.iter().map(|found| self.named(found)).collect();
        all.dedup();
        all
    }

    /// Returns the ranges of a structure, by name.
    fn named(&self, structure: &Structure) -> Ranges {
        let ranges = structure.ranges().iter().map(|range| [*range.start(), *range.end()]);
        self.names().iter().cloned().zip(ranges).collect()
    }

    /// Returns the command that also records at these sizes.
    pub fn command(&self, point: &[u64]) -> String {
        let mut words = vec!["vramscope record".to_owned()];
        for (i, (name, asked)) in self.names().iter().zip(point).enumerate() {
            let values: Vec<String> = self.recorded(i, Some(*asked)).iter().map(u64::to_string).collect();
            // Takes `batch=--batch-size:1,2` without its values, if the recorder provides it.
            let told = self
                .header
                .vary
                .iter()
                .find(|words| words.split(['=', ':']).next() == Some(name));
            let head = match told.and_then(|words| words.split_once('=')) {
                Some((_, rest)) => format!(
                    "{name}={}",
                    rest.rsplit_once(':').map_or(rest, |(argument, _)| argument)
                ),
                None => name.clone(),
            };
            words.push(format!("--vary {head}:{}", values.join(",")));
        }
        words.extend(self.header.command.as_ref().map(|command| command.join(" ")));
        words.join(" ")
    }
}
