//! The list of names, over any page: what is typed leads to a setting, takes one of its choices, opens a page, or shows a
//! number.

mod go;
mod names;

use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::text;
use crate::shell::Given;
use go::go;
use names::{Name, found};

/// Rows that are shown at most; more words narrow them.
const MOST: usize = 12;

/// State of the dialog: the typed text, the matches, and the highlighted one.
#[derive(Clone, Copy)]
struct Finder {
    dialog: NodeRef<html::Dialog>,
    typed: RwSignal<String>,
    marked: RwSignal<usize>,
    rows: Memo<Vec<Name>>,
}

impl Finder {
    fn new(i18n: Words) -> Self {
        let typed = RwSignal::new(String::new());
        Self {
            dialog: NodeRef::new(),
            typed,
            marked: RwSignal::new(0),
            rows: Memo::new(move |_| found(i18n, &typed.get(), MOST)),
        }
    }

    fn close(self) {
        if let Some(dialog) = self.dialog.get_untracked() {
            dialog.close();
        }
    }

    /// The dialog is closed first, since it gives the focus back to where it was.
    fn take(self, name: Name) {
        self.close();
        go(name.place);
    }

    fn on_key(self, event: KeyboardEvent) {
        let len = self.rows.with_untracked(Vec::len).max(1);
        match event.key().as_str() {
            "ArrowDown" => self.marked.update(|at| *at = (*at + 1) % len),
            "ArrowUp" => self.marked.update(|at| *at = (*at + len - 1) % len),
            "Enter" => {
                let at = self.marked.get_untracked();
                let name = self.rows.with_untracked(|rows| rows.get(at).cloned());
                name.into_iter().for_each(|name| self.take(name));
            }
            _ => return,
        }
        event.prevent_default();
    }
}

/// Dialog with a field and what was found; the browser closes it on Escape and restores the focus.
#[component]
pub fn FindDialog() -> impl IntoView {
    let i18n = use_i18n();
    let is_open = Given::get().finding;
    let finder = Finder::new(i18n);
    let dialog = finder.dialog;
    Effect::new(move || {
        if let Some(dialog) = dialog.get() {
            // Fails only if it is open already.
            dialog.show_modal().ok();
        }
    });
    let on_press = move |event: leptos::ev::MouseEvent| {
        // A press on what lies behind is one on the dialog itself: all else stands in its parts.
        let is_itself = event.target() == event.current_target();
        if is_itself {
            finder.close();
        }
    };
    view! {
        <dialog
            class="launch find"
            node_ref=dialog
            aria-label=move || t_string!(i18n, find.title)
            data-testid="find-dialog"
            on:close=move |_| is_open.set(false)
            on:click=on_press
        >
            <div class="find-body">
                <input
                    type="text"
                    role="combobox"
                    autocomplete="off"
                    spellcheck="false"
                    autofocus=true
                    data-testid="find-field"
                    aria-label=move || t_string!(i18n, find.title)
                    aria-autocomplete="list"
                    aria-expanded="true"
                    aria-controls="find-list"
                    aria-activedescendant=move || row_id(finder.marked.get())
                    placeholder=move || t_string!(i18n, find.hint)
                    prop:value=finder.typed
                    on:input:target=move |ev| {
                        finder.typed.set(ev.target().value());
                        finder.marked.set(0);
                    }
                    on:keydown=move |event| finder.on_key(event)
                />
                <Rows finder />
            </div>
        </dialog>
    }
}

/// List of the matches, the nearest first.
#[component]
fn Rows(finder: Finder) -> impl IntoView {
    let i18n = use_i18n();
    let row = move |(at, name): (usize, Name)| {
        let taken = name.clone();
        let is_marked = move || finder.marked.get() == at;
        view! {
            <li
                id=row_id(at)
                role="option"
                class="find-row"
                class:find-marked=is_marked
                aria-selected=text(move || is_marked().to_string())
                data-testid="find-row"
                data-name=name.id
                on:pointermove=move |_| finder.marked.set(at)
                on:click=move |_| finder.take(taken.clone())
            >
                <span>{name.title}</span>
                <span class="muted small">{name.kind}</span>
            </li>
        }
    };
    let rows = move || {
        let rows = finder.rows.get();
        match rows.is_empty() {
            true => view! { <li class="combo-none">{t!(i18n, widget.nothing_found)}</li> }.into_any(),
            false => rows.into_iter().enumerate().map(row).collect_view().into_any(),
        }
    };
    view! {
        <ul class="find-list" id="find-list" role="listbox" aria-label=move || t_string!(i18n, find.title)>
            {rows}
        </ul>
    }
}

fn row_id(at: usize) -> String {
    format!("find-{at}")
}
