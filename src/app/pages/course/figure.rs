//! Figures: adjustable fields, formulas with their results, and simulated setups.

use leptos::prelude::*;
use vramscope_course::Sheet;

use super::cases::Cases;
use super::drawing::drawn;
use super::lists::scrolled;
use super::state::CourseState;
use super::text::paragraphs;
use crate::course::{Block, Input, Line, drawings, is_printed, items, lines, sheet, text};
use crate::part::part;

/// A figure with its fields.
#[component]
pub fn Figure(block: Block<'static>) -> impl IntoView {
    let inputs = RwSignal::new(CourseState::get().inputs(block));
    let results = part(move || {
        Some(inputs.with(|inputs| match sheet(block, inputs) {
            Ok(sheet) => results(block, inputs, &sheet),
            Err(_) => no_result(block),
        }))
    });
    view! {
        {paragraphs(block.paragraphs("text"))}
        <Fields block inputs />
        <div>{results}</div>
        <div>
            <Cases block inputs />
        </div>
        <div class="course-gap">{paragraphs(block.paragraphs("gap"))}</div>
    }
}

fn results(block: Block<'static>, inputs: &[Input], sheet: &Sheet) -> AnyView {
    let drawings = drawings(block, inputs, sheet).into_iter().map(drawn);
    view! {
        {line_table(block, inputs, sheet)}
        {drawings.collect_view()}
    }
    .into_any()
}

/// Draws the message that the numbers give no result.
pub fn no_result(block: Block<'static>) -> AnyView {
    view! { <p class="muted">{block.row.book.word("no_result")}</p> }.into_any()
}

/// Fields of a block.
#[component]
pub fn Fields(block: Block<'static>, inputs: RwSignal<Vec<Input>>) -> impl IntoView {
    let all = items(block.data.get("inputs")).iter().zip(inputs.get_untracked());
    let fields: Vec<_> = all
        .map(|(data, input)| {
            let range = ["from", "to", "step"].map(|key| text(data, key));
            view! { <Field block input range inputs /> }.into_any()
        })
        .collect();
    (!fields.is_empty()).then(|| view! { <div class="course-fields">{fields}</div> })
}

/// A field, with a slider where its range is known. Both show the text as it is typed.
#[component]
fn Field(
    block: Block<'static>,
    input: Input,
    /// Least and greatest value and step of the slider; empty if there is none.
    range: [&'static str; 3],
    inputs: RwSignal<Vec<Input>>,
) -> impl IntoView {
    let state = CourseState::get();
    let Input {
        name,
        text,
        unit,
        is_list,
        ..
    } = input;
    let (label, testid) = (block.label(&name), format!("course-{name}"));
    let value = RwSignal::new(text);
    let enter = move |event| {
        value.set(event_target_value(&event));
        value.with_untracked(|value| state.enter(block, &name, value));
        inputs.set(state.inputs(block));
        state.ask();
    };
    let class = if is_list { "course-field wide" } else { "course-field" };
    let [from, to, step] = range;
    let slider = (!from.is_empty()).then(|| {
        view! {
            <input type="range" aria-label=label min=from max=to step=step prop:value=value on:input=enter.clone() />
        }
        .into_any()
    });
    view! {
        <div class=class>
            <label>
                <span class="label">{label}</span>
                <span class="entry">
                    <input
                        type="text"
                        inputmode=(!is_list).then_some("decimal")
                        data-testid=testid
                        autocomplete="off"
                        prop:value=value
                        on:input=enter
                    />
                    <span class="unit">{unit.name}</span>
                </span>
            </label>
            {slider}
        </div>
    }
}

/// Draws each line of a sheet: formula, inserted numbers, result, and the course's figure.
pub fn line_table(block: Block<'static>, inputs: &[Input], sheet: &Sheet) -> AnyView {
    let all = lines(block, inputs, sheet);
    if all.is_empty() {
        return ().into_any();
    }
    let (book, printed) = (block.row.book, is_printed(block));
    let rows: Vec<_> = all.into_iter().map(|line| table_row(block, line, printed)).collect();
    let table = view! {
        <table class="course-stacked">
            <thead>
                <tr>
                    <th scope="col">
                        <span class="offscreen">{book.word("quantity")}</span>
                    </th>
                    <th scope="col">{book.word("formula")}</th>
                    <th scope="col">{book.word("result")}</th>
                    {printed.then(|| view! { <th scope="col">{book.word("course")}</th> })}
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    };
    scrolled(table.into_any())
}

fn table_row(block: Block<'static>, line: Line<'static>, has_printed: bool) -> AnyView {
    let printed = match (has_printed, line.printed) {
        (false, _) => ().into_any(),
        (true, None) => view! { <td></td> }.into_any(),
        (true, Some(printed)) => {
            let class = if printed.slips {
                "course-figure-cell slip"
            } else {
                "course-figure-cell"
            };
            view! {
                <td class=class data-label=block.row.book.word("course")>
                    {printed.figure}
                    <span class="muted small">{printed.comparison}</span>
                </td>
            }
            .into_any()
        }
    };
    view! {
        <tr>
            <th scope="row">{line.label}</th>
            <td class="course-formula">
                <span>{line.formula}</span>
                <span class="muted">{format!("= {}", line.numbers)}</span>
            </td>
            <td class="course-result" data-testid="course-line" data-name=line.name data-value=line.exact>
                {line.result}
            </td>
            {printed}
        </tr>
    }
    .into_any()
}
