//! Exercises: task, judged answer, hints in steps, and a solution with the reader's own numbers.

use leptos::html;
use leptos::prelude::*;
use web_sys::SubmitEvent;

use super::figure::{Fields, line_table, no_result};
use super::state::CourseState;
use super::text::{marked, paragraphs};
use crate::course::{Block, Input, Verdict, asked, check, sheet, task};
use crate::part::part;
use crate::state::Key;

/// An exercise with its fields.
#[component]
pub fn Exercise(block: Block<'static>) -> impl IntoView {
    let inputs = RwSignal::new(CourseState::get().inputs(block));
    let hints = RwSignal::new(0);
    let word = |key| block.row.book.word(key);
    let task = part(move || {
        let task = inputs.with(|inputs| task(block, inputs));
        Some(view! { <p class="course-task">{marked(&task)}</p> }.into_any())
    });
    let shown = part(move || {
        let hints = block.texts("hints").take(hints.get());
        let hints = hints.map(|hint| view! { <li>{marked(hint)}</li> });
        Some(hints.collect_view().into_any())
    });
    let solution = part(move || Some(inputs.with(|inputs| solution(block, inputs))));
    view! {
        <div>{task}</div>
        <Answer block inputs hints />
        <ol class="course-hints">{shown}</ol>
        <details class="course-own">
            <summary>{word("change_numbers")}</summary>
            <Fields block inputs />
        </details>
        <details class="course-solution">
            <summary>{word("solution")}</summary>
            <div>{solution}</div>
        </details>
    }
}

/// The reader's answer, and what is said to it.
#[component]
fn Answer(block: Block<'static>, inputs: RwSignal<Vec<Input>>, hints: RwSignal<usize>) -> impl IntoView {
    let state = CourseState::get();
    let book = block.row.book;
    let field = NodeRef::<html::Input>::new();
    let verdict = RwSignal::new(None::<Verdict>);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let typed = field.get_untracked().map(|field| field.value()).unwrap_or_default();
        let judged = inputs.with_untracked(|inputs| check(block, inputs, &typed));
        if judged.is_right {
            state.mark(&format!("{}/{}", block.row.id, block.name), true);
        }
        verdict.set(Some(judged));
    };
    let more = move |_| hints.update(|hints| *hints = (*hints + 1).min(block.texts("hints").len()));
    let seed = untrack(|| state.store.text(Key::Seed)).parse::<u64>().ok();
    let variant = match seed {
        Some(seed) => book.word_with("variant", &seed.to_string()),
        None => book.word("own_numbers").to_owned(),
    };
    let value = move || {
        let value = |verdict: &Verdict| if verdict.is_right { "right" } else { "wrong" };
        verdict.with(|verdict| verdict.as_ref().map(value))
    };
    let message = part(move || verdict.with(|verdict| verdict.as_ref().map(|verdict| marked(&verdict.message))));
    view! {
        <form class="course-answer" on:submit=submit>
            <label>
                <span class="label">{book.word("answer")}</span>
                <input
                    type="text"
                    inputmode="text"
                    data-testid="course-answer"
                    autocomplete="off"
                    placeholder=asked(block).0.name
                    node_ref=field
                />
            </label>
            <button type="submit" class="tool primary" data-testid="course-check">
                {book.word("check")}
            </button>
            <button type="button" class="tool" on:click=more>
                {book.word("hint")}
            </button>
            <button type="button" class="tool" data-testid="course-variant" on:click=move |_| state.draw_again()>
                {book.word("another")}
            </button>
            <span class="muted small">{variant}</span>
        </form>
        <p class="course-feedback" role="status" data-testid="course-feedback" data-value=value>
            {message}
        </p>
    }
}

/// Draws the solution line by line.
fn solution(block: Block<'static>, inputs: &[Input]) -> AnyView {
    let Ok(sheet) = sheet(block, inputs) else {
        return no_result(block);
    };
    view! {
        {line_table(block, inputs, &sheet)}
        {paragraphs(block.paragraphs("end"))}
    }
    .into_any()
}
