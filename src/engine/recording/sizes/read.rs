//! Reads recordings of all sizes.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

use super::super::error::RecordingError;
use super::super::fault::Fault;
use super::super::header::Header;
use super::super::input::Lines;
use super::super::limits::{MOST_ELEMENTS, MOST_STRUCTURE_LINES};
use super::super::lines::Line;
use super::super::number::Reference;
use super::Sizes;
use super::polynomial::{MOST_SIZES, Polynomials};
use super::spelled::Spelled;
use super::structure::Structure;

/// Line `structure`.
#[derive(Deserialize)]
struct Begin {
    ranges: BTreeMap<String, [u64; 2]>,
    points: Vec<Vec<u64>>,
    basis: Vec<Vec<u32>>,
    polynomials: Vec<Vec<String>>,
}

/// Reads the lines after the header.
pub(in super::super) fn read_rest<R: BufRead>(mut lines: Lines<R>, header: Header) -> Result<Sizes, RecordingError> {
    let names = header.sizes.clone();
    let known = names.iter().collect::<std::collections::BTreeSet<_>>().len();
    if !(1..=MOST_SIZES).contains(&names.len()) || known != names.len() {
        return Err(RecordingError::at(
            1,
            Fault::Json("names no sizes, or one twice".into()),
        ));
    }
    let mut structures: Vec<Structure> = Vec::new();
    loop {
        let number = lines.number() + 1;
        let Some(text) = lines.next()? else {
            return Err(RecordingError::Cut { lines: number - 1 });
        };
        match next(text, &mut structures, (&names, number)) {
            Ok(true) => break,
            Ok(false) => {}
            Err(fault) => return Err(RecordingError::at(number, fault)),
        }
    }
    lines.end()?;
    if structures.is_empty() {
        return Err(RecordingError::NoStructure);
    }
    Ok(Sizes { header, structures })
}

/// Takes a line; returns true if it was the last.
fn next(text: &str, structures: &mut Vec<Structure>, (names, number): (&[String], u64)) -> Result<bool, Fault> {
    let spelled = match structures.last_mut() {
        Some(structure) => structure.spelled.line(text)?,
        None => text.to_owned(),
    };
    let mut line = Line::read(&spelled)?.into_owned();
    match line {
        Line::Structure => {
            structures.push(begin(text, names, number + 1)?);
            return Ok(false);
        }
        Line::End => return Ok(true),
        _ => {}
    }
    let Some(structure) = structures.last_mut() else {
        return Err(Fault::SourceLine);
    };
    if structure.lines.len() >= MOST_STRUCTURE_LINES {
        return Err(Fault::TooMuch("lines in a structure"));
    }
    match &mut line {
        Line::Op(op) => {
            if let Reference::Spelled(name) = &op.function {
                op.function = Reference::Number(structure.spelled.operation(name)?);
            }
        }
        Line::Param(param) => {
            if let Reference::Spelled(layout) = &param.meta {
                param.meta = Reference::Number(structure.spelled.layout(layout)?);
            }
        }
        Line::Meta(_) | Line::Function(_) | Line::Header => return Err(Fault::SourceLine),
        _ => {}
    }
    structure.lines.push(line);
    Ok(false)
}

fn begin(text: &str, names: &[String], begin: u64) -> Result<Structure, Fault> {
    let line: Begin = serde_json::from_str(text).map_err(|error| Fault::Json(error.to_string()))?;
    let range = |name: &String| {
        let [least, most] = *line.ranges.get(name)?;
        (least <= most && most <= MOST_ELEMENTS).then_some(least..=most)
    };
    let ranges: Option<Vec<_>> = names.iter().map(range).collect();
    let ranges = ranges.ok_or_else(|| Fault::Json("has no range for one of the sizes".into()))?;
    let within = |point: &Vec<u64>| {
        point.len() == names.len() && point.iter().zip(&ranges).all(|(size, range)| range.contains(size))
    };
    if line.points.is_empty() || !line.points.iter().all(within) {
        return Err(Fault::Json("has a point outside of its ranges, or none".into()));
    }
    Ok(Structure {
        polynomials: Polynomials::read(line.basis, &line.polynomials, names.len())?,
        points: line.points,
        ranges,
        spelled: Spelled::default(),
        begin,
        lines: Vec::new(),
    })
}
