//! Changes to the named run and their savings.

use leptos::prelude::*;
use vramscope_engine::format::{difference, gib, rounds_to_nothing};
use vramscope_engine::units::Bytes;

use super::answer_data::Fix;
use super::finding::{entry, verdict};
use super::reader::Reader;
use super::setup::planner;
use crate::i18n::{t_string, use_i18n};
use crate::part::part;
use crate::shell::Store;

/// Number of changes listed.
const LISTED: usize = 12;

/// Lists single changes, largest saving first, then the planner's ladder.
#[component]
pub fn FixesView() -> impl IntoView {
    let reader = Reader::get();
    let is_shown = Memo::new(move |_| reader.fixes.with(|(fixes, left)| !fixes.is_empty() || *left > 0));
    part(move || {
        is_shown.get().then(|| {
            view! {
                <Single />
                <Ladder />
            }
            .into_any()
        })
    })
}

#[component]
fn Single() -> impl IntoView {
    let i18n = use_i18n();
    let (reader, store) = (Reader::get(), Store::get());
    let saving = Memo::new(move |_| {
        let mut all: Vec<Fix> = reader.fixes.with(|(fixes, _)| {
            let saving = fixes
                .iter()
                .filter(|fix| fix.difference < 0 && !rounds_to_nothing(fix.difference));
            saving.cloned().collect()
        });
        all.sort_by_key(|fix| fix.difference);
        all.truncate(LISTED);
        all
    });
    let left = Memo::new(move |_| {
        reader
            .fixes
            .with(|(fixes, left)| (*left > 0).then_some((fixes.len(), *left)))
    });
    let rows = part(move || {
        let rows = saving.get().into_iter().map(|fix| {
            let (name, now, then) = entry(i18n, store, &fix.key, &fix.value);
            let href = planner(store, &[(fix.key.clone(), fix.value.clone())]);
            view! {
                <tr data-testid="fix" data-name=format!("{}={}", fix.key, fix.value) data-value=fix.difference.to_string()>
                    <th scope="row">
                        <a href=href>{name} ": " {now} " → " {then}</a>
                    </th>
                    <td class="diagnose-bytes">{difference(fix.difference)}</td>
                    <td>{verdict(i18n, &fix)}</td>
                </tr>
            }
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() && left.get().is_none() {
            return Some(view! { <p>{t_string!(i18n, diagnose.no_fixes)}</p> }.into_any());
        }
        Some(view! { <table class="diagnose-table"><tbody>{rows}</tbody></table> }.into_any())
    });
    view! {
        <section class="card" data-testid="fixes">
            <h2>{move || t_string!(i18n, diagnose.fixes)}</h2>
            <p class="muted small">{move || t_string!(i18n, diagnose.fixes_explain)}</p>
            {rows}
            {part(move || {
                let (done, left) = left.get()?;
                let said = t_string!(i18n, diagnose.trying, done = done.to_string(), of = (done + left).to_string());
                Some(view! { <p class="muted small" role="status">{said}</p> }.into_any())
            })}
        </section>
    }
}

#[component]
fn Ladder() -> impl IntoView {
    let i18n = use_i18n();
    let (reader, store) = (Reader::get(), Store::get());
    part(move || {
        let ladder = reader.ladder.get()?;
        let (limit, rungs) = &*ladder;
        let mut kept: Vec<(String, String)> = Vec::new();
        let rows: Vec<_> = rungs
            .iter()
            .map(|rung| {
                let what = match &rung.change {
                    None => t_string!(i18n, diagnose.as_it_is).to_owned(),
                    Some((key, value)) => {
                        let (name, _, then) = entry(i18n, store, key, value);
                        format!("{name}: {then}")
                    }
                };
                if rung.kept {
                    kept.extend(rung.change.clone());
                }
                let outcome = match (rung.trains, rung.kept) {
                    (true, _) => t_string!(i18n, recommend.trains),
                    (false, true) => t_string!(i18n, recommend.not_yet),
                    (false, false) => t_string!(i18n, diagnose.skipped),
                };
                let peak = rung.peak.map(|peak| gib(Bytes::new(peak as u64)));
                let bytes = rung.change.as_ref().map(|_| difference(rung.difference));
                view! {
                    <tr data-testid="rung" data-value=rung.trains.to_string() class:muted=!rung.kept>
                        <th scope="row">{what}</th>
                        <td class="diagnose-bytes">{peak}</td>
                        <td class="diagnose-bytes">{bytes}</td>
                        <td>{outcome}</td>
                    </tr>
                }
            })
            .collect();
        let link = (!kept.is_empty()).then(|| {
            let href = planner(store, &kept);
            view! { <p><a href=href data-testid="ladder-open">{t_string!(i18n, diagnose.ladder_open)}</a></p> }
        });
        let limit = gib(Bytes::new(*limit as u64));
        let view = view! {
            <section class="card" data-testid="ladder">
                <h2>{t_string!(i18n, diagnose.ladder)}</h2>
                <p class="muted small">{t_string!(i18n, diagnose.ladder_explain, limit = limit)}</p>
                <div class="diagnose-scroll" tabindex="0" role="region" aria-label=t_string!(i18n, diagnose.ladder)>
                    <table class="diagnose-table"><tbody>{rows}</tbody></table>
                </div>
                {link}
            </section>
        };
        Some(view.into_any())
    })
}
