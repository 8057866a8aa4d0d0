//! Whole numbers of flags, which are read as the page reads them.

use vramscope_engine::setup::{NotCount, Prefix, read_count, read_listed_count};

/// Reads a length, a size or a number of things, of which `4k` is 4096.
///
/// # Errors
/// If the text is no whole number.
pub fn size(text: &str) -> Result<u64, NotCount> {
    read_count(text, Prefix::Binary)
}

/// Reads a number of a list that commas separate.
///
/// # Errors
/// If the text is no whole number.
pub fn of_list(text: &str) -> Result<u64, NotCount> {
    read_listed_count(text)
}

/// Reads an amount of data, of which `4k` is 4000.
///
/// # Errors
/// If the text is no whole number.
pub fn samples(text: &str) -> Result<u64, NotCount> {
    read_count(text, Prefix::Decimal)
}

/// Reads a number from 1 to `most`.
pub fn up_to(most: u64) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| match size(text) {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        Ok(count) => Err(format!("{count} is not between 1 and {most}")),
        Err(error) => Err(error.to_string()),
    }
}
