//! Compares simulated setups with the course's figures and with measurements.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Part;
use vramscope_engine::verdict::Verdict;

use super::lists::scrolled;
use super::state::CourseState;
use crate::charts::kind_class;
use crate::course::{Block, Case, Columns, Input, Outcome, cases};
use crate::i18n::t_string;
use crate::part::{part, text};
use crate::words;
use crate::worker::view::Summary;

/// Table of a block's setups; nothing for a block without setups.
#[component]
pub fn Cases(block: Block<'static>, inputs: RwSignal<Vec<Input>>) -> impl IntoView {
    let state = CourseState::get();
    part(move || {
        let (cases, is_own) = inputs.with(|inputs| (cases(block, inputs), inputs.iter().all(|input| input.is_own)));
        let first = cases.first()?.query.clone();
        let table = Table {
            state,
            block,
            columns: Columns::of(block),
            is_own,
        };
        let view = state.known.with(|known| {
            let outcomes: Vec<_> = cases.iter().map(|case| known.get(&case.query)).collect();
            let marks = match (block.data.get("marks"), known.get(&first)) {
                (None, _) | (_, Some(Err(_))) => None,
                (Some(_), first) => Some(table.step(first.and_then(|outcome| outcome.as_ref().ok()))),
            };
            view! {
                {table.drawn(&cases, &outcomes)}
                {marks}
            }
            .into_any()
        });
        Some(view)
    })
}

/// What all rows of a table share.
struct Table {
    state: CourseState,
    block: Block<'static>,
    columns: Columns,
    /// True if all inputs have the course's own values.
    is_own: bool,
}

impl Table {
    fn word(&self, key: &str) -> &'static str {
        self.block.row.book.word(key)
    }

    fn drawn(&self, cases: &[Case<'static>], outcomes: &[Option<&Outcome>]) -> AnyView {
        let summaries = outcomes.iter().flatten().flat_map(|outcome| outcome.as_ref().ok());
        let peaks = summaries.map(|summary| summary.figures.peak_allocated.get());
        let highest = peaks.max().unwrap_or(1);
        let heads = self
            .columns
            .heads()
            .map(|key| view! { <th scope="col">{self.word(key)}</th> });
        let rows = cases
            .iter()
            .zip(outcomes)
            .map(|(case, outcome)| self.row(case, *outcome, highest));
        let table = view! {
            <table class="course-cases course-stacked">
                <thead>
                    <tr>{heads.collect_view()}</tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        };
        scrolled(table.into_any())
    }

    fn row(&self, case: &Case<'static>, outcome: Option<&Outcome>, highest: u64) -> AnyView {
        let (state, query) = (self.state, format!("#/?{}", case.query));
        let cells = match outcome {
            Some(Ok(summary)) => self.figures(case, summary, highest),
            Some(Err(message)) => view! { <td colspan="6" class="oom">{message.clone()}</td> }.into_any(),
            None => view! { <td colspan="6" class="muted">{self.word("simulating")}</td> }.into_any(),
        };
        view! {
            <tr>
                <th scope="row">
                    {case.label}
                    <a class="small" href=text(move || state.link(&query))>
                        {t_string!(state.i18n, recommend.open_planner)}
                    </a>
                </th>
                {cells}
            </tr>
        }
        .into_any()
    }

    fn figures(&self, case: &Case<'static>, summary: &Summary, highest: u64) -> AnyView {
        let peak = summary.figures.peak_allocated;
        let phase = words::phase(self.state.i18n, summary.figures.peak_phase);
        let measured = case.measured.filter(|_| self.is_own).map(gib);
        let columns = self.columns;
        view! {
            <td class="course-result" data-testid="course-peak" data-value=peak.get().to_string()>
                {gib(peak)}
            </td>
            <td class="wide">{self.stack(summary, highest)}</td>
            <td data-testid="course-phase" data-label=self.word("holds")>
                {phase}
            </td>
            {columns.printed.then(|| self.cell("course", case.printed.to_owned()))}
            {columns.measured.then(|| self.cell("measured", measured.unwrap_or_default()))}
            {columns.verdict.then(|| self.verdict(summary))}
        }
        .into_any()
    }

    fn cell(&self, column: &str, content: String) -> AnyView {
        view! { <td data-label=self.word(column)>{content}</td> }.into_any()
    }

    fn verdict(&self, summary: &Summary) -> AnyView {
        match &summary.card {
            Ok(card) => {
                let (class, word) = match card.fit.verdict {
                    Verdict::Oom => ("oom", "short_of"),
                    _ => ("fits", "fits"),
                };
                view! {
                    <td class=class>
                        {format!("{}: {}", card.name, self.word(word))}
                        <span class="muted small">{gib(summary.needed())}</span>
                    </td>
                }
                .into_any()
            }
            Err(message) => view! { <td class="muted">{message.clone()}</td> }.into_any(),
        }
    }

    /// Draws the memory live at the peak, by kind, as one bar.
    fn stack(&self, summary: &Summary, highest: u64) -> AnyView {
        let (mut left, mut bars, mut names) = (0.0, Vec::new(), Vec::new());
        for (part, bytes) in &summary.parts {
            let Part::Live(kind) = part else { continue };
            let width = bytes.get() as f64 / highest as f64 * 240.0;
            let (x, wide) = (format!("{left:.1}"), format!("{width:.1}"));
            bars.push(view! { <rect class=kind_class(*kind) x=x y="0" width=wide height="16"></rect> }.into_any());
            names.push(format!("{} {}", words::part(self.state.i18n, *part), gib(*bytes)));
            left += width;
        }
        let names = names.join(", ");
        view! {
            <svg
                class="course-stack"
                viewBox="0 0 240 16"
                preserveAspectRatio="none"
                role="img"
                aria-label=names.clone()
            >
                {bars}
            </svg>
            <span class="muted small course-parts">{names}</span>
        }
        .into_any()
    }

    /// Draws the allocated bytes over one step; reserves the space while they are pending.
    fn step(&self, summary: Option<&Summary>) -> AnyView {
        let steady = summary.map(|summary| summary.figures.steady).unwrap_or_default();
        let marks = [
            ("mark_before", steady.before_forward),
            ("mark_peak_forward", steady.peak_forward),
            ("mark_after_forward", steady.after_forward),
            ("mark_peak_backward", steady.peak_backward),
            ("mark_after_backward", steady.after_backward),
            ("mark_peak_optimizer", steady.peak_optimizer),
            ("mark_end", steady.end),
        ];
        let highest = steady.peak().get().max(1) as f64;
        let rows = marks.map(|(key, bytes)| {
            let width = format!("{:.1}", bytes.get() as f64 / highest * 240.0);
            view! {
                <tr>
                    <th scope="row">{self.word(key)}</th>
                    <td>
                        <svg class="course-stack" viewBox="0 0 240 16" preserveAspectRatio="none" aria-hidden="true">
                            <rect width=width height="16"></rect>
                        </svg>
                    </td>
                    <td class="course-result">{summary.map(|_| gib(bytes))}</td>
                </tr>
            }
        });
        let table = view! {
            <table class="course-cases course-stacked">
                <tbody>{rows.into_iter().collect_view()}</tbody>
            </table>
        };
        scrolled(table.into_any())
    }
}
