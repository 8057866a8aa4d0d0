//! Entries of the user as text, and their encoding in the URL. Pure: tested without a browser.

mod command;
mod draft;
mod escape;
mod form;
mod key;
mod left_out;
mod matching;
mod model_groups;
mod model_name;
mod opening;
mod pins;
mod reading;
mod route;
mod saved;
mod several;
mod url;
mod widget;

pub use command::{command, recorded_command};
pub use draft::Draft;
pub use escape::quote;
pub use form::{Form, named_counts, named_text, named_texts};
pub use key::{Key, Scope};
pub use left_out::words as left_out_words;
pub use matching::{rank, without_host};
pub use model_groups::{Grouped, grouped};
pub use opening::is_open;
pub use pins::Pins;
pub use reading::{FieldError, Problem, Reading, Source, Task};
pub use route::Route;
pub use saved::{Named, Saved, is_of_setup, setup_of, with_latest};
pub use several::world;
pub use url::{Address, UrlProblem};
pub use widget::Widget;
