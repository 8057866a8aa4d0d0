//! Text formats of entries, and their parsers.

use serde_json::Value;
use vramscope_engine::setup::{
    Kind, NotCount, ParameterNames, Prefix, Targets, Zero, read_count, read_listed_count, read_number,
};

use super::{Pins, Problem};

/// Format of an entry's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// A whole number; may be empty.
    OptionalCount,
    /// An amount of data, of which `k` means 1000; may be empty.
    SampleCount,
    /// Two whole numbers, height by width, such as `24x36`; may be empty.
    Grid,
    /// Whole numbers, such as `512, 2048, 300`; may be empty.
    Lengths,
    /// Heights by widths, such as `480x640, 300x200`; may be empty.
    Sizes,
    /// Whole numbers by name, such as `batch=4,seq=512`; may be empty.
    NamedCounts,
    /// A number from 0 to 1.
    Probability,
    /// A number of at least 0; may be empty.
    Amount,
    /// A number above 0; may be empty.
    Rate,
    /// An amount of memory in GiB; may be empty.
    Gib,
    /// DeepSpeed's keys by name, such as `reduce_bucket_size=2e8,overlap_comm=false`; may be empty.
    Zero,
    /// `true` or `false`.
    Switch,
    /// `true`, `false`, or `model` for the model's own configuration.
    ModelSwitch,
    /// Modules that get LoRA adapters: a keyword of the engine, or module names.
    Targets,
    /// Patterns of parameters' names.
    ParameterNames,
    /// Setups in the format of [`Pins`].
    Setups,
    /// One of the listed words.
    Choice(&'static [&'static str]),
}

impl Form {
    /// Format of a setting's text.
    pub const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Count => Self::Count,
            Kind::OptionalCount => Self::OptionalCount,
            Kind::Grid => Self::Grid,
            Kind::Lengths => Self::Lengths,
            Kind::Sizes => Self::Sizes,
            Kind::Probability => Self::Probability,
            Kind::Switch => Self::Switch,
            Kind::ModelSwitch => Self::ModelSwitch,
            Kind::Targets => Self::Targets,
            Kind::ParameterNames => Self::ParameterNames,
            Kind::Choice(choices) => Self::Choice(choices.names),
        }
    }

    /// Parses a text into the value that a case file would hold.
    ///
    /// # Errors
    /// Fails if the text does not have this format.
    pub fn read(self, text: &str) -> Result<Value, Problem> {
        let text = text.trim();
        match self {
            Self::Text => Ok(text.into()),
            Self::OptionalCount
            | Self::SampleCount
            | Self::Grid
            | Self::Lengths
            | Self::Sizes
            | Self::NamedCounts
            | Self::Amount
            | Self::Rate
            | Self::Gib
            | Self::Zero
                if text.is_empty() =>
            {
                Ok(Value::Null)
            }
            Self::Count | Self::OptionalCount => count(text).map(Value::from),
            Self::SampleCount => counted(text, Prefix::Decimal).map(Value::from),
            Self::Grid => grid(text),
            Self::Lengths => lengths(text),
            Self::Sizes => sizes(text),
            Self::NamedCounts => named_counts(text).map(|counts| named_text(&counts).into()),
            Self::Zero => Zero::parse(text).map_or(Err(Problem::NotZero), |zero| Ok(zero.text().into())),
            Self::Probability => probability(text),
            Self::Amount => amount(text),
            Self::Rate => rate(text),
            Self::Gib => gib(text),
            Self::ModelSwitch if matches!(text, "" | "model") => Ok(Value::Null),
            Self::Switch | Self::ModelSwitch => text.parse::<bool>().map(Value::from).map_err(|_| Problem::NotSwitch),
            Self::Targets => match Targets::parse(text) {
                Ok(targets) => Ok(String::from(targets).into()),
                Err(_) => Err(Problem::NotTargets(&Targets::WORDS)),
            },
            Self::ParameterNames => match ParameterNames::parse(text) {
                Ok(names) => Ok(String::from(names).into()),
                Err(_) => Err(Problem::NotParameterNames),
            },
            Self::Setups => match Pins::read(text) {
                Some(_) => Ok(text.into()),
                None => Err(Problem::NotSetups),
            },
            Self::Choice(_) if text.is_empty() => Ok(Value::Null),
            Self::Choice(allowed) => match allowed.contains(&text) {
                true => Ok(text.into()),
                false => Err(Problem::NotChoice(allowed)),
            },
        }
    }
}

