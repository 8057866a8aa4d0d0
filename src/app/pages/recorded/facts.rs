//! Facts that a recording fixes.

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use super::gallery::sizes;
use super::page::RecordedState;
use crate::i18n::{Words, t_string, use_i18n};
use crate::part::part;
use crate::worker::recorded::Facts;

/// Libraries whose versions decide what a step takes; the others are in the file.
const LIBRARIES: [(&str, &str); 7] = [
    ("torch", "PyTorch"),
    ("transformers", "transformers"),
    ("peft", "PEFT"),
    ("trl", "TRL"),
    ("torchvision", "torchvision"),
    ("timm", "timm"),
    ("diffusers", "diffusers"),
];

/// List of the facts that the recording fixes, as names and values.
#[component]
pub fn FactList() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    part(move || {
        let facts = page.facts.get()?;
        let item = page.item();
        let mut rows = rows(i18n, &facts);
        if let Some(item) = item {
            let sample = sizes(i18n, &item);
            rows.insert(1, (t_string!(i18n, recorded.step).to_string(), sample));
            let source = item.source.unwrap_or_else(|| match item.like {
                Some(like) => t_string!(i18n, recorded.default_like, like = like),
                None => t_string!(i18n, recorded.class_default).to_string(),
            });
            rows.insert(1, (t_string!(i18n, recorded.size_from).to_string(), source));
            rows[0].1 = item.title;
        }
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> })
            .collect();
        Some(view! { <dl class="facts small" data-testid="facts">{rows}</dl> }.into_any())
    })
}

fn rows(i18n: Words, facts: &Facts) -> Vec<(String, String)> {
    let [major, minor] = facts.capability;
    let versions = LIBRARIES.iter().filter_map(|(key, name)| {
        let (_, version) = facts.versions.iter().find(|(found, _)| found == key)?;
        Some(format!("{name} {version}"))
    });
    let [rank, world] = facts.rank;
    let rank = if world > 1 {
        t_string!(
            i18n,
            recorded.rank_of,
            rank = (rank + 1).to_string(),
            world = world.to_string()
        )
    } else {
        String::new()
    };
    vec![
        (t_string!(i18n, recorded.class).to_string(), facts.model.clone()),
        (
            t_string!(i18n, recorded.made_for).to_string(),
            format!("{} ({major}.{minor})", facts.card),
        ),
        (t_string!(i18n, recorded.process).to_string(), rank),
        (
            t_string!(i18n, recorded.steps).to_string(),
            facts.ran.map(|(steps, _)| steps.to_string()).unwrap_or_default(),
        ),
        (
            t_string!(i18n, recorded.operations).to_string(),
            facts.ran.map(|(_, operations)| grouped(operations)).unwrap_or_default(),
        ),
        (
            t_string!(i18n, recorded.versions).to_string(),
            versions.collect::<Vec<_>>().join(", "),
        ),
        (t_string!(i18n, recorded.command).to_string(), facts.command.clone()),
    ]
}
