//! Tells errors and logs of a crash from all other texts that people paste.

/// Words that only an error, or a log of one, has. Lower case.
const SIGNS: [&str; 19] = [
    "out of memory",
    "outofmemoryerror",
    "traceback (most recent call last)",
    "cuda error",
    "cublas_status_",
    "cudnn_status_",
    "ncclinternalerror",
    "unhandled cuda error",
    "resource_exhausted",
    "oom-kill",
    "oom killer",
    "sigkill",
    "exitcode: -9",
    "return code = -9",
    "winerror 1455",
    "bus error",
    "memory allocated (gb)",
    "pytorch cuda memory summary",
    "nvidia-smi",
];

/// Shortest text that is taken for a log: a word or two are a name that was typed.
const SHORTEST: usize = 24;

/// Returns true for a text that tells of a crash: an error message, a log with one, a sentence about one.
pub fn is_crash(text: &str) -> bool {
    if text.trim().len() < SHORTEST {
        return false;
    }
    let lower = text.to_lowercase();
    SIGNS.iter().any(|sign| lower.contains(sign)) || lower.contains("显存不足") || lower.contains("爆显存")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_are_told_from_others() {
        for text in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch",
            "[ERROR] ['python', 'train.py'] exits with return code = -9",
            "训练到第三千步时爆显存了，之前一直是 21G 左右，请问是什么原因？",
            "$ swift sft --model x\nTraceback (most recent call last):\n  File \"x\"",
        ] {
            assert!(is_crash(text), "{text}");
        }
        for text in [
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "out of memory",
            "{\"model_type\": \"llama\", \"hidden_size\": 4096}",
            "swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --max_length 4096",
            "per_device_train_batch_size: 4\ngradient_checkpointing: true\n",
        ] {
            assert!(!is_crash(text), "{text}");
        }
    }
}
