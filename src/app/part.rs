//! Type-erased reactive values, so that the program holds the code to render and update them once instead of once per
//! closure.

use std::sync::{Arc, Mutex};

use leptos::prelude::*;

/// A text that is recomputed when its inputs change.
pub type Text = Arc<Mutex<dyn FnMut() -> String + Send>>;

/// Wraps a closure as a reactive text.
pub fn text(words: impl FnMut() -> String + Send + 'static) -> Text {
    Arc::new(Mutex::new(words))
}

/// A boolean that is recomputed when its inputs change; used for CSS classes.
pub type Truth = Arc<Mutex<dyn FnMut() -> bool + Send>>;

/// Wraps a closure as a reactive boolean.
pub fn truth(holds: impl FnMut() -> bool + Send + 'static) -> Truth {
    Arc::new(Mutex::new(holds))
}

/// A part of the page that is rebuilt when its inputs change; `None` shows nothing.
pub type Part = Arc<Mutex<dyn FnMut() -> Option<AnyView> + Send>>;

/// Wraps a closure as a reactive part.
pub fn part(make: impl FnMut() -> Option<AnyView> + Send + 'static) -> Part {
    Arc::new(Mutex::new(make))
}
