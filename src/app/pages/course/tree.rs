//! Decision trees: the current question, and the whole tree as a diagram.

use leptos::prelude::*;

use super::lists::anchor;
use super::text::marked;
use crate::course::{Block, START, Tree};
use crate::part::part;

/// Nodes from the first question to the current one.
type Path = RwSignal<Vec<&'static str>>;

/// A decision tree that the reader walks.
#[component]
pub fn DecisionTree(block: Block<'static>) -> impl IntoView {
    let path = RwSignal::new(vec![START]);
    let tree = Tree::of(block);
    let book = block.row.book;
    let walked = part(move || Some(path.with(|walked| steps(tree, walked, path, book.word("go_there")))));
    let restart = part(move || {
        path.with(|path| path.len() > 1).then(|| {
            view! {
                <button type="button" class="tool" on:click=move |_| path.set(vec![START])>
                    {book.word("restart")}
                </button>
            }
            .into_any()
        })
    });
    view! {
        <div>
            <ol class="course-path">{walked}</ol>
            {restart}
            <ul class="course-tree">{branch(tree, path, vec![START], "")}</ul>
        </div>
    }
}

/// Draws the answered questions, and the current one with its answers or its address.
fn steps(tree: Tree<'static>, walked: &[&'static str], path: Path, go_there: &'static str) -> AnyView {
    let answered = tree.answered(walked).into_iter().map(|(question, answer)| {
        view! { <li>{marked(question)} " " <strong>{marked(answer)}</strong></li> }
    });
    let last = walked.last().copied().unwrap_or(START);
    let on = match tree.address(last) {
        Some(to) => anchor("course-leaf", to, go_there.into_any()),
        None => tree
            .choices(last)
            .into_iter()
            .map(|choice| answer(path, choice.to, choice.words))
            .collect_view()
            .into_any(),
    };
    view! {
        {answered.collect_view()}
        <li class="course-here">
            <p>{marked(tree.words(last))}</p>
            {on}
        </li>
    }
    .into_any()
}

/// Draws the button of an answer.
fn answer(path: Path, to: &'static str, words: &'static str) -> AnyView {
    let go = move |_| path.update(|path| path.push(to));
    view! {
        <button type="button" class="tool" data-to=to on:click=go>
            {marked(words)}
        </button>
    }
    .into_any()
}

/// Draws the diagram below the last node of `way`, reached by `answer`; nodes on the walked path are marked.
fn branch(tree: Tree<'static>, path: Path, way: Vec<&'static str>, answer: &'static str) -> AnyView {
    let last = way.last().copied().unwrap_or(START);
    let below: Vec<_> = tree
        .choices(last)
        .into_iter()
        .map(|choice| {
            let way = way.iter().copied().chain([choice.to]).collect();
            branch(tree, path, way, choice.words)
        })
        .collect();
    let below = (!below.is_empty()).then(|| view! { <ul>{below}</ul> });
    let led = (!answer.is_empty()).then(|| view! { <b>{marked(answer)}</b> " " });
    let (on, here) = (way.clone(), way.clone());
    let is_on = move || path.with(|path| path.starts_with(&on));
    let current = move || path.with(|path| *path == here).then_some("step");
    view! {
        <li class:on-path=is_on>
            <button type="button" aria-current=current on:click=move |_| path.set(way.clone())>
                {led}
                {marked(tree.words(last))}
            </button>
            {below}
        </li>
    }
    .into_any()
}
