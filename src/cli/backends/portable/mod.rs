//! Portable backend for any GPU with Vulkan, Metal or DirectX 12, through wgpu. Kernels are in WGSL, for fp32, and for
//! fp16 if the adapter supports it; WGSL has no bfloat16.

mod attention;
mod gpu;
mod host_copy;
mod job;
mod steps;
#[cfg(test)]
mod tests;

pub use gpu::find;
