//! The adapter of the portable backend: its queue and memory.

use std::cell::RefCell;
use std::collections::BTreeMap;

use vramscope_benchmark::{BenchedDevice, Class, Kernel, Precision, Reading};
use wgpu::util::DeviceExt;

use crate::backends::{Backend, Prepared, Refusal};

use super::{host_copy, job};

/// Code prepended to each source except that of labels, whose buffers have other types.
const COMMON: &str = include_str!("kernels/common.wgsl");

/// A source file of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Initialisation of inputs, copies, and elementwise kernels.
    Elements,
    /// Row-wise and column-wise kernels.
    Rows,
    /// Matrix products.
    Products,
    /// Fused attention.
    Attention,
    /// Kernels that read labels, and those whose results are fp32 whatever the type of the elements.
    Labels,
}

impl Source {
    /// WGSL text of the source for a type.
    fn text(self, precision: Precision) -> String {
        let head = match precision {
            Precision::Fp16 => "enable f16;\nalias E = f16;\n",
            _ => "alias E = f32;\n",
        };
        let (common, text) = match self {
            Self::Elements => (COMMON, include_str!("kernels/elements.wgsl")),
            Self::Rows => (COMMON, include_str!("kernels/rows.wgsl")),
            Self::Products => (COMMON, include_str!("kernels/products.wgsl")),
            Self::Attention => (COMMON, include_str!("kernels/attention.wgsl")),
            Self::Labels => ("", include_str!("kernels/labels.wgsl")),
        };
        [head, common, text].concat()
    }
}

/// An adapter, ready to measure.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    info: wgpu::AdapterInfo,
    has_fp16: bool,
    /// True if the adapter supports timestamp queries.
    pub(super) has_clock: bool,
    modules: RefCell<BTreeMap<(Source, Precision), wgpu::ShaderModule>>,
}

/// Numbers passed to a kernel: the struct `Numbers` of its WGSL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given {
    /// Integers.
    pub whole: [u32; 4],
    /// Floats.
    pub real: [f32; 4],
}

impl Given {
    /// The bytes of `Numbers` in WGSL.
    fn bytes(self) -> Vec<u8> {
        let whole = self.whole.into_iter().flat_map(u32::to_le_bytes);
        whole.chain(self.real.into_iter().flat_map(f32::to_le_bytes)).collect()
    }
}

/// A kernel that can be enqueued.
pub struct EnqueuedKernel {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) bindings: wgpu::BindGroup,
    pub(super) groups: [u32; 3],
}

/// Finds the most powerful adapter.
///
/// # Errors
/// If there is none; the message says why.
pub fn find() -> Result<Gpu, String> {
    let mut description = wgpu::InstanceDescriptor::new_without_display_handle();
    description.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(description);
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    let adapter = pollster::block_on(instance.request_adapter(&options)).map_err(
        |_| "no adapter of Vulkan, Metal or DirectX 12 was found: install the GPU's driver and its Vulkan loader",
    )?;
    Gpu::open(&adapter)
}

