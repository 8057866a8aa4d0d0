//! Bindings to the functions of NVIDIA's libraries, each loaded by name.

#![allow(non_snake_case, reason = "the libraries' own names")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

/// Declares a library's functions; `load` reports the first missing one.
macro_rules! functions {
    ($(#[$doc:meta])* $api:ident { $(fn $name:ident($($arg:ty),*);)* }) => {
        $(#[$doc])*
        pub struct $api {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> c_int,)*
            /// Keeps the library loaded, and so the functions valid.
            _library: Library,
        }

        impl $api {
            /// Looks up every function.
            ///
            /// # Errors
            /// If the library lacks a function; the message names it.
            pub fn load(library: Library) -> Result<Self, String> {
                $(
                    // SAFETY: the type is that of the function's documentation.
                    let $name = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                        .map(|symbol| *symbol)
                        .map_err(|_| concat!("it is too old: `", stringify!($name), "` is missing").to_owned())?;
                )*
                Ok(Self { $($name,)* _library: library })
            }
        }
    };
}

/// An address on the card.
pub type Address = u64;
/// An opaque handle of a library.
pub type Handle = *mut c_void;

functions! {
    /// The CUDA driver.
    Driver {
        fn cuInit(c_uint);
        fn cuDriverGetVersion(*mut c_int);
        fn cuGetErrorString(c_int, *mut *const c_char);
        fn cuDeviceGetCount(*mut c_int);
        fn cuDeviceGet(*mut c_int, c_int);
        fn cuDeviceGetName(*mut c_char, c_int, c_int);
        fn cuDeviceTotalMem_v2(*mut usize, c_int);
        fn cuDeviceGetAttribute(*mut c_int, c_int, c_int);
        fn cuDeviceGetPCIBusId(*mut c_char, c_int, c_int);
        fn cuDevicePrimaryCtxRetain(*mut Handle, c_int);
        fn cuDevicePrimaryCtxRelease_v2(c_int);
        fn cuCtxSetCurrent(Handle);
        fn cuMemGetInfo_v2(*mut usize, *mut usize);
        fn cuMemAlloc_v2(*mut Address, usize);
        fn cuMemFree_v2(Address);
        fn cuMemAllocHost_v2(*mut *mut c_void, usize);
        fn cuMemFreeHost(*mut c_void);
        fn cuMemcpyHtoD_v2(Address, *const c_void, usize);
        fn cuMemcpyDtoH_v2(*mut c_void, Address, usize);
        fn cuMemcpyHtoDAsync_v2(Address, *const c_void, usize, Handle);
        fn cuMemcpyDtoHAsync_v2(*mut c_void, Address, usize, Handle);
        fn cuMemcpyDtoDAsync_v2(Address, Address, usize, Handle);
        fn cuMemsetD8Async(Address, u8, usize, Handle);
        fn cuDeviceCanAccessPeer(*mut c_int, c_int, c_int);
        fn cuCtxEnablePeerAccess(Handle, c_uint);
        fn cuCtxDisablePeerAccess(Handle);
        fn cuMemcpyPeerAsync(Address, Handle, Address, Handle, usize, Handle);
        fn cuStreamCreate(*mut Handle, c_uint);
        fn cuStreamSynchronize(Handle);
        fn cuStreamDestroy_v2(Handle);
        fn cuEventCreate(*mut Handle, c_uint);
        fn cuEventRecord(Handle, Handle);
        fn cuEventSynchronize(Handle);
        fn cuEventElapsedTime(*mut f32, Handle, Handle);
        fn cuEventDestroy_v2(Handle);
        fn cuModuleLoadData(*mut Handle, *const c_void);
        fn cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        fn cuLaunchKernel(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
    }
}

functions! {
    /// The driver's management library.
    Nvml {
        fn nvmlInit_v2();
        fn nvmlShutdown();
        fn nvmlDeviceGetHandleByPciBusId_v2(*const c_char, *mut Handle);
        fn nvmlSystemGetDriverVersion(*mut c_char, c_uint);
        fn nvmlDeviceGetTemperature(Handle, c_uint, *mut c_uint);
        fn nvmlDeviceGetClockInfo(Handle, c_uint, *mut c_uint);
        fn nvmlDeviceGetMaxClockInfo(Handle, c_uint, *mut c_uint);
        fn nvmlDeviceGetEnforcedPowerLimit(Handle, *mut c_uint);
        fn nvmlDeviceGetPowerUsage(Handle, *mut c_uint);
        fn nvmlDeviceGetEccMode(Handle, *mut c_uint, *mut c_uint);
        fn nvmlDeviceGetComputeRunningProcesses(Handle, *mut c_uint, *mut c_void);
    }
}

functions! {
    /// The runtime compiler.
    Nvrtc {
        fn nvrtcVersion(*mut c_int, *mut c_int);
        fn nvrtcCreateProgram(*mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
        fn nvrtcCompileProgram(Handle, c_int, *const *const c_char);
        fn nvrtcGetProgramLogSize(Handle, *mut usize);
        fn nvrtcGetProgramLog(Handle, *mut c_char);
        fn nvrtcGetCUBINSize(Handle, *mut usize);
        fn nvrtcGetCUBIN(Handle, *mut c_char);
        fn nvrtcDestroyProgram(*mut Handle);
    }
}

/// An opaque algorithm of cuBLASLt, 64 bytes long.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LtAlgorithm(pub [u64; 8]);

/// A result of cuBLASLt's heuristics.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LtHeuristic {
    /// The algorithm.
    pub algorithm: LtAlgorithm,
    /// Bytes of workspace that the algorithm needs.
    pub workspace: usize,
    /// Status: 0 if the algorithm can run.
    pub state: c_int,
    /// Estimated number of waves; unused.
    pub waves: f32,
    reserved: [c_int; 4],
}

impl LtHeuristic {
    /// An empty result for cuBLASLt to fill in.
    pub const EMPTY: Self = Self {
        algorithm: LtAlgorithm([0; 8]),
        workspace: 0,
        state: 0,
        waves: 0.0,
        reserved: [0; 4],
    };
}

functions! {
    /// Matrix products.
    CublasLt {
        fn cublasLtCreate(*mut Handle);
        fn cublasLtDestroy(Handle);
        fn cublasLtMatmulDescCreate(*mut Handle, c_int, c_int);
        fn cublasLtMatmulDescSetAttribute(Handle, c_int, *const c_void, usize);
        fn cublasLtMatmulDescDestroy(Handle);
        fn cublasLtMatrixLayoutCreate(*mut Handle, c_int, u64, u64, i64);
        fn cublasLtMatrixLayoutSetAttribute(Handle, c_int, *const c_void, usize);
        fn cublasLtMatrixLayoutDestroy(Handle);
        fn cublasLtMatmulPreferenceCreate(*mut Handle);
        fn cublasLtMatmulPreferenceSetAttribute(Handle, c_int, *const c_void, usize);
        fn cublasLtMatmulPreferenceDestroy(Handle);
        fn cublasLtMatmulAlgoGetHeuristic(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut LtHeuristic, *mut c_int
        );
        fn cublasLtMatmulAlgoConfigGetAttribute(*const LtAlgorithm, c_int, *mut c_void, usize, *mut usize);
        fn cublasLtMatmul(
            Handle, Handle, *const c_void, Address, Handle, Address, Handle, *const c_void, Address, Handle, Address,
            Handle, *const LtAlgorithm, Address, usize, Handle
        );
    }
}

functions! {
    /// Fused attention.
    Cudnn {
        fn cudnnCreate(*mut Handle);
        fn cudnnDestroy(Handle);
        fn cudnnSetStream(Handle, Handle);
        fn cudnnGetLastErrorString(*mut c_char, usize);
        fn cudnnBackendCreateDescriptor(c_int, *mut Handle);
        fn cudnnBackendDestroyDescriptor(Handle);
        fn cudnnBackendSetAttribute(Handle, c_int, c_int, i64, *const c_void);
        fn cudnnBackendGetAttribute(Handle, c_int, c_int, i64, *mut i64, *mut c_void);
        fn cudnnBackendFinalize(Handle);
        fn cudnnBackendExecute(Handle, Handle, Handle);
    }
}

functions! {
    /// Collectives.
    Nccl {
        fn ncclGetVersion(*mut c_int);
        fn ncclCommInitAll(*mut Handle, c_int, *const c_int);
        fn ncclCommDestroy(Handle);
        fn ncclGroupStart();
        fn ncclGroupEnd();
        fn ncclAllReduce(Address, Address, usize, c_int, c_int, Handle, Handle);
        fn ncclAllGather(Address, Address, usize, c_int, Handle, Handle);
        fn ncclReduceScatter(Address, Address, usize, c_int, c_int, Handle, Handle);
        fn ncclBroadcast(Address, Address, usize, c_int, c_int, Handle, Handle);
        fn ncclSend(Address, usize, c_int, c_int, Handle, Handle);
        fn ncclRecv(Address, usize, c_int, c_int, Handle, Handle);
    }
}

/// Calls `cublasLtGetVersion` or `cudnnGetVersion`, which return a number and no status.
pub fn version_of(library: &Library, function: &str) -> Option<usize> {
    // SAFETY: both take nothing and give a size_t.
    let version: libloading::Symbol<'_, unsafe extern "C" fn() -> usize> =
        unsafe { library.get(function.as_bytes()) }.ok()?;
    // SAFETY: as above.
    Some(unsafe { version() })
}
