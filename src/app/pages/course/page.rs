//! State of the course page.

use std::sync::Arc;

use leptos::prelude::*;

use super::acts::replace;
use crate::charts::kind_class;
use crate::course::{Book, Given, Known, Marks, Names, Page};
use crate::i18n::{Locale, Words};
use crate::shell::{Store, preferences};
use crate::state::{Draft, Key};
use crate::words;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Key under which the browser stores the reader's ticks.
pub const KEPT: &str = "course";

/// Message shown before any language is loaded.
pub const FAILED: &str = "The course could not be loaded. Is the page's folder complete, or the network gone? Reload to try again. 课程未能载入，请刷新重试。課程未能載入，請重新整理。";

/// State of the course page: the course, the open rows, and the reader's entries.
#[derive(Clone, Copy)]
pub struct CourseState {
    /// The course in the page's language.
    pub book: RwSignal<Option<Arc<Book>>>,
    /// True if the course could not be loaded.
    pub failed: RwSignal<bool>,
    /// Language requested last.
    pub wanted: StoredValue<Option<Locale>>,
    pub(super) marks: RwSignal<Marks>,
    known: StoredValue<Known>,
    engine: Engine,
    pub(super) store: Store,
    i18n: Words,
}

impl CourseState {
    /// Creates the state with the ticks stored by the browser.
    pub fn new(store: Store, i18n: Words) -> Self {
        let kept = preferences::read(KEPT).unwrap_or_default();
        Self {
            book: RwSignal::new(None),
            failed: RwSignal::new(false),
            wanted: StoredValue::new(None),
            marks: RwSignal::new(Marks::read(&kept)),
            known: StoredValue::new(Known::default()),
            engine: Engine::get(),
            store,
            i18n,
        }
    }

    /// Ids of the open rows: one row, or all rows of a part; the first row by default.
    pub(super) fn open(self, book: &Book) -> Vec<String> {
        let wanted = untrack(|| self.store.text(Key::Row));
        for (part, rows) in book.parts() {
            if part == wanted {
                return rows.map(|row| row.id.to_owned()).collect();
            }
        }
        match wanted.as_str() {
            "" => book.rows().next().map(|row| row.id.to_owned()).into_iter().collect(),
            _ => vec![wanted],
        }
    }

    /// Calls `look` with the page of a row; `None` if there is no such row.
    pub(super) fn page<T>(self, book: &Book, id: &str, look: impl FnOnce(&Page) -> T) -> Option<T> {
        let row = book.row(id)?;
        let given = Given::read(&untrack(|| self.store.text(Key::Given)));
        let seed = untrack(|| self.store.text(Key::Seed)).parse().ok();
        let marks = self.marks.get_untracked();
        let (phase, part) = (|p| words::phase(self.i18n, p), |p| words::part(self.i18n, p));
        self.known.try_with_value(|known| {
            look(&Page {
                book,
                row,
                given: &given,
                seed,
                marks: &marks,
                known,
                names: Names {
                    phase: &phase,
                    part: &part,
                    class: &kind_class,
                },
            })
        })
    }

    /// Renders the open rows as HTML; `None` until the course is loaded.
    pub fn html(self) -> Option<String> {
        let book = self.book.get()?;
        let figure = untrack(|| self.store.text(Key::Figure));
        let mut out = String::new();
        let open = self.open(&book);
        for id in &open {
            let row = self.page(&book, id, |page| match page.row.place(&figure) {
                Some(place) => format!(
                    "<article class=\"course-row\" data-row=\"{id}\">{}</article>",
                    page.block(place)
                ),
                None => page.whole(),
            });
            out += &row.unwrap_or_else(|| book.missing(id));
        }
        let is_alone = untrack(|| self.store.text(Key::Embed)) == "1";
        if let ([id], false) = (&open[..], is_alone) {
            out += &book.turn(id);
        }
        let whole = if is_alone { out } else { tools(&book) + &out };
        // Untracked: the store's draft changes with every letter typed into a field.
        Some(untrack(|| self.keep(&whole)))
    }

