//! Reads records of a Parquet file.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Value, json};
use vramscope_dataset::{Dataset, Look, Reader, Unread};

use super::beside::sides;
use super::{cannot, named};
use crate::failure::Failure;

/// Reads all records of a file.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path, look: Box<dyn Look>) -> Result<Result<Dataset, Unread>, Failure> {
    let file = File::open(path).map_err(|error| cannot(path, &error))?;
    let file = SerializedFileReader::new(file).map_err(|error| cannot(path, &error))?;
    let mut reader = Reader::looking(&named(path), look);
    let rows = file.get_row_iter(None).map_err(|error| cannot(path, &error))?;
    for row in rows {
        reader.take(Some(record(&row.map_err(|error| cannot(path, &error))?)));
    }
    Ok(reader.finish())
}

fn record(row: &Row) -> Map<String, Value> {
    let entries = row.get_column_iter();
    entries.map(|(name, field)| (name.clone(), value(field))).collect()
}

/// Value of a field as the same record has it in JSON; of an image, its size.
fn value(field: &Field) -> Value {
    match field {
        Field::Bool(truth) => (*truth).into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::Float(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => Value::String(text.clone()),
        Field::Bytes(bytes) => image(bytes.data()),
        Field::Group(row) => group(row),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().filter_map(|(key, of)| match key {
                Field::Str(key) => Some((key.clone(), value(of))),
                _ => None,
            });
            Value::Object(entries.collect())
        }
        // Dates, decimals and the like say nothing of a sample's size.
        _ => Value::Null,
    }
}

/// A nested record; of one that holds the bytes of an image (`{"bytes": …, "path": …}`), that image.
fn group(row: &Row) -> Value {
    let record = record(row);
    match record.get("bytes") {
        Some(image @ Value::Object(_)) => image.clone(),
        _ => Value::Object(record),
    }
}

/// Size of the image that bytes hold, or their text.
fn image(bytes: &[u8]) -> Value {
    let size = imagesize::blob_size(bytes).ok().and_then(sides);
    match (size, std::str::from_utf8(bytes)) {
        (Some([height, width]), _) => json!({"height": height, "width": width}),
        (None, Ok(text)) => text.into(),
        (None, Err(_)) => Value::Null,
    }
}
