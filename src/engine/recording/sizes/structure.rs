//! Structures: lines that recordings at several sizes share, with polynomials for the numbers that differ.

use std::ops::RangeInclusive;

use super::super::error::RecordingError;
use super::super::fault::Fault;
use super::super::header::Header;
use super::super::lines::Line;
use super::super::reader::Reader;
use super::super::run::RecordedRun;
use super::polynomial::Polynomials;
use super::spelled::Spelled;
use crate::tape::Gpu;

/// Lines that recordings at several sizes share.
pub(super) struct Structure {
    pub(super) ranges: Vec<RangeInclusive<u64>>,
    pub(super) points: Vec<Vec<u64>>,
    pub(super) polynomials: Polynomials,
    pub(super) spelled: Spelled,
    /// Number of the structure's first line in the file, from 1.
    pub(super) begin: u64,
    pub(super) lines: Vec<Line<'static>>,
}

impl Structure {
    /// Returns the sizes of the first recording.
    pub fn first(&self) -> &[u64] {
        self.points.first().map_or(&[], Vec::as_slice)
    }

    /// Returns the class of the model.
    pub fn model(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Module(module) => Some(&*module.class),
            _ => None,
        })
    }

    /// Returns the least and highest value of each size.
    pub fn ranges(&self) -> &[RangeInclusive<u64>] {
        &self.ranges
    }

    /// Returns the recorded values of one size.
    pub fn values(&self, size: usize) -> impl Iterator<Item = u64> {
        self.points.iter().map(move |point| point[size])
    }

    /// Returns true if one of its recordings has these sizes.
    pub fn recorded(&self, point: &[u64]) -> bool {
        self.points.iter().any(|recorded| recorded == point)
    }

    /// Returns true if the sizes lie between those of its recordings, and all numbers are whole there.
    pub fn holds(&self, point: &[u64]) -> bool {
        let within = self.ranges.iter().zip(point).all(|(range, size)| range.contains(size));
        within && self.polynomials.at(point).is_ok()
    }

    /// Replays the lines at these sizes.
    pub fn play(&self, header: &Header, point: &[u64], gpu: Option<Gpu>) -> Result<RecordedRun, RecordingError> {
        let mut reader = Reader::new(header.clone(), gpu)?;
        let numbers = self.polynomials.at(point).map_err(|k| {
            let fault = Fault::Json(format!("has polynomial {k}, whose value is not whole at these sizes"));
            RecordingError::at(self.begin - 1, fault)
        })?;
        let tables = &mut reader.builder.tables;
        let layouts = self.spelled.layouts.iter().map(|layout| layout.at(&numbers));
        tables.layouts = layouts
            .collect::<Result<_, _>>()
            .map_err(|fault| RecordingError::at(self.begin - 1, fault))?;
        tables.operations.clone_from(&self.spelled.operations);
        tables.numbers = numbers;
        for (line, number) in self.lines.iter().zip(self.begin..) {
            reader.line(line).map_err(|fault| RecordingError::at(number, fault))?;
        }
        reader.finish()
    }
}