impl Gpu {
    fn open(adapter: &wgpu::Adapter) -> Result<Self, String> {
        let wanted = wgpu::Features::SHADER_F16 | wgpu::Features::TIMESTAMP_QUERY;
        let features = adapter.features() & wanted;
        let description = wgpu::DeviceDescriptor {
            required_features: features,
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&description)).map_err(|e| format!("the adapter: {e}"))?;
        Ok(Self {
            device,
            queue,
            info: adapter.get_info(),
            has_fp16: features.contains(wgpu::Features::SHADER_F16),
            has_clock: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            modules: RefCell::default(),
        })
    }

    /// Refuses types that WGSL or the adapter lacks.
    pub(super) fn check(&self, precision: Precision) -> Result<(), Refusal> {
        let reason = match precision {
            Precision::Fp32 => return Ok(()),
            Precision::Fp16 if self.has_fp16 => return Ok(()),
            Precision::Fp16 => "the adapter has no fp16 in its shaders",
            Precision::Bf16 => "WGSL has no bfloat16",
            Precision::Tf32 => "WGSL has no TF32",
        };
        Err(Refusal::Unsupported(reason.into()))
    }

    /// Allocates memory on the adapter.
    pub(super) fn allocate(&self, bytes: u64) -> Result<wgpu::Buffer, Refusal> {
        let limits = self.device.limits();
        let most = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size);
        if bytes > most {
            return Err(Refusal::OutOfMemory {
                needed: bytes,
                free: most,
            });
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes.max(16).next_multiple_of(4),
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        match pollster::block_on(scope.pop()) {
            None => Ok(buffer),
            // The adapter does not report its memory.
            Some(_) => Err(Refusal::OutOfMemory { needed: bytes, free: 0 }),
        }
    }

    /// Prepares one step of a measurement: a kernel with its buffers and numbers bound. Every kernel has bindings for four
    /// buffers: one that uses fewer gets spare ones.
    pub(super) fn step(
        &self,
        (source, name): (Source, &str),
        precision: Precision,
        buffers: [&wgpu::Buffer; 4],
        numbers: Given,
        groups: [u32; 3],
    ) -> Result<EnqueuedKernel, Refusal> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let layout = self.layout();
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            ..Default::default()
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &self.module(source, precision),
            entry_point: Some(name),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let numbers = self.device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
            label: None,
            contents: &numbers.bytes(),
            usage: wgpu::BufferUsages::UNIFORM,
        });
        let bound: Vec<wgpu::BindGroupEntry<'_>> = (0..)
            .zip(buffers.into_iter().chain([&numbers]))
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let bindings = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &bound,
        });
        match pollster::block_on(scope.pop()) {
            None => Ok(EnqueuedKernel {
                pipeline,
                bindings,
                groups,
            }),
            Some(error) => Err(Refusal::Failed(error.to_string())),
        }
    }

    /// Bindings of every kernel: four buffers, then its numbers.
    fn layout(&self) -> wgpu::BindGroupLayout {
        let entry = |binding: u32| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: match binding {
                    4 => wgpu::BufferBindingType::Uniform,
                    _ => wgpu::BufferBindingType::Storage { read_only: false },
                },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[0, 1, 2, 3, 4].map(entry),
        })
    }

    fn module(&self, source: Source, precision: Precision) -> wgpu::ShaderModule {
        let make = || {
            self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(precision.name()),
                source: wgpu::ShaderSource::Wgsl(source.text(precision).into()),
            })
        };
        self.modules
            .borrow_mut()
            .entry((source, precision))
            .or_insert_with(make)
            .clone()
    }

    /// Waits until the queue is empty.
    pub(super) fn wait(&self) -> Result<(), Refusal> {
        match self.device.poll(wgpu::PollType::wait_indefinitely()) {
            Ok(_) => Ok(()),
            Err(e) => Err(Refusal::Failed(format!("wgpu: {e}"))),
        }
    }

    /// Bytes of a buffer; start and count must be multiples of 4.
    pub(super) fn read(&self, buffer: &wgpu::Buffer, start: u64, count: u64) -> Result<Vec<u8>, Refusal> {
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: count,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, start, &staging, 0, count);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        let bytes = staging
            .get_mapped_range(..)
            .map_err(|e| Refusal::Failed(format!("wgpu: {e}")))?
            .to_vec();
        staging.unmap();
        Ok(bytes)
    }

    /// Name of the graphics interface, as in records.
    pub fn interface(&self) -> &'static str {
        match self.info.backend {
            wgpu::Backend::Vulkan => "vulkan",
            wgpu::Backend::Metal => "metal",
            wgpu::Backend::Dx12 => "dx12",
            _ => "wgpu",
        }
    }

    /// Returns true if the adapter is a CPU that emulates a GPU.
    pub fn is_software(&self) -> bool {
        self.info.device_type == wgpu::DeviceType::Cpu
    }
}

impl Backend for Gpu {
    fn device(&self) -> BenchedDevice {
        let driver = format!("{} {}", self.info.driver, self.info.driver_info);
        BenchedDevice {
            name: self.info.name.clone(),
            backend: self.interface().into(),
            driver: Some(driver.trim().to_owned()).filter(|text| !text.is_empty()),
            ..BenchedDevice::default()
        }
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn other_processes(&self) -> Option<u32> {
        None
    }

    fn taken_bytes(&self) -> Option<u64> {
        None
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Prepared + '_>, Refusal> {
        match kernel.class {
            Class::HostToDevice | Class::DeviceToHost => host_copy::prepare(self, kernel),
            _ => job::prepare(self, kernel),
        }
    }
}
