//! Frame of a chart: heading, export menu and data table.

use leptos::html;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;

use super::brush::Drawn;
use super::download::{save_png, save_svg, save_text};
use super::surface::Surface;
use super::table::Table;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::copy_text;

/// A chart and everything that can be exported from it.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Id by which tests and scripts find it.
    pub id: &'static str,
    /// Heading.
    pub title: Signal<String>,
    /// File name of its exports without the extension: model, setup, chart.
    pub stem: Signal<String>,
    /// Draws the chart.
    pub draw: Callback<Surface, Drawn>,
    /// Figures formatted for reading.
    pub shown: Callback<(), Table>,
    /// Figures in full precision.
    pub data: Callback<(), Table>,
}

/// Frame of a chart: heading, export menu, the chart, and its data table.
#[component]
pub fn ChartFrame(figure: Figure, children: Children) -> impl IntoView {
    let i18n = use_i18n();
    let frame = NodeRef::<html::Section>::new();
    let open = RwSignal::new(false);
    let on_toggle = move |event: leptos::ev::Event| {
        let details = event
            .target()
            .and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
        open.set(details.is_some_and(|d| d.open()));
    };
    view! {
        <section class="card chart-frame" node_ref=frame data-testid=figure.id>
            <div class="chart-head">
                <h2>{text(move || figure.title.get())}</h2>
                <Menu figure frame />
            </div>
            {children()}
            <details class="chart-table" on:toggle=on_toggle data-testid=format!("{}-table", figure.id)>
                <summary>{t!(i18n, chart.table)}</summary>
                <Show when=move || open.get()>
                    <Rows figure />
                </Show>
            </details>
        </section>
    }
}

#[component]
fn Menu(figure: Figure, frame: NodeRef<html::Section>) -> impl IntoView {
    let i18n = use_i18n();
    let menu = NodeRef::<html::Details>::new();
    let drawing = move || frame.get_untracked()?.query_selector(".canvas").ok()?;
    let name = move |ending: &str| format!("{}.{ending}", figure.stem.get_untracked());
    let close = move || {
        if let Some(menu) = menu.get_untracked() {
            menu.set_open(false);
        }
    };
    // A chart that cannot be drawn is logged where it is shown; its data can still be saved.
    let png = move || {
        if let Some(chart) = drawing() {
            save_png(&chart, |surface| figure.draw.run(surface), name("png")).ok();
        }
    };
    let svg = move || {
        if let Some(chart) = drawing() {
            let title = figure.title.get_untracked();
            save_svg(&chart, &title, |surface| figure.draw.run(surface), &name("svg")).ok();
        }
    };
    let csv = move || {
        // Starts with a byte order mark, by which spreadsheets recognise UTF-8.
        let text = format!("\u{feff}{}", figure.data.run(()).to_csv());
        save_text(&text, "text/csv;charset=utf-8", &name("csv"));
    };
    let copy = move || copy_text(figure.data.run(()).to_csv(), |_| ());
    let item = move |ending: &'static str, words: Signal<String>, act: Callback<()>| {
        view! {
            <li>
                <button
                    type="button"
                    data-testid=format!("{}-{ending}", figure.id)
                    on:click=move |_| {
                        act.run(());
                        close();
                    }
                >
                    {text(move || words.get())}
                </button>
            </li>
        }
    };
    view! {
        <details class="menu" node_ref=menu>
            <summary class="tool" data-testid=format!("{}-menu", figure.id)>
                {t!(i18n, chart.save)}
            </summary>
            <ul>
                {item("png", Signal::stored("PNG".into()), Callback::new(move |()| png()))}
                {item("svg", Signal::stored("SVG".into()), Callback::new(move |()| svg()))}
                {item("csv", Signal::stored("CSV".into()), Callback::new(move |()| csv()))}
                {item(
                    "copy",
                    Signal::derive(move || t_string!(i18n, chart.copy).to_string()),
                    Callback::new(move |()| copy()),
                )}
            </ul>
        </details>
    }
}

#[component]
fn Rows(figure: Figure) -> impl IntoView {
    part(move || {
        let table = figure.shown.run(());
        let head: Vec<_> = table
            .head
            .into_iter()
            .map(|cell| view! { <th scope="col">{cell}</th> })
            .collect();
        let rows: Vec<_> = table
            .rows
            .into_iter()
            .map(|row| {
                let cells: Vec<_> = row.into_iter().map(|cell| view! { <td>{cell}</td> }).collect();
                view! { <tr>{cells}</tr> }
            })
            .collect();
        let table = view! {
            <div class="chart-rows" tabindex="0" role="region" aria-label=figure.title.get()>
                <table>
                    <thead>
                        <tr>{head}</tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        };
        Some(table.into_any())
    })
}
