//! What a record does not say itself.

use serde_json::Value;

/// Looks up what stands outside of a dataset's records.
pub trait Look {
    /// Height and width in pixels of an image, by what a record has in its place: a path, an object, bytes.
    fn image(&mut self, _image: &Value) -> Option<[u32; 2]> {
        None
    }

    /// Number of tokens of a text, where the model's tokenizer is at hand.
    fn tokens(&mut self, _text: &str) -> Option<u64> {
        None
    }
}

/// Looks nothing up.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Look for Nothing {}
