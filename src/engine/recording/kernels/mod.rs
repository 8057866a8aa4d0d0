//! Internal memory of recorded operations' kernels, by the rules of simulated operations.

mod attention;
mod call;
mod convolution;
mod copies;
mod index;
mod normalization;
mod norms;
mod order;
mod products;
mod reductions;
mod scans;

pub(super) use call::{Call, NewMemory};

use crate::names::Name;

/// Returns an operation's name without namespace and overload: `mm` of `aten.mm.default`.
pub(super) fn short(name: Name) -> Name {
    // Names are short: bytes are compared faster than a search begins.
    let dot = |text: &str| text.bytes().position(|byte| byte == b'.');
    let name = dot(name).map_or(name, |at| &name[at + 1..]);
    dot(name).map_or(name, |at| &name[..at])
}

/// Returns the label of memory that an operation allocates.
pub(super) fn title(name: Name) -> Name {
    let name = short(name).trim_matches('_');
    name.strip_suffix("_data").unwrap_or(name)
}

/// Allocates an operation's results and its kernels' temporaries; returns false if the latter are unknown.
pub(super) fn run(call: &Call<'_>) -> bool {
    let known = match short(call.name) {
        name if !call.name.starts_with("aten.") => elsewhere(name),
        name => aten(name, call),
    };
    call.make();
    known
}

/// Returns true always: operations outside PyTorch's own library are taken to need no temporaries.
fn elsewhere(_: &str) -> bool {
    true
}

fn aten(name: &str, call: &Call<'_>) -> bool {
    match name {
        "mm" | "bmm" | "baddbmm" | "baddbmm_" | "addbmm" | "addbmm_" | "mv" | "addmv" | "addmv_" | "dot" | "vdot"
        | "addr" => products::product(name, call),
        "addmm" | "addmm_" | "_addmm_activation" => products::addmm(call),
        "_scaled_mm" | "_int_mm" => products::lt(call),
        "_grouped_mm" | "_scaled_grouped_mm" => return products::grouped(call),
        _ if name.starts_with("_scaled_dot_product") || name.contains("_attention_") => {
            return attention::attention(name, call);
        }
        "convolution" | "cudnn_convolution" | "convolution_overrideable" => return convolution::forward(call),
        "convolution_backward" => return convolution::backward(call),
        "native_group_norm" => norms::group_norm(call),
        "native_group_norm_backward" => norms::group_norm_backward(call),
        "native_batch_norm" | "_native_batch_norm_legit" => return norms::batch_norm(call),
        "native_batch_norm_backward" => return norms::batch_norm_backward(call),
        "cudnn_batch_norm" | "cudnn_batch_norm_backward" => return norms::cudnn(call),
        "linalg_solve_triangular" => products::triangular_solve(call),
        "sort" => return order::sort(call),
        "topk" => return order::topk(call),
        "multinomial" => return order::multinomial(call),
        "_unique2" | "unique_dim" | "_unique" => return false,
        "_fused_rms_norm_backward" => normalization::rms_norm_backward(call),
        "native_layer_norm" => normalization::layer_norm(call),
        "native_layer_norm_backward" => normalization::layer_norm_backward(call),
        "_softmax" | "_log_softmax" => normalization::softmax(call),
        "_softmax_backward_data" => normalization::softmax_backward(call, true),
        "_log_softmax_backward_data" => normalization::softmax_backward(call, false),
        "_safe_softmax" => normalization::safe_softmax(call),
        "native_dropout" | "_fused_dropout" => call.make_in(&[1, 0]),
        "_upsample_bilinear2d_aa" | "_upsample_bicubic2d_aa" => normalization::resized(call),
        "_upsample_bilinear2d_aa_backward" | "_upsample_bicubic2d_aa_backward" => normalization::pool_backward(call),
        "mse_loss" | "smooth_l1_loss" | "huber_loss" => normalization::reduced_loss(call),
        "im2col" => normalization::patches(call),
        "col2im" => normalization::patches_back(call),
        "avg_pool2d_backward" | "avg_pool3d_backward" | "upsample_linear1d_backward" => {
            normalization::pool_backward(call)
        }
        "embedding" => index::embedding(call),
        "embedding_dense_backward" => index::embedding_backward(call),
        "_embedding_bag_backward" => index::embedding_bag_backward(call, 6),
        "_embedding_bag_dense_backward" => index::embedding_bag_backward(call, 5),
        "nonzero" => index::nonzero(call),
        "masked_select" | "masked_scatter_backward" => index::masked_select(call),
        "bucketize" | "searchsorted" => scans::search(call),
        "pow" => reductions::power(call),
        "_to_copy" => copies::to_host(call),
        "masked_scatter" | "masked_scatter_" => index::masked_scatter(call),
        "index" => index::index(call),
        "index_put" | "index_put_" | "_index_put_impl_" | "_unsafe_index_put" => index::index_put(call),
        "unique_consecutive" => scans::unique_consecutive(call),
        "repeat_interleave" => scans::repeat_interleave(call),
        "logsumexp" => normalization::logsumexp(call),
        "cumsum" | "cumsum_" => scans::cumsum(call),
        "_foreach_norm" => reductions::foreach_norm(call),
        _ => reductions::reduction(name, call),
    }
    true
}
