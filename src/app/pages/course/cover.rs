//! Cover of the course: its parts, where each leads, and how far the reader is.

use leptos::prelude::*;

use super::state::CourseState;
use crate::course::{Book, Row};
use crate::part::text;

/// The parts, each with the page to go on with.
#[component]
pub fn Cover(book: &'static Book) -> impl IntoView {
    let parts: Vec<_> = book
        .parts()
        .map(|(part, rows)| part_of(book, part, rows.collect()))
        .collect();
    view! {
        <article class="course-cover" data-testid="course-cover">
            <h2>{book.word("cover_title")}</h2>
            <p>{book.word_with("cover_about", &book.rows().count().to_string())}</p>
            <ul>{parts}</ul>
        </article>
    }
}

fn part_of(book: &'static Book, part: &'static str, rows: Vec<Row<'static>>) -> AnyView {
    let state = CourseState::get();
    let all = rows.len();
    let first = rows.first().map_or("", |row| row.id);
    let done = {
        let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
        Memo::new(move |_| state.marks.with(|marks| ids.iter().filter(|id| marks.has(id)).count()))
    };
    // The page after the last one that is done: a reader may leave pages out.
    let next = {
        let ids: Vec<(&str, &str)> = rows.iter().map(|row| (row.id, row.title())).collect();
        Memo::new(move |_| {
            let last = state
                .marks
                .with(|marks| ids.iter().rposition(|(id, _)| marks.has(id)))?;
            let open = |(id, _): &&(&str, &str)| state.marks.with(|marks| !marks.has(id));
            ids[last..].iter().find(open).or_else(|| ids.iter().find(open)).copied()
        })
    };
    let words = move || match (done.get(), next.get()) {
        (0, _) => book.word("begin").to_owned(),
        (_, Some((_, title))) => book.word_with("go_on", title),
        (_, None) => book.word("again").to_owned(),
    };
    let to = move || state.link(&format!("#/course?row={}", next.get().map_or(first, |(id, _)| id)));
    let progress = move || book.word_with("progress", &format!("{} / {all}", done.get()));
    view! {
        <li class="card" data-testid="course-part" data-name=part>
            <h3>{book.part_title(part)}</h3>
            <p>{book.word(&format!("part_{part}_about"))}</p>
            <p class="course-part-progress">
                <progress max=all.to_string() value=text(move || done.get().to_string()) aria-hidden="true"></progress>
                <span class="muted small">{text(progress)}</span>
            </p>
            <a class="course-begin" href=text(to)>{text(words)}</a>
        </li>
    }
    .into_any()
}