/// Parses a length, a size or a number of things.
fn count(text: &str) -> Result<u64, Problem> {
    counted(text, Prefix::Binary)
}

fn counted(text: &str, prefix: Prefix) -> Result<u64, Problem> {
    read_count(text, prefix).map_err(|why| match why {
        NotCount::Form => Problem::NotCount,
        NotCount::TooLarge => Problem::TooLarge,
    })
}

fn grid(text: &str) -> Result<Value, Problem> {
    sides(text).ok_or(Problem::NotGrid)
}

/// Parses `24x36`, with any common multiplication sign.
fn sides(text: &str) -> Option<Value> {
    let (height, width) = text.split_once(['x', 'X', '×', '*'])?;
    let side = |s: &str| match s.trim() {
        s if s.contains(' ') => None,
        s => count(s).ok(),
    };
    Some(Value::from(vec![side(height)?, side(width)?]))
}

/// List separators, including Chinese commas.
const COMMAS: [char; 3] = [',', '，', '、'];

fn sizes(text: &str) -> Result<Value, Problem> {
    let parts = text.split(COMMAS).map(str::trim).filter(|part| !part.is_empty());
    let size = |part: &str| named_size(part).map(Value::from).or_else(|| sides(part));
    let sizes: Option<Vec<Value>> = parts.map(size).collect();
    match sizes {
        Some(sizes) if !sizes.is_empty() => Ok(sizes.into()),
        _ => Err(Problem::NotSizes),
    }
}

/// Height and width of a wide picture that is named by its lines, such as `720p`.
fn named_size(name: &str) -> Option<Vec<u64>> {
    let (height, width) = match name.to_ascii_lowercase().as_str() {
        "480p" => (480, 854),
        "720p" => (720, 1280),
        "1080p" => (1080, 1920),
        "1440p" => (1440, 2560),
        "2160p" | "4k" => (2160, 3840),
        _ => return None,
    };
    Some(vec![height, width])
}

/// Splits `batch=4,seq=512` into names and texts, valid or not.
pub fn named_texts(text: &str) -> Vec<(String, String)> {
    let parts = text.split(COMMAS).filter(|part| !part.trim().is_empty());
    let split = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    split
        .map(|(name, text)| (name.trim().to_owned(), text.trim().to_owned()))
        .collect()
}

/// Parses whole numbers by name, such as `batch=4,seq=512`.
pub fn named_counts(text: &str) -> Result<Vec<(String, u64)>, Problem> {
    let one = |(name, text): (String, String)| match (name.is_empty(), count(&text)) {
        (false, Ok(value)) => Ok((name, value)),
        _ => Err(Problem::NotNamedCounts),
    };
    named_texts(text).into_iter().map(one).collect()
}

/// Formats texts by name, such as `batch=4,seq=512`.
pub fn named_text(texts: &[(String, impl std::fmt::Display)]) -> String {
    let words: Vec<String> = texts.iter().map(|(name, text)| format!("{name}={text}")).collect();
    words.join(",")
}

/// Parses a list of whole numbers. Spaces separate too, so thousands separators are not allowed here.
fn lengths(text: &str) -> Result<Value, Problem> {
    let parts = text.split(COMMAS).flat_map(str::split_whitespace);
    let lengths: Result<Vec<u64>, NotCount> = parts.map(read_listed_count).collect();
    match lengths {
        Ok(lengths) if !lengths.is_empty() => Ok(lengths.into()),
        _ => Err(Problem::NotLengths),
    }
}

fn probability(text: &str) -> Result<Value, Problem> {
    read_number(text)
        .filter(|p| (0.0..=1.0).contains(p))
        .map_or(Err(Problem::NotProbability), |p| Ok(Value::from(p)))
}

fn amount(text: &str) -> Result<Value, Problem> {
    read_number(text)
        .filter(|amount| *amount >= 0.0)
        .map_or(Err(Problem::NotAmount), |amount| Ok(Value::from(amount)))
}

fn rate(text: &str) -> Result<Value, Problem> {
    read_number(text)
        .filter(|rate| *rate > 0.0)
        .map_or(Err(Problem::NotRate), |rate| Ok(Value::from(rate)))
}

