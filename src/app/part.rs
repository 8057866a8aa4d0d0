//! What follows signals, as one type each: so the program has the code to show and renew it just once,
//! not for every closure again.

use std::sync::{Arc, Mutex};

use leptos::children::ViewFn;
use leptos::prelude::*;

/// A text that is written anew when what it reads changes.
pub type Text = Arc<Mutex<dyn FnMut() -> String + Send>>;

/// A text of this function's.
pub fn text(words: impl FnMut() -> String + Send + 'static) -> Text {
    Arc::new(Mutex::new(words))
}

/// A yes or no that is asked anew when what it reads changes: for classes.
pub type Truth = Arc<Mutex<dyn FnMut() -> bool + Send>>;

/// What this function says.
pub fn truth(holds: impl FnMut() -> bool + Send + 'static) -> Truth {
    Arc::new(Mutex::new(holds))
}

/// A part of the page that is made anew when what it reads changes; there may be nothing to show.
pub type Part = Arc<Mutex<dyn FnMut() -> Option<AnyView> + Send>>;

/// A part of this function's.
pub fn part(make: impl FnMut() -> Option<AnyView> + Send + 'static) -> Part {
    Arc::new(Mutex::new(make))
}

/// A condition that is followed.
pub struct When(Box<dyn Fn() -> bool + Send + Sync>);

impl<F: Fn() -> bool + Send + Sync + 'static> From<F> for When {
    fn from(when: F) -> Self {
        Self(Box::new(when))
    }
}

/// Its children while a condition holds, else the fallback. Leptos's own is compiled anew for every condition and
/// all children; this one is there once.
#[component]
pub fn Show(
    /// The condition.
    #[prop(into)]
    when: When,
    /// What stands there while it does not hold: nothing, unless this is given.
    #[prop(optional, into)]
    fallback: ViewFn,
    /// What stands there while it holds.
    children: ChildrenFn,
) -> impl IntoView {
    let holds = Memo::new(move |_| (when.0)());
    part(move || Some(if holds.get() { children() } else { fallback.run() }))
}
