use crate::diagnose::finding::Step;

/// What to do, in one sentence.
pub const fn step(step: Step) -> &'static str {
    match step {
        Step::StopOthers => {
            "See who holds the card with `nvidia-smi`, and end what is not needed (a notebook's old kernel, a run that hangs)."
        }
        Step::OtherDevice => "Take another card: CUDA_VISIBLE_DEVICES=1.",
        Step::SmallerBatch => "Halve the micro-batch until it fits, and make up for it with gradient accumulation.",
        Step::Checkpoint => "Turn on gradient checkpointing: model.gradient_checkpointing_enable().",
        Step::FusedAttention => {
            "Use attention that makes no matrix: attn_implementation=\"sdpa\" or \"flash_attention_2\"."
        }
        Step::Shorter => "Shorten the longest sequence, or lower the image resolution: both lower the positions.",
        Step::FusedLoss => "Use a fused linear cross-entropy (Liger), which never makes all logits.",
        Step::SmallerOptimizer => {
            "Use the fused AdamW (fused=True), which holds no temporaries, or an 8-bit one, whose states take a quarter."
        }
        Step::Adapters => "Train less: LoRA, or 4-bit weights with LoRA (QLoRA), or freeze the vision tower.",
        Step::ExpandableSegments => "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before PyTorch starts.",
        Step::EmptyCache => {
            "Call torch.cuda.empty_cache() between phases that differ, such as training and evaluation; not in every step."
        }
        Step::RaiseLimit => {
            "Raise the limit: torch.cuda.set_per_process_memory_fraction, or PYTORCH_MPS_HIGH_WATERMARK_RATIO on Apple."
        }
        Step::LeaveRoom => {
            "Leave room outside the cache: torch.cuda.set_per_process_memory_fraction(0.9), or make the handle before training fills the card."
        }
        Step::FewerGraphs => {
            "Capture fewer CUDA graphs, or let them share a pool; torch.compile's \"reduce-overhead\" makes them."
        }
        Step::SaveHostMemory => {
            "Fewer data-loader workers, smaller prefetch, no second copy of the model on the host; see `free -h`."
        }
        Step::WholeMessage => {
            "Paste the whole message, from the line with \"Tried to allocate\" on, and the traceback above it."
        }
        Step::Record => {
            "Record what holds it: torch.cuda.memory._record_memory_history() at the start, torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") after the crash, and give that file here."
        }
        Step::NameSetup => {
            "Name model and setup (--model, --batch, --seq, …): then each measure shows the bytes it saves."
        }
        Step::NameCard => "Name the card (--gpu): then the forecast says when it is full.",
        Step::DetachLoss => "Add up loss.item(), not loss: a loss that is kept keeps its whole graph.",
        Step::NoLists => "Keep no GPU tensors in lists between steps; store .detach().cpu().",
        Step::CustomAutograd => "In own autograd functions use ctx.save_for_backward, not attributes of ctx.",
        Step::RemoveHooks => "Remove hooks that you register: handle.remove().",
        Step::GroupByLength => {
            "Put samples of similar length or size into one batch (group_by_length), and cap the longest."
        }
        Step::FeedFaster => {
            "Feed the GPU faster: num_workers, pin_memory=True, prefetch_factor, decode images ahead of time."
        }
        Step::OverlapCommunication => {
            "Overlap communication with backward, use larger buckets, and no_sync() while gradients accumulate."
        }
        Step::AsyncCopies => {
            "Copy from pinned memory with non_blocking=True, and leave out .item() and .cpu() in the loop."
        }
        Step::FillTheDevice => {
            "Give it more work at once: a larger batch, or torch.compile against many small kernels."
        }
        Step::Trace => {
            "Record a trace of a few steps with torch.profiler, and give it here: it shows what the GPU waits for."
        }
        Step::CheckLimits => "Look for limits outside PyTorch: the container's, MIG's (`nvidia-smi -L`), WSL's.",
        Step::SaveNow => "Save a checkpoint now: at this rate the run ends soon.",
    }
}
