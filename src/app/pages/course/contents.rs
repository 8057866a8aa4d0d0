//! The list of all rows, and links to the rows beside the open one.

use leptos::prelude::*;

use super::state::CourseState;
use crate::course::{Book, Row};
use crate::part::{part, text};
use crate::state::Key;

/// All rows by part, with the open one marked and the finished ones ticked.
#[component]
pub fn Contents() -> impl IntoView {
    let state = CourseState::get();
    part(move || {
        let book = state.book.get()?;
        let here = Memo::new(move |_| state.store.text(Key::Row));
        let done = Memo::new(move |_| state.marks.with(|marks| marks.done(book)));
        let progress = text(move || {
            let (done, of) = done.get();
            book.word_with("progress", &format!("{done} / {of}"))
        });
        let parts: Vec<_> = book
            .parts()
            .map(|(part, rows)| part_of(book, part, rows.collect(), here))
            .collect();
        let view = view! {
            <p class="muted small" data-testid="course-progress" data-value=text(move || done.get().0.to_string())>
                {progress}
            </p>
            {parts}
        };
        Some(view.into_any())
    })
}

/// A part, unfolded if the reader is in it.
fn part_of(book: &'static Book, part: &'static str, rows: Vec<Row<'static>>, here: Memo<String>) -> AnyView {
    let state = CourseState::get();
    let links: Vec<_> = rows.iter().map(|row| link(*row, here)).collect();
    let is_open = move || here.with(|here| part == here || rows.iter().any(|row| row.id == here));
    view! {
        <details open=is_open>
            <summary>{book.part_title(part)}</summary>
            <ol>{links}</ol>
            <a class="small" href=text(move || state.link(&format!("#/course?row={part}")))>
                {book.word("handout")}
            </a>
        </details>
    }
    .into_any()
}

fn link(row: Row<'static>, here: Memo<String>) -> AnyView {
    let state = CourseState::get();
    let current = move || here.with(|here| row.id == here).then_some("page");
    let tick = move || state.marks.with(|marks| marks.has(row.id)).then_some("✓ ");
    view! {
        <li>
            <a href=text(move || state.link(&format!("#/course?row={}", row.id))) aria-current=current>
                {tick}
                {row.title()}
            </a>
        </li>
    }
    .into_any()
}

/// Links to the previous and the next row.
#[component]
pub fn Neighbours(book: &'static Book, row: String) -> impl IntoView {
    let state = CourseState::get();
    let link = |(row, key): (Option<Row<'static>>, &'static str)| {
        let row = row?;
        let to = text(move || state.link(&format!("#/course?row={}", row.id)));
        let view = view! {
            <a href=to data-turn=key>
                <span class="muted small">{book.word(key)}</span>
                {row.title()}
            </a>
        };
        Some(view.into_any())
    };
    let links = book
        .neighbours(&row)
        .into_iter()
        .zip(["previous", "next"])
        .filter_map(link);
    view! { <div class="course-turn">{links.collect_view()}</div> }
}
