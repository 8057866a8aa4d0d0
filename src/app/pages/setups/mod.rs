//! Setups that this browser keeps: saved under names, and the latest ones.

mod row;
mod words;

use std::time::Duration;

use gloo_file::File;
use leptos::prelude::*;

use crate::charts::save_text;
use crate::events::Pending;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::{Store, preferences};
use crate::state::{Saved, is_of_setup, setup_of};
use crate::widgets::{OpenFiles, read_text};
use row::{Latest, Row};
use words::title;

/// Where this browser keeps setups with names.
const SAVED: &str = "setups";

/// Time in which a note on what was done stays.
const NOTED: Duration = Duration::from_millis(4000);

/// Setups with names, and a way to change them.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// The setups.
    pub saved: RwSignal<Saved>,
    /// What was done last.
    note: RwSignal<String>,
    fading: Pending,
}

impl Kept {
    fn read() -> Self {
        Self {
            saved: RwSignal::new(Saved::read(&preferences::read(SAVED).unwrap_or_default())),
            note: RwSignal::default(),
            fading: Pending::new(),
        }
    }

    /// Changes the setups, here and in this browser.
    pub fn change(self, change: impl FnOnce(&mut Saved)) {
        self.saved.update(change);
        preferences::write(SAVED, Some(&self.saved.with_untracked(Saved::write)));
    }

    /// Says what was done, for a while.
    pub fn say(self, words: String) {
        self.note.set(words);
        self.fading.begin(NOTED, move || self.note.set(String::new()));
    }
}

/// A field for the name of the setup on screen, the setups with names, and the latest ones.
#[component]
pub fn SetupsPanel() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let kept = Kept::read();
    let now = move || store.reading().with(|reading| reading.good.only(is_of_setup));
    let name = RwSignal::new(String::new());
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let now = untrack(now);
        let given = name.get_untracked();
        let given = match given.trim() {
            "" => title(i18n, &now),
            given => given.to_owned(),
        };
        kept.change(|saved| saved.save(&given, &now.to_query()));
        kept.say(t_string!(i18n, setups.is_saved, name = given));
        name.set(String::new());
    };
    // Rows keep their elements while others change, so that a name that is being written keeps its focus.
    let rows = move || {
        let saved = kept.saved.get();
        saved.all().to_vec()
    };
    view! {
        <div class="setups-panel" data-testid="setups-panel">
            <form class="setups-save" on:submit=save>
                <input
                    type="text"
                    data-testid="setup-name"
                    autocomplete="off"
                    maxlength="80"
                    aria-label=move || t_string!(i18n, setups.name)
                    placeholder=text(move || title(i18n, &now()))
                    prop:value=move || name.get()
                    on:input:target=move |ev| name.set(ev.target().value())
                />
                <button type="submit" class="tool" data-testid="setup-save">
                    {t!(i18n, setups.save)}
                </button>
            </form>
            <p class="muted small setups-note" role="status">{text(move || kept.note.get())}</p>
            <ul class="setups-list" data-testid="setups-saved">
                <For each=rows key=|named| (named.name.clone(), named.query.clone()) children=move |named| view! { <Row named kept /> } />
            </ul>
            <LatestSetups />
            <Files kept />
        </div>
    }
}

/// The latest setups, without the one on screen, which comes first and leads nowhere.
#[component]
fn LatestSetups() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    part(move || {
        let lines = Store::latest();
        let here = store
            .reading()
            .with(|reading| reading.good.only(is_of_setup))
            .to_query();
        let rows: Vec<_> = lines
            .lines()
            .filter(|line| *line != here)
            .filter_map(setup_of)
            .map(|setup| view! { <Latest setup /> })
            .collect();
        let is_any = !rows.is_empty();
        is_any.then(|| {
            view! {
                <h3>{t!(i18n, setups.latest)}</h3>
                <ul class="setups-list setups-latest">{rows}</ul>
            }
            .into_any()
        })
    })
}

/// Takes the setups elsewhere, and brings them back.
#[component]
fn Files(kept: Kept) -> impl IntoView {
    let i18n = use_i18n();
    let is_any = Memo::new(move |_| kept.saved.with(|saved| !saved.all().is_empty()));
    let save = move |_| {
        let text = kept.saved.with_untracked(Saved::write);
        save_text(&text, "application/json", "vramscope-setups.json");
    };
    let take = Callback::new(move |files: Vec<File>| {
        let Some(file) = files.into_iter().next() else { return };
        read_text(&file, move |text| {
            let mut count = 0;
            kept.change(|saved| count = saved.add(&text));
            kept.say(t_string!(i18n, setups.added, count = count.to_string()));
        });
    });
    view! {
        <div class="setups-files">
            <Show when=move || is_any.get()>
                <button type="button" class="tool" data-testid="setups-export" on:click=save>
                    {t!(i18n, setups.export)}
                </button>
            </Show>
            <OpenFiles label=t!(i18n, setups.import).into_any() testid="setups-import" accept=".json,application/json" take />
        </div>
        <p class="muted small">{t!(i18n, setups.private)}</p>
    }
}
