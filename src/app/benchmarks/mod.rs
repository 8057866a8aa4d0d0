//! What `/benchmarks` knows before it draws: where records are published, what an answer means, what cards
//! are called beside each other.

mod answer;
mod names;

pub use answer::{Answer, Asked, list_after, record_at};
pub use names::{is_id, short_names};
