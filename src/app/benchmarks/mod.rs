//! Logic of `/benchmarks` that needs no browser: addresses of published records, meaning of answers, short card names.

mod answer;
mod names;

pub use answer::{Asked, Fetched, list_after, record_at};
pub use names::{is_id, short_names};
