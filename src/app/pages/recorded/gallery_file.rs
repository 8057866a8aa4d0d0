//! The gallery's list, as `cargo xtask gallery` and the build of the page write it.

use serde::Deserialize;

/// The whole list.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Gallery {
    /// In the order in which they are listed.
    pub models: Vec<Entry>,
}

/// A recording of the gallery.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Its name in addresses.
    pub id: String,
    /// Name of the model for people.
    pub title: String,
    /// Task of the model; the heading that it is listed under.
    pub group: String,
    /// Parameters.
    pub params: u64,
    /// Bytes that the allocator reserves at most.
    pub reserved: u64,
    /// Samples of a step.
    pub batch: u64,
    /// Positions of a sample of text.
    #[serde(default)]
    pub seq: Option<u64>,
    /// Frames and pixels of a sample of none.
    #[serde(default)]
    pub sample: Option<String>,
    /// Source of its size; `None` for the default of its class.
    #[serde(default)]
    pub source: Option<String>,
    /// The checkpoint that the library calls similar to the class's default.
    #[serde(default)]
    pub like: Option<String>,
    /// Address of its file.
    #[serde(default)]
    pub file: Option<String>,
}

impl Entry {
    /// True if every word is somewhere in what is shown of it.
    pub fn matches(&self, words: &str) -> bool {
        let like = self.like.as_deref().unwrap_or_default();
        let text = format!("{} {} {} {like}", self.id, self.title, self.group).to_lowercase();
        words.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}
