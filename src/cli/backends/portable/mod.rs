//! Any GPU that Vulkan, Metal or DirectX 12 reaches, through wgpu: kernels in WGSL, fp32, and fp16 where
//! the adapter has it. WGSL knows no bfloat16.

mod attention;
mod gpu;
mod host_copy;
mod job;
mod steps;
#[cfg(test)]
mod tests;

pub use gpu::find;
