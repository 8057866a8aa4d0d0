//! Finds the part of the step that a traceback shows.

use super::Site;

/// Number of lines searched above the error; the significant frames of deeper stacks are closer to the error.
const LINES: usize = 120;

/// Bytes searched above the error.
const WINDOW: usize = 64 << 10;
/// Number of lines searched below the error, if there are no frames above it.
const LINES_BELOW: usize = 40;

/// The part of the step that the frames around byte `at` show; `None` if there are none. Frames stand above the error,
/// with or without their heading, or below it.
pub fn of(text: &str, at: usize) -> Option<Site> {
    let frames = frames(text, at)?;
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

/// Lines of the traceback around byte `at`; `None` if there is none.
fn frames(text: &str, at: usize) -> Option<Vec<&str>> {
    let mut from = at.saturating_sub(WINDOW);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let above = text.get(from..at)?;
    let start = above.rfind("Traceback (most recent call last)");
    let above: Vec<&str> = above[start.unwrap_or_default()..].lines().rev().take(LINES).collect();
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("File \"") || line.contains(".py:") && line.contains(" in ")
    };
    let lines: Vec<&str> = match above.iter().any(is_frame) {
        true => above.into_iter().rev().collect(),
        false => text[at..].lines().skip(1).take(LINES_BELOW).collect(),
    };
    let is_there = start.is_some() || lines.iter().any(is_frame);
    is_there.then(|| lines.into_iter().filter(|line| !line.trim().is_empty()).collect())
}
