//! Chooses the source of a card's kernel times, including a file that a person gives.

use vramscope_benchmark::Record;
use vramscope_engine::device::Device;
use vramscope_time::{Clock, H200, Measured};

use crate::failure::Failure;
use crate::input::source::Source;

/// Creates the clock of a card: from measured kernels if a file of them is given or the card is the one whose
/// measurements ship with the program, else from the data sheet. `None` if the data sheet lacks rates.
///
/// # Errors
/// If the file cannot be read or contains no kernels.
pub fn clock_of(card: &Device, file: Option<&Source>) -> Result<Option<Clock>, Failure> {
    let own = Measured::read(H200).map_err(|error| Failure::Broken(error.to_string()))?;
    let given = file.map(|file| read(file, &own)).transpose()?;
    Ok(Clock::of(card, own, given))
}

/// Reads a file of measured kernels, or a benchmark record, which does not contain the host's pace.
fn read(file: &Source, own: &Measured) -> Result<Measured, Failure> {
    let mut text = String::new();
    let mut input = file.open()?;
    std::io::Read::read_to_string(&mut input, &mut text).map_err(|error| file.unreadable(&error))?;
    match Record::read(&text) {
        Ok(record) => Ok(Measured::of_record(&record, own)),
        Err(_) => Measured::read(&text).map_err(Failure::input),
    }
}
