//! Hypotheses of the kinds of evidence: each that the facts allow, with what speaks for and against it.

use std::collections::{BTreeMap, BTreeSet};

use super::known::Known;
use super::{Cause, Finding, Quote};
use crate::facts::{Fact, Facts, Place};
use crate::kind::{self, Condition, Kind};

/// Most lines that a finding quotes.
const MOST_QUOTES: usize = 6;

/// Findings of every kind that the facts allow. A hypothesis may yield facts for others: those are tried again.
pub fn findings(known: &mut Known<'_>) -> Vec<Finding> {
    let mut found: BTreeMap<&'static str, Finding> = BTreeMap::new();
    for _ in 0..3 {
        let mut is_new = false;
        for (name, kind) in kind::all() {
            if kind.words.is_empty() || kind.is_computed || found.contains_key(name.as_str()) {
                continue;
            }
            let Some(finding) = of_kind(name, kind, known) else {
                continue;
            };
            for fact in &kind.yields {
                is_new |= !known.facts.has(*fact);
                let place = finding
                    .quotes
                    .first()
                    .map_or(Place { text: 0, line: 0 }, |quote| quote.place);
                known.facts.add(*fact, place);
            }
            found.insert(name, finding);
        }
        known.facts.settle_host();
        if !is_new {
            break;
        }
    }
    // What held before other facts were known may not hold any more.
    found.retain(|name, _| {
        let Some((_, kind)) = kind::named(name) else {
            return false;
        };
        allows(kind, &known.facts)
    });
    found.into_values().collect()
}

fn allows(kind: &Kind, facts: &Facts) -> bool {
    kind.needs.iter().all(|condition| condition.holds(facts))
        && !kind.unless.iter().any(|condition| condition.holds(facts))
}

fn of_kind(name: &'static str, kind: &'static Kind, known: &Known<'_>) -> Option<Finding> {
    let signs: Vec<_> = known.signs.iter().filter(|(_, sign)| sign.kind == name).collect();
    if !kind.sign.is_empty() && signs.is_empty() || !allows(kind, &known.facts) {
        return None;
    }
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    let mut places = Vec::new();
    for (text, sign) in &signs {
        places.push(Place {
            text: *text,
            line: sign.line,
        });
        for (key, value) in &sign.values {
            values.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    make(name, &known.facts, values, places, &known.texts)
}

/// The finding of a kind, with values for its gaps and the lines that show it; `None` if there is no such kind or its
/// title lacks a value.
pub fn make(
    name: &str,
    facts: &Facts,
    mut values: BTreeMap<String, String>,
    mut places: Vec<Place>,
    texts: &[&crate::Digest],
) -> Option<Finding> {
    let (name, kind) = kind::named(name)?;
    for (key, value) in &facts.values {
        values.entry(key.clone()).or_insert_with(|| value.clone());
    }
    for (key, formula) in &kind.derived {
        if let Some(value) = derived(formula, &values) {
            values.insert(key.clone(), value);
        }
    }
    let texts_of_kind = kind.words.get("en")?;
    let title = texts_of_kind.title.fill(format!("{name}.title"), facts, &values)?;
    let why = texts_of_kind.why.iter().enumerate();
    let why = why
        .filter_map(|(i, line)| line.fill(format!("{name}.why.{i}"), facts, &values))
        .collect();
    let steps = texts_of_kind.steps.iter().enumerate();
    let advice =
        steps.filter_map(|(i, line)| Some((line.action, line.fill(format!("{name}.step.{i}"), facts, &values)?)));
    let for_it = speaking_for(kind, facts);
    let against: Vec<_> = kind
        .lowered_by
        .iter()
        .filter(|condition| condition.holds(facts))
        .collect();
    places.extend(for_it.iter().flat_map(|fact| facts.places(*fact)));
    let tools = kind.needs.iter().flat_map(Condition::tools);
    places.extend(tools.filter_map(|tool| facts.version_place(tool)));
    let mut confidence = kind.confidence;
    if kind.raised_by.iter().any(|condition| condition.holds(facts)) {
        confidence = confidence.raised();
    }
    for _ in &against {
        confidence = confidence.lowered();
    }
    Some(Finding {
        confidence,
        cause: Cause::Known {
            kind: name.to_owned(),
            title,
            why,
        },
        advice: advice.collect(),
        steps: Vec::new(),
        speaks_for: for_it.iter().map(ToString::to_string).collect(),
        speaks_against: against
            .iter()
            .flat_map(|condition| condition.facts())
            .map(|fact| fact.to_string())
            .collect(),
        quotes: quotes(&places, texts),
    })
}

/// Facts that speak for a kind's hypothesis.
fn speaking_for(kind: &Kind, facts: &Facts) -> BTreeSet<Fact> {
    let conditions = kind.needs.iter().chain(&kind.raised_by);
    conditions
        .flat_map(Condition::facts)
        .filter(|fact| facts.has(*fact))
        .collect()
}

/// The lines of places, as they were written, each once and in their order.
pub fn quotes(places: &[Place], texts: &[&crate::Digest]) -> Vec<Quote> {
    let mut seen = BTreeSet::new();
    let quote = |place: &Place| {
        let quote = texts.get(place.text)?.quotes.get(&place.line)?;
        seen.insert(*place).then(|| Quote {
            place: *place,
            line: place.line,
            text: quote.clone(),
        })
    };
    let mut found: Vec<Quote> = places.iter().filter_map(quote).take(MOST_QUOTES).collect();
    found.sort_by_key(|quote| quote.place);
    found
}

/// The value of `a - b`, `a + b`, `a * b` or `a / b`, with as many decimals as the operands have.
fn derived(formula: &str, values: &BTreeMap<String, String>) -> Option<String> {
    let mut words = formula.split_ascii_whitespace();
    let (left, sign, right) = (words.next()?, words.next()?, words.next()?);
    let number = |word: &str| {
        let text = values.get(word).map_or(word, String::as_str).replace(',', "");
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let text = text[..end].to_owned();
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some((text.parse::<f64>().ok()?, decimals))
    };
    let ((left, places), (right, others)) = (number(left)?, number(right)?);
    let value = match sign {
        "-" => left - right,
        "+" => left + right,
        "*" => left * right,
        "/" if right != 0.0 => left / right,
        _ => return None,
    };
    let places = if sign == "/" { 2 } else { places.max(others).min(2) };
    (value.is_finite() && value >= 0.0).then(|| format!("{value:.places$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_derived_with_their_decimals() {
        let values = BTreeMap::from([
            ("total".to_owned(), "23.68 GiB".to_owned()),
            ("free".to_owned(), "3.02".to_owned()),
        ]);
        assert_eq!(derived("total - free", &values).as_deref(), Some("20.66"));
        assert_eq!(derived("free - total", &values), None);
        assert_eq!(derived("total / 0", &values), None);
    }
}
