//! Blocks without numbers: checklists, notes, quizzes, tables, samples, links.

use leptos::prelude::*;

use super::rows::Tick;
use super::state::CourseState;
use super::text::marked;
use crate::course::{Block, text as text_of};
use crate::part::text;
use crate::shell::copy_text;

/// A list whose items the reader ticks.
#[component]
pub fn Checklist(block: Block<'static>) -> impl IntoView {
    let item = |(name, words)| {
        view! {
            <li>
                <label>
                    <Tick name />
                    <span>{marked(words)}</span>
                </label>
            </li>
        }
    };
    view! { <ul class="course-checklist">{block.checks().map(item).collect_view()}</ul> }
}

/// Pairs in the items of a list.
fn pairs(block: Block<'static>) -> impl Iterator<Item = [&'static str; 2]> {
    block
        .tuples("items")
        .map(|mut item| [item.next(), item.next()].map(Option::unwrap_or_default))
}

/// Draws terms with their explanations.
pub fn notes(block: Block<'static>) -> AnyView {
    let note = |[term, note]: [&str; 2]| {
        view! {
            <dt>{marked(term)}</dt>
            <dd>{marked(note)}</dd>
        }
    };
    view! { <dl class="course-notes">{pairs(block).map(note).collect_view()}</dl> }.into_any()
}

/// Draws questions whose answers unfold.
pub fn quiz(block: Block<'static>) -> AnyView {
    let question = |[question, answer]: [&str; 2]| {
        view! {
            <details class="course-quiz">
                <summary>{marked(question)}</summary>
                <p>{marked(answer)}</p>
            </details>
        }
    };
    pairs(block).map(question).collect_view().into_any()
}

/// Maximum number of columns that fit a phone; wider tables show each row as a block there.
const NARROW: usize = 3;

/// Draws a table; the first row is the head.
pub fn table(block: Block<'static>) -> AnyView {
    let mut rows = block.tuples("rows");
    let heads: Vec<&str> = rows.next().into_iter().flatten().collect();
    let class = if heads.len() > NARROW {
        "course-table course-stacked"
    } else {
        "course-table"
    };
    let body: Vec<_> = rows
        .map(|cells| {
            let cells = cells
                .zip(&heads)
                .enumerate()
                .map(|(column, (cell, head))| match column {
                    0 => view! { <th scope="row">{marked(cell)}</th> }.into_any(),
                    _ => view! { <td data-label=head.replace('`', "")>{marked(cell)}</td> }.into_any(),
                });
            view! { <tr>{cells.collect_view()}</tr> }
        })
        .collect();
    let head = heads.iter().map(|head| view! { <th scope="col">{marked(head)}</th> });
    let table = view! {
        <table class=class>
            <thead>
                <tr>{head.collect_view()}</tr>
            </thead>
            <tbody>{body}</tbody>
        </table>
    };
    scrolled(table.into_any())
}

/// Wraps a table so that it scrolls on its own on narrow screens.
pub fn scrolled(table: AnyView) -> AnyView {
    view! {
        <div class="course-scroll" tabindex="0">
            {table}
        </div>
    }
    .into_any()
}

/// Draws a text with a copy button.
pub fn sample(block: Block<'static>) -> AnyView {
    let content = text_of(block.data, "content");
    view! {
        <pre class="course-sample" tabindex="0">
            {content}
        </pre>
        <button type="button" class="tool" on:click=move |_| copy_text(content.to_owned(), |_| ())>
            {block.row.book.word("copy")}
        </button>
    }
    .into_any()
}

/// Draws a link to another page.
pub fn link(block: Block<'static>) -> AnyView {
    let words = marked(block.title());
    view! { <p>{anchor("", text_of(block.data, "to"), words)}</p> }.into_any()
}

/// Draws a link that stands out.
pub fn anchor(testid: &'static str, to: &'static str, words: AnyView) -> AnyView {
    let state = CourseState::get();
    view! {
        <a class="course-link" data-testid=testid href=text(move || state.link(to))>
            {words}
        </a>
    }
    .into_any()
}
