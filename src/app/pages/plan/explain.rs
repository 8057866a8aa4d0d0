//! How a number comes about, opened from the number itself.

mod number;
mod panel;
mod parts;

use leptos::prelude::*;
use vramscope_engine::report::derivation::{Derivation, Quantity};
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use crate::simulation::Simulation;
use crate::worker::{Answer, Ask, Engine, Slot};

pub use number::Explained;
pub use panel::ExplanationPanel;

/// The id of the panel.
const PANEL: &str = "derivation";
/// The widest that the panel gets, and room for most of its heights, in CSS pixels.
const SIZE: [f64; 2] = [608.0, 360.0];

/// The number that is explained, and those from which the person came to it.
#[derive(Debug, Clone, Copy)]
pub struct Explanation {
    trail: RwSignal<Vec<Quantity>>,
    found: RwSignal<Option<Derivation>>,
}

impl Explanation {
    /// Gives it to every component below; asks the engine whenever the number or the run changes.
    pub fn provide() {
        let this = Self {
            trail: RwSignal::new(Vec::new()),
            found: RwSignal::new(None),
        };
        provide_context(this);
        let (simulation, engine) = (Simulation::get(), Engine::get());
        Effect::new(move || {
            let Some((run, quantity)) = simulation.run().zip(this.now()) else {
                return this.found.set(None);
            };
            let ask = Ask::Derive { run: run.id, quantity };
            engine.ask(Slot::Derivation, ask, move |answer, _| {
                this.found.set(match answer {
                    Some(Answer::Derivation(found)) => Some(found),
                    _ => None,
                });
            });
        });
    }

    /// What the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The number that is explained now.
    fn now(self) -> Option<Quantity> {
        self.trail.with(|trail| trail.last().cloned())
    }

    /// Explains a number in the panel, beside the element that shows it.
    fn open(self, quantity: Quantity, beside: &HtmlElement) {
        self.trail.set(vec![quantity]);
        let panel = document().get_element_by_id(PANEL);
        if let Some(panel) = panel.map(JsCast::unchecked_into::<HtmlElement>) {
            place(&panel, beside);
            // Refused only where it is open already.
            panel.show_popover().ok();
        }
    }

    /// Goes into a term of the formula.
    fn enter(self, quantity: Quantity) {
        self.trail.update(|trail| trail.push(quantity));
    }

    /// Goes back to where the person came from.
    fn back(self) {
        self.trail.update(|trail| {
            trail.pop();
        });
    }

    fn close(self) {
        let panel = document().get_element_by_id(PANEL);
        if let Some(panel) = panel.map(JsCast::unchecked_into::<HtmlElement>) {
            // Refused only where it is closed already.
            panel.hide_popover().ok();
        }
    }
}

/// Puts the panel below the element, or above it where there is more room.
fn place(panel: &HtmlElement, beside: &HtmlElement) {
    let size = |n: Result<wasm_bindgen::JsValue, wasm_bindgen::JsValue>| n.ok().and_then(|n| n.as_f64());
    let (Some(width), Some(height)) = (size(window().inner_width()), size(window().inner_height())) else {
        return;
    };
    let at = beside.get_bounding_client_rect();
    let left = at.left().min(width - SIZE[0] - 16.0).max(16.0);
    let below = height - at.bottom();
    let is_below = below >= SIZE[1] || below >= at.top();
    let (top, bottom) = match is_below {
        true => (format!("{}px", at.bottom() + 6.0), "auto".to_owned()),
        false => ("auto".to_owned(), format!("{}px", height - at.top() + 6.0)),
    };
    let room = if is_below { below } else { at.top() } - 22.0;
    let style = panel.style();
    let values = [
        ("--left", format!("{left}px")),
        ("--top", top),
        ("--bottom", bottom),
        ("--room", format!("{room}px")),
    ];
    for (name, value) in values {
        // A property that cannot be set leaves the panel in the middle.
        style.set_property(name, &value).ok();
    }
}
