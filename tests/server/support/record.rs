//! Example records for the tests.

use serde_json::Value;

/// A record written by `bench`.
pub const EXAMPLE: &str = include_str!("../../data/records/example.json");

/// One of many different records, as compact JSON.
pub fn record(number: u64) -> String {
    let mut record: Value = serde_json::from_str(EXAMPLE).expect("the example is JSON");
    record["conditions"]["taken_bytes"] = number.into();
    record.to_string()
}

/// ID in an acknowledgement.
pub fn id_of(acknowledgement: &Value) -> String {
    acknowledgement["id"].as_str().expect("an id").to_owned()
}
