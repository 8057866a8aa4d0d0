//! Derivation of a time, opened by clicking the number.

use leptos::html;
use leptos::prelude::*;
use vramscope_engine::units::Seconds;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::explain::{CloseButton, show};

/// Derivation of a number, as text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explained {
    /// Name of the quantity.
    pub name: String,
    /// Formatted result.
    pub result: String,
    /// The formula.
    pub formula: String,
    /// The formula with its numbers.
    pub numbers: String,
    /// Source of the number.
    pub source: String,
}

/// State of the panel that explains a time.
#[derive(Clone, Copy)]
pub struct Explanation {
    now: RwSignal<Explained>,
    panel: NodeRef<html::Div>,
}

impl Explanation {
    /// Provides the state to all components below.
    pub fn provide() {
        provide_context(Self {
            now: RwSignal::default(),
            panel: NodeRef::new(),
        });
    }

    fn get() -> Self {
        expect_context()
    }

    fn open(self, explained: Explained, beside: &HtmlElement) {
        self.now.set(explained);
        if let Some(panel) = self.panel.get_untracked() {
            show(&panel, beside);
        }
    }
}

/// Formats milliseconds for display.
pub fn span(ms: f64) -> String {
    Seconds::new(ms / 1e3).to_string()
}

/// A number that opens its derivation when clicked.
#[component]
pub fn Number(
    /// Derivation of the number.
    explained: Explained,
    /// Id by which tests and scripts find it.
    #[prop(optional, into)]
    testid: Option<&'static str>,
    /// Exact value.
    #[prop(optional, into)]
    value: Option<f64>,
) -> impl IntoView {
    let i18n = use_i18n();
    let explanation = Explanation::get();
    let text = explained.result.clone();
    let open = move |event: leptos::ev::MouseEvent| {
        let element = event.current_target().and_then(|target| target.dyn_into().ok());
        if let Some(element) = element {
            explanation.open(explained.clone(), &element);
        }
    };
    view! {
        <button
            type="button"
            class="explained"
            aria-haspopup="dialog"
            title=move || t_string!(i18n, derivation.open).to_string()
            data-testid=testid
            data-value=value.map(|n| n.to_string())
            on:click=open
        >
            {text}
        </button>
    }
}

/// Panel that explains a number. The browser closes it on Escape or an outside click and restores the focus.
#[component]
pub fn ToldPanel() -> impl IntoView {
    let i18n = use_i18n();
    let Explanation { now, panel } = Explanation::get();
    let of = move |part: fn(&Explained) -> &String| move || now.with(|explained| part(explained).clone());
    view! {
        <div
            node_ref=panel
            class="derivation"
            popover="auto"
            role="dialog"
            aria-labelledby="told-name"
            tabindex="-1"
            autofocus
            data-testid="told"
        >
            <div class="derivation-head">
                <h2 id="told-name">{of(|explained| &explained.name)}</h2>
                <CloseButton panel />
            </div>
            <p class="derivation-result">
                <strong data-testid="told-result">{of(|explained| &explained.result)}</strong>
                <span class="basis">{t!(i18n, time.estimated)}</span>
            </p>
            <dl class="derivation-body">
                <dt>{t!(i18n, derivation.formula)}</dt>
                <dd>{of(|explained| &explained.formula)}</dd>
                <dt>{t!(i18n, derivation.numbers)}</dt>
                <dd data-testid="told-numbers">{of(|explained| &explained.numbers)}</dd>
                <dt>{t!(i18n, derivation.source)}</dt>
                <dd>{of(|explained| &explained.source)}</dd>
            </dl>
        </div>
    }
}
