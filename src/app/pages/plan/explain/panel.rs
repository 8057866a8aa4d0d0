//! Panel that explains a number.

use leptos::html;
use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::report::derivation::{Derivation, Source, Unit};
use vramscope_engine::units::Bytes;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::HtmlElement;

use super::Explanation;
use super::parts::Parts;
use crate::i18n::{t, t_string, use_i18n};
use crate::simulation::Simulation;
use crate::words;
use crate::worker::{Answer, Ask, Coded, Engine, Slot};

/// Maximum width of the panel, and enough height for most contents, in CSS pixels.
const SIZE: [f64; 2] = [608.0, 360.0];

/// Panel with formula, numbers, result and source. The browser closes it on Escape or an outside click and restores the
/// focus.
#[component]
pub fn ExplanationPanel() -> impl IntoView {
    let i18n = use_i18n();
    let explanation = Explanation::get();
    let name = move || explanation.now().map(|now| words::quantity(i18n, &now));
    let found = follow(explanation);
    let panel = NodeRef::<html::Div>::new();
    Effect::new(move || {
        explanation.pressed.track();
        if let (Some(panel), Some(beside)) = (panel.get(), explanation.beside.get_value()) {
            show(&panel, &beside);
        }
    });
    let on_toggle = move |event: leptos::ev::Event| {
        let state = js_sys::Reflect::get(event.unchecked_ref::<JsValue>(), &"newState".into());
        if state.is_ok_and(|state| state == "closed") {
            explanation.trail.set(Vec::new());
        }
    };
    view! {
        <div
            id="derivation"
            node_ref=panel
            class="derivation"
            popover="auto"
            role="dialog"
            aria-labelledby="derivation-name"
            tabindex="-1"
            autofocus
            data-testid="derivation"
            on:toggle=on_toggle
        >
            <div class="derivation-head">
                <Show when=move || explanation.trail.with(|trail| trail.len() > 1)>
                    <button type="button" class="tool" data-testid="derivation-back" on:click=move |_| explanation.back()>
                        {t!(i18n, derivation.back)}
                    </button>
                </Show>
                <h2 id="derivation-name">{name}</h2>
                <CloseButton panel />
            </div>
            {move || found.get().map(|derivation| view! { <Body derivation /> }.into_any())}
        </div>
    }
}

/// Button that closes a panel.
#[component]
pub fn CloseButton(panel: NodeRef<html::Div>) -> impl IntoView {
    let i18n = use_i18n();
    let close = move |_| {
        if let Some(panel) = panel.get_untracked() {
            // Fails only if the panel is already closed.
            panel.hide_popover().ok();
        }
    };
    view! {
        <button
            type="button"
            class="derivation-close"
            aria-label=move || t_string!(i18n, derivation.close).to_string()
            on:click=close
        >
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d="M4 4l8 8M12 4l-8 8" />
            </svg>
        </button>
    }
}

/// Opens a panel beside the clicked number.
pub fn show(panel: &HtmlElement, beside: &HtmlElement) {
    place(panel, beside);
    // Fails only if the panel is already open.
    panel.show_popover().ok();
}

/// Requests the derivation whenever the number or the run changes.
fn follow(explanation: Explanation) -> RwSignal<Option<Derivation>> {
    let (simulation, engine) = (Simulation::get(), Engine::get());
    let found = RwSignal::new(None);
    Effect::new(move || {
        let Some((run, quantity)) = simulation.run().zip(explanation.now()) else {
            return found.set(None);
        };
        let ask = Ask::Derive {
            run: run.id,
            changed: explanation.changed.get(),
            quantity: Coded::of(&quantity),
        };
        engine.ask(Slot::Derivation, ask, move |answer, _| {
            let answer = match answer {
                Some(Answer::Derivation(answer)) => answer.open(),
                _ => None,
            };
            // The page may have been left in the meantime.
            found.try_set(answer);
        });
    });
    found
}

#[component]
fn Body(derivation: Derivation) -> impl IntoView {
    let i18n = use_i18n();
    let Derivation {
        formula,
        unit,
        source,
        basis,
    } = derivation;
    let value = formula.value();
    let rounded = (unit == Unit::Bytes).then(|| gib(Bytes::new(value)));
    let result = match unit {
        Unit::Bytes => exact(Bytes::new(value)),
        Unit::Count => grouped(value),
    };
    let seen = match &source {
        Source::Outside(_, seen) => Some(seen.clone()),
        _ => None,
    };
    view! {
        <p class="derivation-result">
            <strong>{rounded.clone().unwrap_or_else(|| result.clone())}</strong>
            <span class="basis">{words::basis(i18n, &basis)}</span>
        </p>
        <dl class="derivation-body">
            <dt>{t!(i18n, derivation.formula)}</dt>
            <dd>{words::symbols(i18n, &formula)}</dd>
            <dt>{t!(i18n, derivation.numbers)}</dt>
            <dd data-testid="derivation-numbers">
                <Parts formula unit />
            </dd>
            <dt>{t!(i18n, derivation.result)}</dt>
            <dd data-testid="derivation-result" data-value=value.to_string()>
                {result}
            </dd>
            <dt>{t!(i18n, derivation.source)}</dt>
            <dd>
                {words::source(i18n, &source)}
                {seen.map(|seen| view! { <span class="derivation-seen" lang="en">{seen}</span> })}
            </dd>
        </dl>
    }
}

/// Positions the panel below the element, or above it if there is more room. An element outside the window, where a
/// growing page may push it, puts the panel at the window's edge.
fn place(panel: &HtmlElement, beside: &HtmlElement) {
    let size = |n: Result<wasm_bindgen::JsValue, wasm_bindgen::JsValue>| n.ok().and_then(|n| n.as_f64());
    let (Some(width), Some(height)) = (size(window().inner_width()), size(window().inner_height())) else {
        return;
    };
    let at = beside.get_bounding_client_rect();
    let left = at.left().min(width - SIZE[0] - 16.0).max(16.0);
    let [above, below] = [at.top(), height - at.bottom()].map(|room| room.clamp(0.0, height));
    let is_below = below >= SIZE[1] || below >= above;
    let (top, bottom) = match is_below {
        true => (format!("{}px", height - below + 6.0), "auto".to_owned()),
        false => ("auto".to_owned(), format!("{}px", height - above + 6.0)),
    };
    let room = if is_below { below } else { above } - 22.0;
    let style = panel.style();
    let values = [
        ("--left", format!("{left}px")),
        ("--top", top),
        ("--bottom", bottom),
        ("--room", format!("{room}px")),
    ];
    for (name, value) in values {
        // If a property cannot be set, the panel stays in the centre.
        style.set_property(name, &value).ok();
    }
}
