//! What follows signals, as one type each: so the program has the code to show and renew it just once,
//! not for every closure again.

use std::sync::{Arc, Mutex};

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
