//! Sample of a record: its text or number of tokens, and its images.

use serde_json::{Map, Value};

/// Columns that count the tokens of a sample.
const TOKENS: [&str; 11] = [
    "num_tokens",
    "n_tokens",
    "token_count",
    "total_tokens",
    "input_length",
    "seq_length",
    "seq_len",
    "length",
    "tokens",
    "input_ids",
    "token_ids",
];
/// Columns of a conversation: a list of turns.
const TURNS: [&str; 4] = ["messages", "conversations", "conversation", "dialog"];
/// Columns of text that a trainer puts one after another.
const TEXTS: [&str; 16] = [
    "text",
    "system",
    "instruction",
    "prompt",
    "input",
    "context",
    "question",
    "query",
    "problem",
    "completion",
    "response",
    "output",
    "answer",
    "solution",
    "caption",
    "content",
];
/// Columns of the two answers of a preference, of which the longer decides.
const PREFERENCE: [&str; 2] = ["chosen", "rejected"];
/// Columns of images.
const IMAGES: [&str; 5] = ["images", "image", "image_path", "image_file", "img"];
/// Columns of heights and of widths in pixels.
const SIDES: [(&str, &str); 3] = [
    ("height", "width"),
    ("image_height", "image_width"),
    ("heights", "widths"),
];
/// Mark in a text that stands for an image.
const MARK: &str = "<image>";
/// Most images of a sample; more are a mistake of the file.
const MOST_IMAGES: usize = 4096;

/// Length of a sample's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Tokens, as the file counts them.
    Tokens(u64),
    /// Bytes of UTF-8.
    Bytes(u64),
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Its text.
    pub text: Text,
    /// Number of its images.
    pub images: u32,
    /// Height and width of each image in pixels, where the file tells those of all.
    pub sizes: Vec<[u32; 2]>,
}

impl Sample {
    /// Reads a record.
    pub fn of(record: &Map<String, Value>) -> Self {
        let sizes = sizes(record);
        let (bytes, marks) = text(record);
        let listed = IMAGES.iter().find_map(|name| Some(images(record.get(*name)?)));
        let images = match (sizes.len(), listed) {
            (0, listed) => listed.unwrap_or(marks).min(MOST_IMAGES),
            (sizes, _) => sizes,
        };
        let text = TOKENS.iter().find_map(|name| tokens(record.get(*name)?));
        Self {
            text: text.map_or(Text::Bytes(bytes), Text::Tokens),
            images: images as u32,
            sizes,
        }
    }

    /// Returns true if the record says nothing of its sample.
    pub fn is_empty(&self) -> bool {
        self.text == Text::Bytes(0) && self.images == 0
    }

    /// Pixels of all images.
    pub fn pixels(&self) -> u64 {
        self.sizes
            .iter()
            .map(|size| u64::from(size[0]) * u64::from(size[1]))
            .sum()
    }
}

/// Number of tokens: a whole number, or the length of a list of them.
fn tokens(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().filter(|count| *count <= u64::from(u32::MAX)),
        Value::Array(ids) if ids.iter().all(Value::is_u64) => Some(ids.len() as u64),
        _ => None,
    }
}

/// Bytes of a record's text, and the images that it marks.
fn text(record: &Map<String, Value>) -> (u64, usize) {
    let of = |name: &&str| record.get(*name).map_or((0, 0), spoken);
    let sum = |a: (u64, usize), b: (u64, usize)| (a.0.saturating_add(b.0), a.1 + b.1);
    let turns = TURNS.iter().map(of).find(|said| *said != (0, 0));
    let plain = || TEXTS.iter().map(of).fold((0, 0), sum);
    let answers = PREFERENCE.iter().map(of).max().unwrap_or_default();
    sum(turns.unwrap_or_else(plain), answers)
}

/// Bytes of a text, of turns, or of the parts of one; and the images that they mark.
fn spoken(value: &Value) -> (u64, usize) {
    match value {
        Value::String(text) => (text.len() as u64, text.matches(MARK).count()),
        // A cell of a table that holds a number is read as one.
        Value::Number(number) => (number.to_string().len() as u64, 0),
        Value::Array(parts) => parts.iter().map(spoken).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_image = matches!(kind, "image" | "image_url");
            let said = ["content", "value", "text"].iter().find_map(|name| part.get(*name));
            match said {
                _ if is_image => (0, 1),
                Some(said) => spoken(said),
                None => (0, 0),
            }
        }
        _ => (0, 0),
    }
}

/// Number of images in a column: a name, an object, or a list of them.
fn images(value: &Value) -> usize {
    match value {
        Value::Array(all) => all.len(),
        Value::String(name) => usize::from(!name.trim().is_empty()),
        Value::Object(_) => 1,
        _ => 0,
    }
}

/// Sizes of all images of a record: its columns, or what is beside each image.
fn sizes(record: &Map<String, Value>) -> Vec<[u32; 2]> {
    let sides = |(height, width): &(&str, &str)| Some((record.get(*height)?, record.get(*width)?));
    let in_columns = SIDES.iter().find_map(|names| pairs(sides(names)?));
    let beside = || {
        let all = IMAGES.iter().find_map(|name| record.get(*name))?;
        let one = |image: &Value| side(image.get("height")?).zip(side(image.get("width")?));
        let sizes: Option<Vec<_>> = match all {
            Value::Array(all) if all.len() <= MOST_IMAGES => all.iter().map(one).collect(),
            all => Some(vec![one(all)?]),
        };
        Some(sizes?.into_iter().map(|(height, width)| [height, width]).collect())
    };
    in_columns.or_else(beside).unwrap_or_default()
}

/// Heights with widths: two numbers, or two lists of as many.
fn pairs((heights, widths): (&Value, &Value)) -> Option<Vec<[u32; 2]>> {
    match (heights, widths) {
        (Value::Array(heights), Value::Array(widths)) => {
            let is_whole = heights.len() == widths.len() && heights.len() <= MOST_IMAGES;
            let both = heights.iter().zip(widths).filter(|_| is_whole);
            both.map(|(height, width)| Some([side(height)?, side(width)?]))
                .collect()
        }
        (height, width) => Some(vec![[side(height)?, side(width)?]]),
    }
}

/// Pixels of a side.
fn side(value: &Value) -> Option<u32> {
    let pixels = value.as_u64()?;
    (1..=65_536).contains(&pixels).then_some(pixels as u32)
}
