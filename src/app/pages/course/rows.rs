//! Open rows, their tools, and the frames of their blocks.

use leptos::prelude::*;
use web_sys::HtmlInputElement;

use super::contents::Neighbours;
use super::cover::Cover;
use super::exercise::Exercise;
use super::figure::Figure;
use super::lists::{Checklist, link, notes, quiz, sample, table};
use super::state::{CourseState, Opened};
use super::text::{marked, paragraphs};
use super::tree::DecisionTree;
use crate::charts::save_text;
use crate::course::{Block, Book, Marks, Row};
use crate::part::text;
use crate::state::Key;

/// The open rows with their tools; embedded, without tools.
#[component]
pub fn OpenRows(opened: Opened) -> impl IntoView {
    let state = CourseState::get();
    let book = state.book.get_untracked()?;
    let is_embedded = untrack(|| state.store.text(Key::Embed)) == "1";
    let rows: Vec<_> = opened
        .rows
        .iter()
        .map(|id| open_row(book, id, &opened.figure))
        .collect();
    let neighbours = match (opened.rows.as_slice(), is_embedded) {
        ([row], false) => Some(view! { <Neighbours book row=row.clone() /> }.into_any()),
        _ => None,
    };
    let view = view! {
        <div class="course-page">
            {opened.rows.is_empty().then(|| view! { <Cover book /> }.into_any())}
            {(!is_embedded).then(|| view! { <Tools book /> }.into_any())}
            {rows}
            {neighbours}
        </div>
    };
    Some(view.into_any())
}

fn open_row(book: &'static Book, id: &str, figure: &str) -> AnyView {
    let Some(row) = book.row(id) else {
        return view! { <p>{book.word_with("missing", id)}</p> }.into_any();
    };
    match row.block(figure) {
        Some(block) => view! {
            <article class="course-row" data-row=row.id>
                <Framed block />
            </article>
        }
        .into_any(),
        None => view! { <WholeRow row /> }.into_any(),
    }
}

/// Tools for the open rows.
#[component]
fn Tools(book: &'static Book) -> impl IntoView {
    let state = CourseState::get();
    let present = move |_| {
        let is_presenting = untrack(|| state.store.has(Key::Present));
        state.store.set(Key::Present, if is_presenting { "" } else { "1" });
    };
    // Ignore a refusal to print; nothing is lost.
    let print = |_| _ = window().print();
    let export = move |_| {
        save_text(
            &state.marks.with_untracked(Marks::write),
            "text/plain",
            "vramscope-course.txt",
        )
    };
    view! {
        <div class="course-tools">
            <button type="button" class="tool" data-testid="course-present" on:click=present>
                {book.word("present")}
            </button>
            <button type="button" class="tool" data-testid="course-print" on:click=print>
                {book.word("print")}
            </button>
            <button type="button" class="tool" data-testid="course-export" on:click=export>
                {book.word("export")}
            </button>
        </div>
    }
}

#[component]
fn WholeRow(row: Row<'static>) -> impl IntoView {
    let state = CourseState::get();
    let (mut blocks, mut results, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut exercise = None;
    for block in row.blocks() {
        let shown = view! { <Framed block /> }.into_any();
        match (exercise, block.kind) {
            (None, _) => blocks.push(shown),
            // They show the answer.
            (Some(_), "figure" | "table" | "text") => results.push(shown),
            (Some(_), _) => rest.push(shown),
        }
        if block.kind == "exercise" {
            exercise = Some(block.name);
        }
    }
    let is_solved = move || {
        let mark = exercise.map(|name| format!("{}/{name}", row.id));
        mark.is_some_and(|mark| state.marks.with(|marks| marks.has(&mark)))
    };
    let results = (!results.is_empty()).then(|| {
        view! {
            <details class="course-after" data-testid="course-after" open=is_solved>
                <summary>{row.book.word("after_exercise")}</summary>
                {results}
            </details>
        }
    });
    view! {
        <article class="course-row" data-row=row.id data-testid="course-row" data-value=row.id>
            <h2>{row.title()}</h2>
            {blocks}
            {results}
            {rest}
            <label class="course-done">
                <Tick name=row.id.to_owned() />
                <span>{row.book.word("done")}</span>
            </label>
        </article>
    }
}

/// Checkbox of a tick that the browser stores.
#[component]
pub fn Tick(name: String) -> impl IntoView {
    let state = CourseState::get();
    let (read, set) = (name.clone(), name.clone());
    let is_on = move || state.marks.with(|marks| marks.has(&read));
    let change = move |event| state.mark(&set, event_target::<HtmlInputElement>(&event).checked());
    view! { <input type="checkbox" data-tick=name prop:checked=is_on on:change=change /> }
}

/// A block in its frame, with a title and a link to itself.
#[component]
fn Framed(block: Block<'static>) -> impl IntoView {
    let state = CourseState::get();
    let inner = match block.kind {
        "text" => return paragraphs(block.row.paragraphs(block.name)),
        "link" => return link(block),
        "figure" => view! { <Figure block /> }.into_any(),
        "exercise" => view! { <Exercise block /> }.into_any(),
        "checklist" => view! { <Checklist block /> }.into_any(),
        "notes" => notes(block),
        "quiz" => quiz(block),
        "table" => table(block),
        "sample" => sample(block),
        "tree" => view! { <DecisionTree block /> }.into_any(),
        _ => return ().into_any(),
    };
    let class = match block.kind {
        "exercise" => "card course-block course-exercise",
        _ => "card course-block",
    };
    let to = text(move || state.link(&format!("#/course?row={}&figure={}", block.row.id, block.name)));
    view! {
        <section class=class data-block=block.index data-kind=block.kind data-name=block.name>
            <h3>
                {marked(block.title())}
                <a class="course-anchor" href=to aria-label=block.row.book.word("link_figure")>
                    "#"
                </a>
            </h3>
            {inner}
        </section>
    }
    .into_any()
}
