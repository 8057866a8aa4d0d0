//! Sample of a record: its text or number of tokens, and its images.

use serde_json::{Map, Value};

use super::look::Look;

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
/// Columns and roles of what the model is to say.
const ANSWERS: [&str; 10] = [
    "assistant",
    "gpt",
    "model",
    "completion",
    "response",
    "output",
    "answer",
    "solution",
    "chosen",
    "rejected",
];
/// Mark in a text that stands for an image.
const MARK: &str = "<image>";
/// Most images of a sample; more are a mistake of the file.
const MOST_IMAGES: usize = 4096;

/// Length of a sample's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// Tokens of the whole sample, as the file counts them.
    Tokens(u64),
    /// Tokens of its text alone, as a tokenizer counts them.
    Counted(u64),
    /// Bytes of UTF-8.
    Bytes(u64),
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Its text.
    pub text: Text,
    /// The part of the text that the model is to say, in the same measure; all of it where nothing tells the parts apart.
    pub answer: u64,
    /// Turns of its conversation, or columns of text: a chat template puts marks around each.
    pub turns: u32,
    /// Number of its images.
    pub images: u32,
    /// Height and width of each image in pixels, where the file tells those of all.
    pub sizes: Vec<[u32; 2]>,
}

impl Sample {
    /// Reads a record.
    pub fn of(record: &Map<String, Value>, look: &mut dyn Look) -> Self {
        let sizes = sizes(record, look);
        let said = text(record, look);
        let listed = IMAGES.iter().find_map(|name| Some(images(record.get(*name)?)));
        let images = match (sizes.len(), listed) {
            (0, listed) => listed.unwrap_or(said.marks).min(MOST_IMAGES),
            (sizes, _) => sizes,
        };
        let stated = TOKENS.iter().find_map(|name| tokens(record.get(*name)?));
        let text = match (stated, said.tokens) {
            (Some(tokens), _) => Text::Tokens(tokens),
            (None, Some(tokens)) if said.bytes > 0 => Text::Counted(tokens),
            _ => Text::Bytes(said.bytes),
        };
        let answer = match text {
            Text::Tokens(tokens) => tokens,
            Text::Counted(tokens) if said.answer.bytes == 0 => tokens,
            Text::Counted(_) => said.answer.tokens.unwrap_or_default(),
            Text::Bytes(bytes) if said.answer.bytes == 0 => bytes,
            Text::Bytes(_) => said.answer.bytes,
        };
        Self {
            text,
            answer,
            turns: said.turns,
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

/// Length of a text.
#[derive(Clone, Copy)]
struct Length {
    bytes: u64,
    /// `None` if nobody counts them.
    tokens: Option<u64>,
}

impl Length {
    const NOTHING: Self = Self {
        bytes: 0,
        tokens: Some(0),
    };

    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            tokens: self.tokens.zip(other.tokens).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// What is said in a part of a record.
#[derive(Clone, Copy)]
struct Said {
    /// Bytes of its text.
    bytes: u64,
    /// Images that it marks.
    marks: usize,
    /// Tokens of its text; `None` if nobody counts them.
    tokens: Option<u64>,
    turns: u32,
    /// What of it the model is to say.
    answer: Length,
}

impl Said {
    const NOTHING: Self = Self {
        bytes: 0,
        marks: 0,
        tokens: Some(0),
        turns: 0,
        answer: Length::NOTHING,
    };

    fn text(text: &str, look: &mut dyn Look) -> Self {
        let marks = text.matches(MARK).count();
        let tokens = match marks {
            0 => look.tokens(text),
            _ => look.tokens(&text.replace(MARK, "")),
        };
        Self {
            bytes: text.len() as u64,
            marks,
            tokens,
            turns: 0,
            answer: Length::NOTHING,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            marks: self.marks + other.marks,
            tokens: self.tokens.zip(other.tokens).map(|(a, b)| a.saturating_add(b)),
            turns: self.turns.saturating_add(other.turns),
            answer: self.answer.and(other.answer),
        }
    }

    /// As said by a speaker, or under the name of a column.
    fn by(self, name: &str) -> Self {
        let answer = Length {
            bytes: self.bytes,
            tokens: self.tokens,
        };
        match ANSWERS.contains(&name) {
            true => Self { answer, ..self },
            false => self,
        }
    }

    const fn is_nothing(&self) -> bool {
        self.bytes == 0 && self.marks == 0
    }

    /// As a turn of its own, if it says something.
    const fn as_turn(self) -> Self {
        match self.is_nothing() {
            true => self,
            false => Self { turns: 1, ..self },
        }
    }
}

/// What a record says.
fn text(record: &Map<String, Value>, look: &mut dyn Look) -> Said {
    let mut of = |name: &str| record.get(name).map_or(Said::NOTHING, |value| spoken(value, look));
    let turns = TURNS.iter().map(|name| of(name)).find(|said| !said.is_nothing());
    let said = turns.unwrap_or_else(|| {
        let columns = TEXTS.iter().map(|name| of(name).as_turn().by(name));
        columns.fold(Said::NOTHING, Said::and)
    });
    let answers = PREFERENCE.iter().map(|name| of(name).as_turn().by(name));
    // Of the two answers of a preference the longer decides.
    said.and(answers.max_by_key(|said| said.bytes).unwrap_or(Said::NOTHING))
}

/// What is said in a text, in turns, or in the parts of one.
fn spoken(value: &Value, look: &mut dyn Look) -> Said {
    match value {
        Value::String(text) => Said::text(text, look),
        // A cell of a table that holds a number is read as one.
        Value::Number(number) => Said::text(&number.to_string(), look),
        Value::Array(parts) => parts
            .iter()
            .map(|part| spoken(part, look))
            .fold(Said::NOTHING, Said::and),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_image = matches!(kind, "image" | "image_url");
            let said = ["content", "value", "text"].iter().find_map(|name| part.get(*name));
            match said {
                _ if is_image => Said {
                    marks: 1,
                    ..Said::NOTHING
                },
                Some(said) if kind.is_empty() => {
                    let speaker = ["role", "from"].iter().find_map(|name| part.get(*name)?.as_str());
                    spoken(said, look).as_turn().by(speaker.unwrap_or_default())
                }
                Some(said) => spoken(said, look),
                None => Said::NOTHING,
            }
        }
        _ => Said::NOTHING,
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

/// Sizes of all images of a record: its columns, what is beside each image, or what is looked up.
fn sizes(record: &Map<String, Value>, look: &mut dyn Look) -> Vec<[u32; 2]> {
    let sides = |(height, width): &(&str, &str)| Some((record.get(*height)?, record.get(*width)?));
    let in_columns = SIDES.iter().find_map(|names| pairs(sides(names)?));
    let told = |image: &Value| Some([side(image.get("height")?)?, side(image.get("width")?)?]);
    let mut beside = || {
        let all = IMAGES.iter().find_map(|name| record.get(*name))?;
        let mut one = |image: &Value| told(image).or_else(|| look.image(image));
        match all {
            Value::Array(all) if all.len() <= MOST_IMAGES => all.iter().map(one).collect(),
            all => Some(vec![one(all)?]),
        }
    };
    in_columns.or_else(&mut beside).unwrap_or_default()
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
