//! Parses PyTorch's settings of the allocator and of workspaces from the environment's variables.

use super::error::RecordingError;
use super::header::Settings;
use crate::allocator::{Options, RoundupDivisions};
use crate::tape::WorkspaceSizes;
use crate::units::Bytes;

/// Parses `PYTORCH_CUDA_ALLOC_CONF` (`c10/core/AllocatorConfig.cpp`).
pub(super) fn options(conf: &str) -> Result<Options, RecordingError> {
    let mut options = Options::default();
    for entry in entries(conf) {
        let (key, value) = entry.split_once(':').unwrap_or((entry, ""));
        let refused = || {
            RecordingError::Setting(format!(
                "the recording sets PYTORCH_CUDA_ALLOC_CONF={entry}, which is not simulated; record without it"
            ))
        };
        let number = || value.parse::<u64>().map_err(|_| refused());
        match key.trim() {
            "expandable_segments" => options.expandable_segments = value.eq_ignore_ascii_case("true"),
            "max_split_size_mb" => options.max_split_size = Some(mib(number()?).ok_or_else(refused)?),
            "max_non_split_rounding_mb" => options.max_non_split_rounding = mib(number()?).ok_or_else(refused)?,
            "garbage_collection_threshold" => {
                let part = value.parse::<f64>().ok().filter(|part| (0.0..1.0).contains(part));
                options.garbage_collection_threshold = part.ok_or_else(refused)?;
            }
            "roundup_power2_divisions" => {
                let divisions = value.parse::<u64>().ok().filter(|n| n.is_power_of_two() && *n <= 64);
                options.roundup_power2_divisions = RoundupDivisions::uniform(divisions.ok_or_else(refused)?);
            }
            "backend" if value == "native" => {}
            "backend" => return Err(refused()),
            // Other entries concern pinned memory, CUDA graphs and threads.
            _ => {}
        }
    }
    Ok(options)
}

fn mib(number: u64) -> Option<Bytes> {
    (number < 1 << 24).then(|| Bytes::mib(number))
}

/// Splits entries at commas outside brackets.
fn entries(conf: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    conf.split(move |letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|entry| !entry.is_empty())
}

/// Returns the configured sizes of workspaces.
pub(super) fn workspaces(settings: &Settings) -> WorkspaceSizes {
    WorkspaceSizes {
        cublas: cublas(&settings.cublas_workspace),
        // in KiB (`_getWorkspaceSize` in `aten/src/ATen/cuda/CUDABlas.cpp`)
        cublaslt: settings
            .cublaslt_workspace
            .parse::<u64>()
            .ok()
            .filter(|kib| *kib < 1 << 30)
            .map(|kib| kib << 10),
    }
}

/// Parses `CUBLAS_WORKSPACE_CONFIG`: pairs of a size in KiB and a count, such as `:4096:2:16:8`
/// (`parseChosenWorkspaceSize` in `aten/src/ATen/cuda/CublasHandlePool.cpp`).
fn cublas(conf: &str) -> Option<u64> {
    let numbers: Option<Vec<u64>> = conf.split(':').skip(1).map(|n| n.parse().ok()).collect();
    let numbers = numbers.filter(|n| !n.is_empty() && n.len().is_multiple_of(2))?;
    let pairs = numbers.chunks_exact(2);
    let mut kib = pairs.map(|pair| pair[0].checked_mul(pair[1]));
    let kib = kib.try_fold(0u64, |sum, kib| sum.checked_add(kib?))?;
    (kib < 1 << 30).then_some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_the_sum_of_its_pairs() {
        assert_eq!(cublas(":4096:2:16:8"), Some((4096 * 2 + 16 * 8) << 10));
        assert_eq!(cublas(":0:0"), Some(0));
        assert_eq!(cublas(""), None);
        assert_eq!(cublas(":4096"), None);
        assert_eq!(cublas(":18446744073709551615:2"), None);
    }

    #[test]
    fn options_are_those_of_the_environment() {
        let read =
            options("expandable_segments:True, max_split_size_mb:128,pinned_use_background_threads:True").unwrap();
        assert!(read.expandable_segments);
        assert_eq!(read.max_split_size, Some(Bytes::mib(128)));
        assert_eq!(options("").unwrap(), Options::default());
        let refused = options("backend:cudaMallocAsync").unwrap_err().to_string();
        assert!(refused.contains("backend:cudaMallocAsync"), "{refused}");
        assert!(options("roundup_power2_divisions:[256:1,512:2]").is_err());
    }
}
