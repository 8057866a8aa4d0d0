//! State of the course page.

use leptos::prelude::*;

use crate::course::{Block, Book, Given, Input, Known, Links, Marks, cases, inputs};
use crate::i18n::{Locale, Words};
use crate::shell::{Store, preferences};
use crate::state::{Draft, Key};
use crate::words;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Key under which the browser stores the reader's ticks.
pub const KEPT: &str = "course";

/// State of the course page: the course, the open rows, and the reader's entries.
#[derive(Clone, Copy)]
pub struct CourseState {
    /// The course in the page's language.
    pub book: RwSignal<Option<&'static Book>>,
    /// True if the course could not be loaded.
    pub failed: RwSignal<bool>,
    /// Language requested last.
    pub wanted: StoredValue<Option<Locale>>,
    /// Ticks of the reader.
    pub marks: RwSignal<Marks>,
    /// Results of simulated setups.
    pub known: RwSignal<Known>,
    /// Entries of the page.
    pub store: Store,
    /// Words of the page.
    pub i18n: Words,
    links: Memo<Links>,
    engine: Engine,
}

/// Rows that are open; anything else that changes leaves them as they are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Opened {
    /// Address of the course in memory, by which another language's course is another value here.
    book: usize,
    /// Ids of the rows.
    pub rows: Vec<String>,
    /// Block that is shown alone, where a row has it.
    pub figure: String,
    seed: String,
}

impl CourseState {
    /// Creates the state, with the ticks that the browser stores, and provides it to all components below.
    pub fn provide(store: Store, i18n: Words) -> Self {
        let kept = preferences::read(KEPT).unwrap_or_default();
        let state = Self {
            book: RwSignal::new(None),
            failed: RwSignal::new(false),
            wanted: StoredValue::new(None),
            marks: RwSignal::new(Marks::read(&kept)),
            known: RwSignal::new(Known::default()),
            store,
            i18n,
            links: Memo::new(move |_| links(store)),
            engine: Engine::get(),
        };
        provide_context(state);
        state
    }

    /// Returns the state that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Adds language, theme and presentation mode to an address of the page; reactive.
    pub fn link(self, to: &str) -> String {
        self.links.with(|links| links.add(to))
    }

    /// Returns the open rows once the course is loaded: one row, or all rows of a part. By default it is none, for the
    /// cover; embedded, the first. Reactive.
    pub fn opened(self) -> Option<Opened> {
        let book = self.book.get()?;
        let wanted = self.store.text(Key::Row);
        let part = book.parts().find(|(part, _)| *part == wanted);
        let rows = match (part, wanted.as_str()) {
            (Some((_, rows)), _) => rows.map(|row| row.id.to_owned()).collect(),
            (None, "") if !self.store.has(Key::Embed) => Vec::new(),
            (None, "") => book.rows().next().map(|row| row.id.to_owned()).into_iter().collect(),
            _ => vec![wanted],
        };
        Some(Opened {
            book: std::ptr::from_ref(book).addr(),
            rows,
            figure: self.store.text(Key::Figure),
            seed: self.store.text(Key::Seed),
        })
    }

    /// Returns the inputs of a block with the reader's values.
    pub fn inputs(self, block: Block<'static>) -> Vec<Input> {
        let text = |key| untrack(|| self.store.text(key));
        inputs(block, &Given::read(&text(Key::Given)), text(Key::Seed).parse().ok())
    }

    /// Stores a changed field.
    pub fn enter(self, block: Block<'static>, input: &str, value: &str) {
        let mut given = Given::read(&untrack(|| self.store.text(Key::Given)));
        given.set(block.name, input, Some(value));
        self.store.set(Key::Given, given.write());
    }

    /// Gives the exercises other numbers.
    pub fn draw_again(self) {
        let seed: u64 = untrack(|| self.store.text(Key::Seed)).parse().unwrap_or_default();
        self.store.edit(|draft| {
            draft.set(Key::Given, "");
            draft.set(Key::Seed, (seed + 1).to_string());
        });
    }

    /// Opens another row.
    pub fn turn_to(self, row: &str) {
        self.store.edit(|draft| {
            draft.set(Key::Row, row);
            draft.set(Key::Given, "");
            draft.set(Key::Figure, "");
        });
    }

    /// Sets or removes a tick, also in the browser's store.
    pub fn mark(self, name: &str, on: bool) {
        self.marks.update(|marks| marks.set(name, on));
        preferences::write(KEPT, Some(&self.marks.with_untracked(Marks::write)));
    }

    /// Asks the engine for the setups of the open rows that have no result yet.
    pub fn ask(self) {
        let Some((book, opened)) = untrack(|| self.book.get().zip(self.opened())) else {
            return;
        };
        let mut queries: Vec<String> = Vec::new();
        let rows = opened.rows.iter().filter_map(|id| book.row(id));
        for block in rows.flat_map(|row| row.blocks()) {
            for case in cases(block, &self.inputs(block)) {
                let is_known = self.known.with_untracked(|known| known.get(&case.query).is_some());
                if !is_known && !queries.contains(&case.query) {
                    queries.push(case.query);
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
                self.known.try_update(|known| known.insert(query.clone(), outcome));
            }
        });
    }
}

/// Pairs that all links pass on; reactive.
fn links(store: Store) -> Links {
    let kept = |key: Key| match store.text(key).as_str() {
        "" => String::new(),
        value => format!("{}={value}&", key.name()),
    };
    Links {
        frame: kept(Key::Lang) + &kept(Key::Theme),
        presenting: kept(Key::Present),
    }
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
