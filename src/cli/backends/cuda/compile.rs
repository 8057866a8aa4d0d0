//! Compiles our own CUDA C++ kernels for the card at run time.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

use vramscope_benchmark::Precision;

use super::api::{Handle, Nvrtc};
use super::device::{Card, text};
use crate::backends::Refusal;

/// Code prepended to each source.
const COMMON: &str = include_str!("kernels/common.cu");

/// A source file of kernels, compiled when one of its kernels is first used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Initialisation of inputs, and elementwise kernels.
    Elements,
    /// Row-wise kernels, forward.
    Rows,
    /// Row-wise kernels, backward; sums over columns; rows selected by labels.
    Gradients,
    /// Kernels over lists of tensors.
    Lists,
    /// Attention.
    Attention,
}

impl Source {
    const fn text(self) -> &'static str {
        match self {
            Self::Elements => include_str!("kernels/elements.cu"),
            Self::Rows => include_str!("kernels/rows.cu"),
            Self::Gradients => include_str!("kernels/gradients.cu"),
            Self::Lists => include_str!("kernels/lists.cu"),
            Self::Attention => include_str!("kernels/attention.cu"),
        }
    }
}

/// Compiled kernels of one source for one element type.
pub struct Module {
    card: Rc<Card>,
    handle: Handle,
}

/// Kernel arguments in order.
#[derive(Default)]
pub struct Arguments(Vec<u64>);

impl Arguments {
    /// Appends an address or a 64-bit number.
    pub fn wide(mut self, value: u64) -> Self {
        self.0.push(value);
        self
    }

    /// Appends a 32-bit number.
    pub fn narrow(self, value: u32) -> Self {
        self.wide(u64::from(value))
    }

    /// Appends an fp32 number.
    pub fn float(self, value: f32) -> Self {
        self.narrow(value.to_bits())
    }
}

/// A kernel that can be launched.
#[derive(Clone)]
pub struct Function {
    card: Rc<Card>,
    handle: Handle,
    /// Name in the source.
    pub name: String,
}

impl Module {
    /// Compiles a source for an element type.
    ///
    /// # Errors
    /// The compiler's or driver's message.
    pub fn compile(
        nvrtc: &Nvrtc,
        card: &Rc<Card>,
        source: Source,
        precision: Precision,
        capability: [i32; 2],
    ) -> Result<Self, Refusal> {
        let element = match precision {
            Precision::Fp32 | Precision::Tf32 => 0,
            Precision::Bf16 => 1,
            Precision::Fp16 => 2,
        };
        let [major, minor] = capability;
        let options = [
            format!("--gpu-architecture=sm_{major}{minor}"),
            format!("-DELEMENT={element}"),
            "--std=c++17".into(),
            "-default-device".into(),
        ];
        let image = binary(nvrtc, source, &options).map_err(|why| Refusal::Failed(format!("NVRTC: {why}")))?;
        let mut handle = null_mut();
        // SAFETY: the image is a whole cubin.
        card.ok(unsafe { (card.api.cuModuleLoadData)(&mut handle, image.as_ptr().cast()) })?;
        Ok(Self {
            card: Rc::clone(card),
            handle,
        })
    }

    /// Looks up a kernel by name.
    ///
    /// # Errors
    /// If the source has no kernel with this name.
    pub fn function(&self, name: &str) -> Result<Function, Refusal> {
        let symbol = CString::new(name).map_err(|e| Refusal::Failed(e.to_string()))?;
        let mut handle = null_mut();
        let card = &self.card;
        // SAFETY: the module is loaded and the name ends in zero.
        card.ok(unsafe { (card.api.cuModuleGetFunction)(&mut handle, self.handle, symbol.as_ptr()) })?;
        Ok(Function {
            card: Rc::clone(card),
            handle,
            name: name.into(),
        })
    }
}

// The module is never unloaded, because functions of it are handed out.

impl Function {
    /// Enqueues a launch on the stream.
    ///
    /// # Errors
    /// The driver's message.
    pub fn launch(&self, blocks: u64, threads: u32, arguments: &Arguments) -> Result<(), Refusal> {
        self.launch_over([blocks, 1], threads, arguments)
    }

    /// Enqueues a launch over a two-dimensional grid.
    ///
    /// # Errors
    /// The driver's message.
    pub fn launch_over(&self, blocks: [u64; 2], threads: u32, arguments: &Arguments) -> Result<(), Refusal> {
        let mut addresses: Vec<*mut c_void> = arguments
            .0
            .iter()
            .map(|value| std::ptr::from_ref(value).cast_mut().cast())
            .collect();
        let card = &self.card;
        let [x, y] = blocks.map(|n| n as c_uint);
        // SAFETY: each argument is at least as wide as the kernel's; narrow ones are read little-endian.
        card.ok(unsafe {
            (card.api.cuLaunchKernel)(
                self.handle,
                x,
                y,
                1,
                threads,
                1,
                1,
                0,
                card.stream,
                addresses.as_mut_ptr(),
                null_mut(),
            )
        })
    }
}

fn binary(nvrtc: &Nvrtc, source: Source, options: &[String]) -> Result<Vec<u8>, String> {
    let source = CString::new([COMMON, source.text()].concat()).map_err(|e| e.to_string())?;
    let options: Vec<CString> = options.iter().flat_map(|o| CString::new(o.as_str())).collect();
    let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program = null_mut();
    let status = |code: c_int, what: &str| match code {
        0 => Ok(()),
        _ => Err(format!("{what} gave status {code}")),
    };
    // SAFETY: every text ends in zero and outlives the calls; buffers are as long as the sizes asked for.
    unsafe {
        let code = (nvrtc.nvrtcCreateProgram)(&mut program, source.as_ptr(), c"kernels.cu".as_ptr(), 0, null(), null());
        status(code, "creating a program")?;
        let compiled = (nvrtc.nvrtcCompileProgram)(program, pointers.len() as c_int, pointers.as_ptr());
        if compiled != 0 {
            let mut size = 0;
            (nvrtc.nvrtcGetProgramLogSize)(program, &mut size);
            let mut log = vec![0_u8; size.max(1)];
            (nvrtc.nvrtcGetProgramLog)(program, log.as_mut_ptr().cast());
            let first: String = text(&log).lines().take(3).collect::<Vec<_>>().join("; ");
            (nvrtc.nvrtcDestroyProgram)(&mut program);
            return Err(format!(
                "does not compile for {}: {first}",
                options[0].to_string_lossy()
            ));
        }
        let mut size = 0;
        status((nvrtc.nvrtcGetCUBINSize)(program, &mut size), "the size of the code")?;
        let mut image = vec![0_u8; size];
        status((nvrtc.nvrtcGetCUBIN)(program, image.as_mut_ptr().cast()), "the code")?;
        (nvrtc.nvrtcDestroyProgram)(&mut program);
        Ok(image)
    }
}
