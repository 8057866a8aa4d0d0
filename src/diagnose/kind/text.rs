//! Words of a kind: lines with conditions and gaps.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};
use vramscope_phrases::gaps;

use super::Condition;
use crate::facts::Facts;
use crate::finding::Action;
use crate::finding::words::{Gap, Sentence};

/// Words of a kind in one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// The hypothesis in one sentence.
    pub title: Line,
    /// What speaks for it, with the numbers of the text; a line whose gaps have no values is left out.
    #[serde(default)]
    pub why: Vec<Line>,
    /// What to do, the most important first.
    pub steps: Vec<Line>,
}

/// A line: `[lora,!one-card] <shorter> Text with {{ gap }}.` Conditions and the action that it carries out come first;
/// both may be absent.
#[derive(Debug, Clone)]
pub struct Line {
    /// Conditions that all have to hold for the line to be said.
    pub conditions: Vec<Condition>,
    /// Action of a simulated change that carries it out.
    pub action: Option<Action>,
    /// Names of the gaps, in the order of the letters that stand for them in the phrase.
    pub gaps: Vec<String>,
    /// Phrase with gaps `a`, `b`, `c`, …
    pub phrase: String,
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut conditions = Vec::new();
        if let Some((list, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            conditions = list
                .split(',')
                .map(|one| Condition::parse(one.trim()))
                .collect::<Result<_, _>>()?;
            rest = after;
        }
        let mut action = None;
        if let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once("> "))
            && let Ok(named) = serde_json::from_value(name.into())
        {
            action = Some(named);
            rest = after;
        }
        let names: Vec<String> = gaps(rest).into_iter().map(str::to_owned).collect();
        if names.len() > 26 {
            return Err(format!("more gaps than letters: {text}"));
        }
        let mut phrase = rest.to_owned();
        // Names are replaced by marks first, so that a name of one letter is not replaced twice.
        for (i, name) in names.iter().enumerate() {
            phrase = phrase.replace(&format!("{{{{ {name} }}}}"), &format!("\u{1}{i}\u{2}"));
        }
        for (i, letter) in (0..names.len()).zip('a'..='z') {
            phrase = phrase.replace(&format!("\u{1}{i}\u{2}"), &format!("{{{{ {letter} }}}}"));
        }
        Ok(Self {
            conditions,
            action,
            gaps: names,
            phrase,
        })
    }

    /// The line with its values; `None` if a condition does not hold or a gap has no value.
    pub fn fill(&self, key: String, facts: &Facts, values: &BTreeMap<String, String>) -> Option<Sentence> {
        if !self.conditions.iter().all(|condition| condition.holds(facts)) {
            return None;
        }
        let gaps = self.gaps.iter().map(|name| values.get(name).cloned().map(Gap::Text));
        Some(Sentence {
            key,
            gaps: gaps.collect::<Option<_>>()?,
        })
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Texts {
    /// Every line with the end of its key.
    pub fn lines(&self) -> impl Iterator<Item = (String, &Line)> {
        let title = std::iter::once(("title".to_owned(), &self.title));
        let why = self.why.iter().enumerate().map(|(i, line)| (format!("why.{i}"), line));
        let steps = self
            .steps
            .iter()
            .enumerate()
            .map(|(i, line)| (format!("step.{i}"), line));
        title.chain(why).chain(steps)
    }
}

/// Phrases of all kinds in a language, by key.
pub fn phrases(language: &str) -> impl Iterator<Item = (String, &'static str)> {
    super::all().iter().flat_map(move |(name, kind)| {
        let texts = kind.words.get(language).or_else(|| kind.words.get("en"));
        let lines = texts.into_iter().flat_map(Texts::lines);
        lines.map(move |(end, line)| (format!("{name}.{end}"), line.phrase.as_str()))
    })
}