/// Parses a positive number of GiB up to 2⁵⁰ bytes, more than any device has.
fn gib(text: &str) -> Result<Value, Problem> {
    read_number(text)
        .filter(|gib| *gib > 0.0 && *gib <= 1_048_576.0)
        .map_or(Err(Problem::NotGib), |gib| Ok(Value::from(gib)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(Form::Count.read(" 2,048 "), Ok(json!(2048)));
        assert_eq!(Form::Count.read("１６"), Ok(json!(16)));
        assert_eq!(Form::OptionalCount.read("4k"), Ok(json!(4096)));
        assert_eq!(Form::SampleCount.read("50k"), Ok(json!(50_000)));
        assert_eq!(Form::Lengths.read("512, 2k 1e3"), Ok(json!([512, 2048, 1000])));
        assert_eq!(Form::Probability.read("1e-1"), Ok(json!(0.1)));
        assert_eq!(Form::Grid.read("24×36"), Ok(json!([24, 36])));
        assert_eq!(Form::OptionalCount.read(""), Ok(Value::Null));
        assert_eq!(Form::Lengths.read("512, 2048，300 7"), Ok(json!([512, 2048, 300, 7])));
        assert_eq!(Form::Lengths.read(" "), Ok(Value::Null));
        assert_eq!(
            Form::Sizes.read("480x640，300 × 200,"),
            Ok(json!([[480, 640], [300, 200]]))
        );
        assert_eq!(
            Form::Sizes.read("720p, 4K,300x200"),
            Ok(json!([[720, 1280], [2160, 3840], [300, 200]]))
        );
        assert_eq!(Form::Sizes.read(""), Ok(Value::Null));
        assert_eq!(
            Form::NamedCounts.read("batch = ４， seq=512,"),
            Ok(json!("batch=4,seq=512"))
        );
        assert_eq!(Form::NamedCounts.read(" "), Ok(Value::Null));
        assert_eq!(Form::Amount.read("2.5"), Ok(json!(2.5)));
        assert_eq!(Form::Amount.read(""), Ok(Value::Null));
        assert_eq!(Form::ModelSwitch.read("model"), Ok(Value::Null));
        assert_eq!(Form::ModelSwitch.read("false"), Ok(json!(false)));
        for text in ["0.05", ".1", "1", "0.", "0.30000000000000004"] {
            let value: f64 = text.parse().expect("a number");
            assert_eq!(Form::Probability.read(text), Ok(json!(value)), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_named() {
        assert_eq!(Form::Count.read(""), Err(Problem::NotCount));
        assert_eq!(Form::Count.read("-1"), Err(Problem::NotCount));
        assert_eq!(Form::Count.read("1.5"), Err(Problem::NotCount));
        assert_eq!(Form::Count.read("99999999999999999999"), Err(Problem::TooLarge));
        assert_eq!(Form::Grid.read("24"), Err(Problem::NotGrid));
        assert_eq!(Form::Lengths.read("512; x"), Err(Problem::NotLengths));
        assert_eq!(Form::Lengths.read(","), Err(Problem::NotLengths));
        assert_eq!(Form::Lengths.read("1,000"), Err(Problem::NotLengths));
        assert_eq!(Form::Sizes.read("480x640 300"), Err(Problem::NotSizes));
        assert_eq!(Form::Sizes.read("480, 640"), Err(Problem::NotSizes));
        for text in ["batch", "batch=", "=4", "batch=four", "4"] {
            assert_eq!(Form::NamedCounts.read(text), Err(Problem::NotNamedCounts), "{text}");
        }
        assert_eq!(Form::ModelSwitch.read("maybe"), Err(Problem::NotSwitch));
        for text in ["NaN", "1.1", "-0.5", "0.1.1", ".", "1e1"] {
            assert_eq!(Form::Probability.read(text), Err(Problem::NotProbability), "{text}");
        }
        assert_eq!(Form::Amount.read("-1"), Err(Problem::NotAmount));
        assert_eq!(
            (Form::Rate.read("50"), Form::Rate.read("")),
            (Ok(json!(50.0)), Ok(Value::Null))
        );
        for text in ["0", "-1", "400 Gbit/s"] {
            assert_eq!(Form::Rate.read(text), Err(Problem::NotRate), "{text}");
        }
        assert_eq!(Form::Gib.read(" 23.5 "), Ok(json!(23.5)));
        assert_eq!(Form::Gib.read(""), Ok(Value::Null));
        for text in ["0", "-3", "24 GiB", "1048577"] {
            assert_eq!(Form::Gib.read(text), Err(Problem::NotGib), "{text}");
        }
        assert_eq!(Form::Switch.read("yes"), Err(Problem::NotSwitch));
        assert_eq!(Form::Choice(&["a"]).read("b"), Err(Problem::NotChoice(&["a"])));
    }
}
