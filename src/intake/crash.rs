//! Tells errors and logs of a crash from all other texts that people paste.

/// Words that only the output of a run has, never the file that starts it. Lower case.
const OUTPUT: [&str; 20] = [
    "traceback (most recent call last)",
    "out of memory. tried to allocate",
    "outofmemoryerror: ",
    "runtimeerror: ",
    "valueerror: ",
    "assertionerror: ",
    "cuda error: ",
    "cublas_status_",
    "cudnn_status_",
    "ncclinternalerror",
    "resource_exhausted",
    "oom-kill",
    "exitcode: -9",
    "exitcode : -9",
    "return code = -9",
    "winerror 1455",
    "memory allocated (gb)",
    "indexerror: ",
    "exit code 137",
    "oom on ",
];

/// Words of an error, or of a log of one, that a careful script or program may have too. Lower case.
const SIGNS: [&str; 30] = [
    "out of memory",
    "outofmemory",
    "out-of-memory",
    "cuda error",
    "cudamalloc",
    "nccl",
    "oom",
    "sigkill",
    "sigsegv",
    "segmentation fault",
    "bus error",
    "killed",
    "no space left",
    "cannot allocate memory",
    "memory",
    "max_memory",
    "allocated_bytes",
    "pytorch cuda memory summary",
    "nvidia-smi",
    "error:",
    "errno",
    "exception",
    "warning:",
    "exitcode",
    "exit code",
    "mismatch",
    "nvrm: xid",
    "hangs",
    "it/s",
    "s/it",
];

/// The same in Chinese.
const SIGNS_ZH: [&str; 9] = [
    "显存",
    "顯存",
    "記憶體",
    "内存",
    "溢出",
    "报错",
    "報錯",
    "段错误",
    "卡住",
];

/// Shortest text that is taken for a log: a word or two are a name that was typed.
const SHORTEST: usize = 24;

/// Returns true for a text that tells of a crash: an error message, a log with one, a sentence about one. A text that
/// starts a run as well is the log of one only if it has what no such file has, outside its comments.
pub fn is_crash(text: &str, is_launch: bool) -> bool {
    if text.trim().len() < SHORTEST && !SIGNS_ZH.iter().any(|sign| text.contains(sign)) {
        return false;
    }
    let lower = text.to_lowercase();
    let is_output = |line: &str| {
        let line = line.trim_start();
        let has = |signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
        !line.starts_with('#') && (has(&OUTPUT) || has(&SIGNS_ZH) || line == "killed")
    };
    if is_launch {
        return lower.lines().any(is_output);
    }
    let signs = OUTPUT.iter().chain(&SIGNS).chain(&SIGNS_ZH);
    signs.into_iter().any(|sign| lower.contains(sign))
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
        ] {
            assert!(is_crash(text, false), "{text}");
        }
        let log = "$ swift sft --model x\nTraceback (most recent call last):\n  File \"x\"";
        assert!(is_crash(log, true), "a log that begins with its command");
        for text in [
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "out of memory",
            "{\"model_type\": \"llama\", \"hidden_size\": 4096}",
            "The quick brown fox jumps over the lazy dog.",
        ] {
            assert!(!is_crash(text, false), "{text}");
        }
        for text in [
            "# avoids CUDA out of memory. Tried to allocate is what it said\nswift sft --model x",
            "nvidia-smi\nexport NCCL_DEBUG=INFO\ntorchrun train.py --bf16",
        ] {
            assert!(!is_crash(text, true), "{text}");
        }
    }
}
