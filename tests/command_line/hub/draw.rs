//! Sixty configurations of transformers' families, drawn with a seed, under ids that no table knows.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use vramscope_engine::python_json;

use super::stand_in::Repo;

/// Configurations that are drawn.
pub const COUNT: usize = 60;
const SEED: u64 = 47;

/// Rows of `tests/data/coverage`: a family, its default configuration, and its true number of parameters.
pub fn rows() -> Vec<Value> {
    // The folders of both packages whose tests draw lie in the repository.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut paths = folders.map(|folder| folder.join("tests/data/coverage/configs.jsonl.gz"));
    let path = paths.find(|path| path.is_file()).expect("it is in the repository");
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .expect("it is text");
    let rows = text
        .lines()
        .map(|line| python_json::read(line).expect("a line is JSON"));
    rows.filter(|row: &Value| row["params"].is_u64()).collect()
}

/// Draws rows without repetition (xorshift).
pub fn drawn() -> Vec<Value> {
    let mut rows = rows();
    let mut state = SEED;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("it is small")
    };
    (0..COUNT).map(|_| rows.swap_remove(next(rows.len()))).collect()
}

/// Id of a drawn configuration.
pub fn id(number: usize) -> String {
    format!("someone/drawn-{number}")
}

/// The repositories of drawn configurations, with what the hub says of their parameters.
pub fn repos(rows: &[Value]) -> BTreeMap<String, Repo> {
    let repo = |row: &Value| {
        let info = json!({"safetensors": {"parameters": {"BF16": row["params"]}}});
        Repo::of_files([("config.json", row["config"].clone())], info)
    };
    rows.iter().enumerate().map(|(i, row)| (id(i), repo(row))).collect()
}
