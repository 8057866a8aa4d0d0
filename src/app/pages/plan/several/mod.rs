//! Several GPUs that share a training step: strategies, and the setup on other numbers of GPUs. In a chunk of its own.

mod numbers;
mod of_one;
mod on_number;
mod options;
mod picture;
mod sharing;

pub use numbers::NumbersPanel;
pub use of_one::OfOne;
pub use sharing::Sharing;
