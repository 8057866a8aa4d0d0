//! The selected instant of a recording: its live allocations, by group.

use leptos::prelude::*;

use super::answer_data::{Group, Instant};
use super::reader::Reader;
use super::recording::{View, bytes};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};

/// Lists the largest allocations live at the selected instant.
#[component]
pub fn InstantList(index: u32, look: View) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let question = reader.question();
    let instant = Memo::new(move |_| look.instant());
    Effect::new(move || question.ask("instant", &[index, instant.get()]));
    part(move || {
        let now: Instant = question
            .answer
            .with(|text| serde_json::from_str(text.as_deref()?).ok())?;
        let title = t_string!(
            i18n,
            diagnose.at_event,
            event = now.event.to_string(),
            bytes = bytes(now.total),
            allocations = now.count.to_string()
        );
        let list = view! {
            <div class="diagnose-instant" data-testid="live" data-value=now.total.to_string()>
                <h3>{title}</h3>
                {groups(i18n, reader, now.largest)}
            </div>
        };
        Some(list.into_any())
    })
}

/// Formats allocations grouped by stack as a table.
pub fn groups(i18n: Words, reader: Reader, groups: Vec<Group>) -> AnyView {
    if groups.is_empty() {
        return view! { <p>{t!(i18n, diagnose.no_groups)}</p> }.into_any();
    }
    let rows: Vec<_> = groups
        .into_iter()
        .map(|group| {
            let kind = format!("c_{}", group.category.replace('-', "_"));
            let place = match group.stack.is_empty() {
                true => t!(i18n, diagnose.no_stack).into_any(),
                false => view! { <code>{group.stack.join(" ← ")}</code> }.into_any(),
            };
            view! {
                <tr data-testid="group">
                    <td class="diagnose-bytes">{bytes(group.bytes)}</td>
                    <td class="diagnose-bytes">{group.count.to_string()}</td>
                    <td>
                        <span class=format!("diagnose-key diagnose-{}", group.category) aria-hidden="true"></span>
                        {text(move || reader.phrase(&kind))}
                    </td>
                    <td class="diagnose-place">{place}</td>
                </tr>
            }
        })
        .collect();
    view! {
        <div class="diagnose-scroll" tabindex="0" role="region" aria-label=move || t_string!(i18n, diagnose.made_in)>
            <table class="diagnose-table">
                <thead>
                    <tr>
                        <th scope="col">{t!(i18n, breakdown.bytes)}</th>
                        <th scope="col">{t!(i18n, diagnose.allocations)}</th>
                        <th scope="col">{t!(i18n, diagnose.category)}</th>
                        <th scope="col">{t!(i18n, diagnose.made_in)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}
