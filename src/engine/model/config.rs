//! Reading of a Hugging Face `config.json`: its sections key by key, the limits of values, and what configurations of
//! several families hold.
//!
//! Absent keys take the defaults of transformers 5.17's configuration classes, except that a whole `config.json` must
//! state its own sizes: a default there would silently be another model.

mod activation;
pub(crate) mod limits;
pub(crate) mod rope;
pub(crate) mod section;
mod shapes;

pub use crate::nn::Activation;
pub use rope::{Rope, RopeKind};
pub use shapes::{EncoderShape, PatchGrid};
