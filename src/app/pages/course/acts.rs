//! Event handlers of the course: fields, checkboxes, answers, buttons, keys.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, HtmlInputElement, KeyboardEvent, MouseEvent, SubmitEvent};

use super::closest;
use super::page::{CourseState, KEPT};
use crate::charts::save_text;
use crate::course::{Given, Marks, Page};
use crate::shell::{copy_text, preferences};
use crate::state::Key;

/// A block of the course in the document.
struct Found {
    element: Element,
    row: String,
    place: usize,
    name: String,
}

impl CourseState {
    fn found(event: &Event) -> Option<Found> {
        let element = closest(event, "[data-block]")?;
        let row = closest(event, "[data-row]")?.get_attribute("data-row")?;
        Some(Found {
            place: element.get_attribute("data-block")?.parse().ok()?,
            name: element.get_attribute("data-name")?,
            element: element.into(),
            row,
        })
    }

    /// Calls `look` with the page of the block in which an event happened.
    fn at<T>(self, event: &Event, look: impl FnOnce(&Page, &Found) -> T) -> Option<T> {
        let book = self.book.get_untracked()?;
        let found = Self::found(event)?;
        self.page(&book, &found.row, |page| look(page, &found))
    }

    /// Stores a changed field and updates everything that depends on it.
    pub fn entered(self, event: &Event) {
        let field = event.target().and_then(|t| t.dyn_into::<HtmlInputElement>().ok());
        let named = field.and_then(|field| field.get_attribute("data-input").map(|name| (field, name)));
        let (Some((field, name)), Some(found)) = (named, Self::found(event)) else {
            return;
        };
        // A field and its slider show the same value.
        let twin = format!("input[data-input='{name}']:not([type='{}'])", field.type_());
        if let Ok(Some(twin)) = found.element.query_selector(&twin) {
            twin.unchecked_into::<HtmlInputElement>().set_value(&field.value());
        }
        let mut given = Given::read(&untrack(|| self.store.text(Key::Given)));
        given.set(&found.name, &name, Some(&field.value()));
        self.store.set(Key::Given, given.write());
        self.at(event, |page, found| {
            let put = |selector: &str, html: &str| {
                if let Ok(Some(element)) = found.element.query_selector(selector) {
                    replace(&element, html);
                }
            };
            put("[data-out]", &page.results(found.place));
            put("[data-cases]", &self.keep(&page.cases(found.place)));
            put("[data-solution]", &page.solution(found.place));
        });
        self.ask();
    }

    /// Stores a changed checkbox.
    pub fn changed(self, event: &Event) {
        let ticked = event.target().and_then(|t| t.dyn_into::<HtmlInputElement>().ok());
        if let Some((field, name)) = ticked.and_then(|f| f.get_attribute("data-tick").map(|name| (f, name))) {
            self.mark(&name, field.checked());
        }
    }

    fn mark(self, name: &str, on: bool) {
        self.marks.update(|marks| marks.set(name, on));
        preferences::write(KEPT, Some(&self.marks.with_untracked(Marks::write)));
    }

    /// Judges a submitted answer.
    pub fn answered(self, event: &SubmitEvent) {
        event.prevent_default();
        let solved = self.at(event, |page, found| {
            let answer = found.element.query_selector("[data-answer] input").ok()??;
            let typed = answer.unchecked_into::<HtmlInputElement>().value();
            let verdict = page.check(found.place, &typed);
            let feedback = found.element.query_selector("[data-feedback]").ok()??;
            // Setting attributes on the page's own element cannot fail.
            feedback
                .set_attribute("data-value", if verdict.is_right { "right" } else { "wrong" })
                .ok();
            replace(&feedback, &verdict.message);
            verdict.is_right.then(|| format!("{}/{}", found.row, found.name))
        });
        if let Some(name) = solved.flatten() {
            self.mark(&name, true);
        }
    }

    /// Handles a press of a button.
    pub fn clicked(self, event: &MouseEvent) {
        let Some(button) = closest(event, "[data-act]") else {
            return;
        };
        match button.get_attribute("data-act").unwrap_or_default().as_str() {
            "hint" => _ = self.at(event, hint),
            "variant" => {
                let seed = untrack(|| self.store.text(Key::Seed))
                    .parse::<u64>()
                    .unwrap_or_default();
                self.store.edit(|draft| {
                    draft.set(Key::Given, "");
                    draft.set(Key::Seed, (seed + 1).to_string());
                });
            }
            "go" | "restart" => _ = self.at(event, |page, found| walk(page, found, &button, |html| self.keep(html))),
            "copy" => {
                let sample = Self::found(event).and_then(|f| f.element.query_selector("pre").ok()?);
                copy_text(&sample.and_then(|pre| pre.text_content()).unwrap_or_default());
            }
            // Ignore a refusal to print; nothing is lost.
            "print" => _ = window().print(),
            "present" => self.store.set(
                Key::Present,
                if self.store.text(Key::Present).is_empty() {
                    "1"
                } else {
                    ""
                },
            ),
            "export" => save_text(
                &self.marks.with_untracked(Marks::write),
                "text/plain",
                "vramscope-course.txt",
            ),
            _ => {}
        }
    }

    /// Turns pages on the keys that presentation remotes send.
    pub fn key(self, event: &KeyboardEvent) {
        let in_field = closest(event, "input, select, textarea").is_some();
        if self.store.text(Key::Present).is_empty()
            || in_field
            || event.ctrl_key()
            || event.alt_key()
            || event.meta_key()
        {
            return;
        }
        let turn = match event.key().as_str() {
            "ArrowRight" | "PageDown" => "next",
            "ArrowLeft" | "PageUp" => "previous",
            "Escape" => return self.store.set(Key::Present, ""),
            _ => return,
        };
        let Some(book) = self.book.get_untracked() else { return };
        let open = self.open(&book);
        let (before, after) = book.neighbours(open.first().map_or("", String::as_str));
        let to = if turn == "next" { after } else { before };
        if let Some(row) = to {
            event.prevent_default();
            self.store.edit(|draft| {
                draft.set(Key::Row, row.id);
                draft.set(Key::Given, "");
                draft.set(Key::Figure, "");
            });
        }
    }
}

/// Shows one more hint.
fn hint(page: &Page, found: &Found) {
    let Ok(Some(hints)) = found.element.query_selector("[data-hints]") else {
        return;
    };
    let shown = hints.child_element_count() as usize;
    if let Some(hint) = page.hint(found.place, shown) {
        replace(&hints, &(hints.inner_html() + &hint));
    }
}

/// Moves through a decision tree: to a child, back to an earlier node, or to the root.
fn walk(page: &Page, found: &Found, button: &HtmlElement, keep: impl Fn(&str) -> String) {
    let Ok(Some(out)) = found.element.query_selector("[data-out]") else {
        return;
    };
    let start = || "start".to_owned();
    let path = match (button.get_attribute("data-path"), button.get_attribute("data-to")) {
        (Some(path), _) => path,
        (None, Some(to)) => format!("{} {to}", out.get_attribute("data-path").unwrap_or_else(start)),
        (None, None) => start(),
    };
    // Setting an attribute on the page's own element cannot fail.
    out.set_attribute("data-path", &path).ok();
    replace(
        &out,
        &keep(&page.tree(found.place, &path.split(' ').collect::<Vec<_>>())),
    );
}

/// Replaces the content of an element unless it is unchanged.
pub(super) fn replace(element: &Element, html: &str) {
    if element.inner_html() != html {
        element.set_inner_html(html);
    }
}
