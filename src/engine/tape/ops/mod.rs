//! Operations: the tensors that each makes, saves for backward, and drops, in PyTorch's order.
//!
//! Derivatives of several inputs are computed in alphabetical order of the inputs' names, because
//! PyTorch's code generator sorts them (`torchgen/api/autograd.py`, `load_derivatives.py`).

mod attention;
mod baddbmm;
mod batch_norm;
mod causal_conv;
mod chunked_log_probs;
mod collective;
mod complex;
mod conv;
mod conv_image;
mod conv_volume;
mod cub;
mod cudnn_conv;
mod dropout;
mod embedding;
mod functions;
mod fused_loss;
mod grouped;
mod im2col;
mod in_place;
mod index;
mod index_rows;
mod liger;
mod linalg;
mod linear_zero3;
mod loss;
mod matmul;
mod norm;
mod order;
mod pointwise;
mod pool;
mod reduce;
mod reduce_config;
mod resample;
mod routing;
mod scan;
mod segments;
mod select;
mod stack;
mod views;

pub(crate) use attention::FlashCaller;
pub use attention::{Mask, SdpaBackend, SdpaInputs};
pub use batch_norm::BatchNormTensors;
pub use chunked_log_probs::{LogProbs, TokenFigures};
pub(crate) use order::MOST_IN_PLACE;
pub use segments::Cuts;
pub(crate) use views::promote;
