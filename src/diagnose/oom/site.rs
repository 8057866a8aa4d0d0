//! Finds the part of the step that a traceback shows.

use super::Site;

/// Number of lines searched above the error; the significant frames of deeper stacks are closer to the error.
const LINES: usize = 120;

/// The part of the step that the traceback above byte `at` shows; `None` if there is no traceback.
pub fn of(text: &str, at: usize) -> Option<Site> {
    let above = text.get(..at)?;
    let start = above.rfind("Traceback (most recent call last)")?;
    let lines: Vec<&str> = above[start..].lines().rev().take(LINES).collect();
    let frames: Vec<&str> = lines
        .iter()
        .rev()
        .copied()
        .filter(|line| !line.trim().is_empty())
        .collect();
    // Another traceback ends in between, so this one belongs to another error.
    let has = |words: &[&str]| frames.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if has(&["_init_group", "get_state_buffer", "init_state", "_init_state"]) {
        return Some(Site::OptimizerStates);
    }
    if has(&["/optim/", "\\optim\\", "optimizer.step("]) {
        return Some(Site::Optimizer);
    }
    if has(&["autograd/__init__.py", "_engine_run_backward", ".backward("]) {
        return Some(Site::Backward);
    }
    // The innermost frames show the computation.
    let inner = &frames[frames.len().saturating_sub(8)..];
    let inside = |words: &[&str]| inner.iter().any(|line| words.iter().any(|word| line.contains(word)));
    if inside(&["cross_entropy", "lm_head", "logits", "loss_function", "ForCausalLMLoss"]) {
        return Some(Site::Loss);
    }
    if inside(&[
        "scaled_dot_product",
        "eager_attention",
        "attn_weights",
        "attention_forward",
        "softmax",
    ]) {
        return Some(Site::Attention);
    }
    if has(&[
        "vision_tower",
        "vision_model",
        "get_image_features",
        "encode_images",
        "visual(",
    ]) {
        return Some(Site::Vision);
    }
    if has(&[
        "from_pretrained",
        "load_state_dict",
        "in _apply",
        ".to(device",
        ".cuda(",
    ]) && !has(&["in forward"])
    {
        return Some(Site::Load);
    }
    has(&["in forward", "_call_impl"]).then_some(Site::Forward)
}
