//! PyTorch's caching allocator, exact.
