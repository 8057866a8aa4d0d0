//! Workspaces that libraries keep for their kernels, and their sizes.

/// Key of a library's workspace, which the allocator serves once per thread that uses the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Workspace {
    pub lib: &'static str,
    pub backward_thread: bool,
    pub stream: u32,
}

/// Bytes of libraries' workspaces that the environment sets (`CUBLAS_WORKSPACE_CONFIG`, `CUBLASLT_WORKSPACE_SIZE`);
/// PyTorch's defaults for those it does not set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceSizes {
    pub cublas: Option<u64>,
    pub cublaslt: Option<u64>,
}
