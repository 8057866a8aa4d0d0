//! Reading of a Hugging Face `config.json`: its sections key by key, the limits of values, and what configurations of
//! several families hold.
//!
//! Absent keys take the defaults of transformers 5.17's configuration classes, except that a whole `config.json` must
//! state its own sizes: a default there would silently be another model. What its sections leave to a class is noted
//! ([`ClassDefaults`]), and a result says so.

mod activation;
pub(crate) mod class_defaults;
pub(crate) mod limits;
pub(crate) mod rope;
pub(crate) mod section;
mod shapes;

pub use class_defaults::ClassDefaults;

pub use crate::nn::Activation;
pub use rope::{Rope, RopeKind};
pub use shapes::{EncoderShape, PatchGrid};
