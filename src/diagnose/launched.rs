//! The run that a paste starts, by the reader of launch files.

use vramscope_launch::{Launch, Source, read};

use crate::{Evidence, Piece, catalogue_name};

/// The command of a paste as a launch, with the catalogue's name of its model. `None` if there is none, its model is not
/// known by name, or a part of the command never reaches the program: that would be another run.
pub fn launched(pieces: &[Piece]) -> Option<(&'static str, Launch)> {
    let command = pieces.iter().find_map(|piece| match &piece.evidence {
        Evidence::Text(digest) => digest.command.as_ref(),
        _ => None,
    })?;
    if command.lost.is_some() || !command.unexported.is_empty() {
        return None;
    }
    let source = Source {
        name: "the paste",
        text: &command.text,
    };
    let launch = read(&[source]).ok()?;
    let name = catalogue_name(launch.model()?)?;
    Some((name, launch))
}