    /// Adds language, theme and presentation mode to all links, so that they persist on the next page.
    pub(super) fn keep(self, html: &str) -> String {
        let kept = |key: Key| match self.store.text(key).as_str() {
            "" => String::new(),
            value => format!("{}={value}&amp;", key.name()),
        };
        let (frame, presenting) = (kept(Key::Lang) + &kept(Key::Theme), kept(Key::Present));
        let mut html = html.replace("href=\"#/course?", &format!("href=\"#/course?{presenting}{frame}"));
        if !frame.is_empty() {
            for page in ["", "attention", "diagnose"] {
                html = html.replace(&format!("href=\"#/{page}?"), &format!("href=\"#/{page}?{frame}"));
            }
        }
        html
    }

    /// Renders the table of contents; reactive to ticks.
    pub fn contents(self) -> String {
        let here = self.store.text(Key::Row);
        self.book.get().map_or_else(String::new, |book| {
            let first = book.rows().next().map_or("", |row| row.id);
            let here = if here.is_empty() { first } else { &here };
            self.keep(&self.marks.with(|marks| book.contents(here, marks)))
        })
    }

    /// Asks the engine for the setups of the open rows that have no result yet.
    pub fn ask(self) {
        let Some(book) = self.book.try_get_untracked().flatten() else {
            return;
        };
        let mut queries: Vec<String> = Vec::new();
        for id in self.open(&book) {
            for query in self.page(&book, &id, |page| page.unknown()).unwrap_or_default() {
                if !queries.contains(&query) {
                    queries.push(query);
                }
            }
        }
        if queries.is_empty() {
            return self.engine.cancel(Slot::Setups);
        }
        let drafts = queries.iter().map(|query| {
            let mut draft = Draft::default();
            // Problems are ignored: a test checks the course's own queries, and the engine refuses numbers out of
            // range.
            draft.read_pairs(query);
            draft
        });
        let ask = Ask::Setups(drafts.collect());
        self.engine.ask(Slot::Setups, ask, move |answer, progress| {
            let place = (progress.done as usize).saturating_sub(1);
            if let (Some(Answer::Setup(outcome)), Some(query)) = (answer, queries.get(place)) {
                let outcome = outcome
                    .map(|summary| *summary)
                    .map_err(|why| words::refusal(self.i18n, &why));
                self.known.update_value(|known| known.insert(query.clone(), outcome));
                self.show_cases();
            }
        });
    }

    /// Inserts the engine's results into the document.
    pub(super) fn show_cases(self) {
        let Some(book) = self.book.try_get_untracked().flatten() else {
            return;
        };
        for id in self.open(&book) {
            self.page(&book, &id, |page| {
                for place in 0..page.row.blocks.len() {
                    let selector = format!("[data-row='{id}'] [data-block='{place}'] > [data-cases]");
                    if let Ok(Some(element)) = document().query_selector(&selector) {
                        replace(&element, &self.keep(&page.cases(place)));
                    }
                }
            });
        }
    }
}

/// Renders the tools for the open rows.
fn tools(book: &Book) -> String {
    let button = |act: &str| {
        format!(
            "<button type=\"button\" class=\"tool\" data-act=\"{act}\" data-testid=\"course-{act}\">{}</button>",
            book.word(act)
        )
    };
    format!(
        "<div class=\"course-tools\">{}{}{}</div>",
        button("present"),
        button("print"),
        button("export")
    )
}

/// Turns presentation mode, with large type and nothing but the row, on or off.
pub fn set_presenting(on: bool) {
    if let Some(root) = document().document_element() {
        // Changing an attribute of the root element cannot fail.
        match on {
            true => root.set_attribute("data-present", "1").ok(),
            false => root.remove_attribute("data-present").ok(),
        };
    }
}
