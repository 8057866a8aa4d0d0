//! The course's checklists: evidence ticks items automatically, the user ticks the rest.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::answer_data::Check;
use super::reader::Reader;
use crate::course::{Book, Marks};
use crate::i18n::{Locale, t, t_string, use_i18n};
use crate::pages::course::{KEPT, load, marked};
use crate::part::part;
use crate::shell::preferences;

/// Rows of the course that contain the checklists.
const ROWS: [&str; 3] = ["9.diagnose", "9.lists", "11.lists"];

/// Checklists of three rows; the course is fetched when they are opened.
#[component]
pub fn Checklists() -> impl IntoView {
    let i18n = use_i18n();
    let open = RwSignal::new(false);
    let book = RwSignal::new(None::<&'static Book>);
    // The language that was asked for last. A course in another one, which arrives after the language was switched, must
    // not take the place of the right one.
    let wanted = StoredValue::new(None::<Locale>);
    let marks = RwSignal::new(Marks::read(&preferences::read(KEPT).unwrap_or_default()));
    Effect::new(move || {
        let locale = i18n.locale();
        if !open.get() {
            return;
        }
        wanted.set_value(Some(locale));
        spawn_local(async move {
            let read = load(locale).await;
            if wanted.try_get_value().flatten() == Some(locale) {
                book.set(read);
            }
        });
    });
    let lists = part(move || {
        let book = book.get()?;
        let all: Vec<_> = ROWS
            .iter()
            .filter_map(|id| book.row(id))
            .map(|row| {
                let lists: Vec<_> = row
                    .checklists()
                    .map(|list| {
                        let items: Vec<_> = list
                            .checks()
                            .map(|(tick, words)| view! { <ChecklistItem tick words marks /> })
                            .collect();
                        view! {
                            <h4>{marked(list.title())}</h4>
                            <ul class="course-checklist">{items}</ul>
                        }
                    })
                    .collect();
                view! {
                    <section class="diagnose-list">
                        <h3><a href=format!("#/course?row={}", row.id)>{row.title()}</a></h3>
                        {lists}
                    </section>
                }
            })
            .collect();
        Some(view! { <div class="diagnose-lists">{all}</div> }.into_any())
    });
    let on_toggle = move |event: leptos::ev::Event| {
        let details: web_sys::HtmlDetailsElement = event_target(&event);
        open.set(details.open());
    };
    view! {
        <details class="card diagnose-checklists" on:toggle=on_toggle data-testid="checklists">
            <summary>{t!(i18n, diagnose.checklists)}</summary>
            <p class="muted small">{t!(i18n, diagnose.checklists_explain)}</p>
            {lists}
        </details>
    }
}

/// A checklist item, ticked by the evidence or by hand.
#[component]
fn ChecklistItem(tick: String, words: &'static str, marks: RwSignal<Marks>) -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let name = tick.clone();
    let check = Memo::new(move |_| {
        reader.answer.with(|answer| {
            let all = &answer.as_ref()?.checks;
            all.iter()
                .find(|check| check.item == name)
                .map(|Check { is_done, said, .. }| (*is_done, reader.phrases.with(|phrases| phrases.text_of(said))))
        })
    });
    let is_answered = move || check.get().is_some_and(|(is_done, _)| is_done);
    let (name, to_set) = (tick.clone(), tick.clone());
    let is_marked = Memo::new(move |_| marks.with(|marks| marks.has(&tick)));
    let by = move || match (is_answered(), is_marked.get()) {
        (true, _) => "evidence",
        (false, true) => "hand",
        (false, false) => "",
    };
    let set = move |on: bool| {
        marks.update(|marks| marks.set(&to_set, on));
        preferences::write(KEPT, Some(&marks.with_untracked(Marks::write)));
    };
    let said = part(move || {
        let (is_done, said) = check.get()?;
        let from = is_done.then(|| format!(" ({})", t_string!(i18n, diagnose.ticked)));
        Some(view! { <span class="diagnose-said small muted">" " {said} {from}</span> }.into_any())
    });
    view! {
        <li data-testid="check" data-name=name data-value=by>
            <label>
                <input
                    type="checkbox"
                    prop:checked=move || is_answered() || is_marked.get()
                    prop:disabled=is_answered
                    on:change:target=move |event| set(event.target().checked())
                />
                <span><span>{marked(words)}</span>{said}</span>
            </label>
        </li>
    }
}
