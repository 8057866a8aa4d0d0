use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::report::derivation::{Derivation, Source, Unit};
use vramscope_engine::units::Bytes;
use wasm_bindgen::{JsCast, JsValue};

use super::parts::Parts;
use super::{Explanation, PANEL};
use crate::i18n::{t, t_string, use_i18n};
use crate::words;

/// The panel that explains a number: formula, numbers, result, source. The browser closes it at
/// Escape and at a click elsewhere, and gives the focus back.
#[component]
pub fn ExplanationPanel() -> impl IntoView {
    let i18n = use_i18n();
    let explanation = Explanation::get();
    let name = move || explanation.now().map(|now| words::quantity(i18n, &now));
    let on_toggle = move |event: leptos::ev::Event| {
        let state = js_sys::Reflect::get(event.unchecked_ref::<JsValue>(), &"newState".into());
        if state.is_ok_and(|state| state == "closed") {
            explanation.trail.set(Vec::new());
        }
    };
    view! {
        <div
            id=PANEL
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
                <button
                    type="button"
                    class="derivation-close"
                    aria-label=move || t_string!(i18n, derivation.close).to_string()
                    on:click=move |_| explanation.close()
                >
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                        <path d="M4 4l8 8M12 4l-8 8" />
                    </svg>
                </button>
            </div>
            {move || explanation.found.get().map(|derivation| view! { <Body derivation /> }.into_any())}
        </div>
    }
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
