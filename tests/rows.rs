//! Rows of a file of measurements.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

/// Reads the rows of a file in this folder, packed or not. Its first line says where they were measured.
///
/// # Panics
/// If the file is missing or a line is no row: it is a part of the repository.
pub fn rows<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let mut opened = File::open(path).expect("a part of the repository");
    let mut text = String::new();
    let read = match file.ends_with(".gz") {
        true => GzDecoder::new(opened).read_to_string(&mut text),
        false => opened.read_to_string(&mut text),
    };
    read.expect("it is a text");
    text.lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect()
}
