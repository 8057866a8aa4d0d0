//! Matrix products by cuBLASLt: times several algorithms of its heuristics and keeps the fastest.

use std::ffi::{c_int, c_void};
use std::ptr::{from_ref, null_mut};
use std::rc::Rc;

use vramscope_benchmark::{Layout, Precision};

use super::api::{Address, CublasLt, Handle, LtHeuristic};
use super::device::Card;
use super::memory::Buffer;
use crate::backends::Refusal;

/// Bytes of workspace, the size that PyTorch gives cuBLASLt on Hopper.
pub const WORKSPACE: u64 = 32 << 20;
/// Number of algorithms requested from the heuristics.
const CANDIDATES: usize = 8;

/// cuBLASLt with its workspace.
pub struct Lt {
    api: CublasLt,
    handle: Handle,
    workspace: Buffer,
    card: Rc<Card>,
}

/// One or more row-major matrix products of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// Type of all three matrices.
    pub precision: Precision,
    /// Layout of the operands.
    pub layout: Layout,
    /// Rows of the result, columns of the result, and length of the sums.
    pub extents: [u64; 3],
    /// Elements from one row to the next, for left, right and result.
    pub rows: [u64; 3],
    /// Number of products.
    pub count: u64,
    /// Elements from one matrix to the next, for left, right and result.
    pub steps: [u64; 3],
}

impl Product {
    /// A single product of contiguous matrices.
    pub fn plain(precision: Precision, layout: Layout, [m, n, k]: [u64; 3]) -> Self {
        let left = if layout == Layout::Tn { m } else { k };
        let right = if layout == Layout::Nt { k } else { n };
        Self {
            precision,
            layout,
            extents: [m, n, k],
            rows: [left, right, n],
            count: 1,
            steps: [0; 3],
        }
    }
}

/// A product that is ready to run.
pub struct Gemm {
    lt: Rc<Lt>,
    operation: Handle,
    /// Layouts of right, left and result, in this order, because cuBLASLt is column-major.
    layouts: [Handle; 3],
    heuristic: LtHeuristic,
}

impl Lt {
    /// Creates a handle.
    ///
    /// # Errors
    /// The library's or driver's message.
    pub fn start(api: CublasLt, card: &Rc<Card>) -> Result<Rc<Self>, Refusal> {
        let mut handle = null_mut();
        // SAFETY: the handle is written.
        ok(unsafe { (api.cublasLtCreate)(&mut handle) }, "cublasLtCreate")?;
        Ok(Rc::new(Self {
            api,
            handle,
            workspace: card.allocate(WORKSPACE)?,
            card: Rc::clone(card),
        }))
    }

    /// Prepares a product and times candidate algorithms on these operands.
    ///
    /// # Errors
    /// If cuBLASLt has no algorithm for it.
    pub fn product(self: &Rc<Self>, product: &Product, operands: [Address; 3]) -> Result<Gemm, Refusal> {
        // Values of cudaDataType_t and cublasComputeType_t.
        let (kind, compute): (c_int, c_int) = match product.precision {
            Precision::Bf16 => (14, 68),
            Precision::Fp16 => (2, 68),
            Precision::Fp32 => (0, 68),
            Precision::Tf32 => (0, 77),
        };
        let [m, n, k] = product.extents;
        let mut gemm = Gemm {
            lt: Rc::clone(self),
            operation: null_mut(),
            layouts: [null_mut(); 3],
            heuristic: LtHeuristic::EMPTY,
        };
        let api = &self.api;
        // Row-major R = L·Rt is column-major Rᵀ = Rtᵀ·Lᵀ, and a row-major matrix is its transpose.
        let (right_transposed, left_transposed) = (product.layout == Layout::Nt, product.layout == Layout::Tn);
        let right = if right_transposed { [k, n] } else { [n, k] };
        let left = if left_transposed { [m, k] } else { [k, m] };
        let [left_row, right_row, result_row] = product.rows;
        let [left_step, right_step, result_step] = product.steps;
        let matrices = [
            (right, right_row, right_step),
            (left, left_row, left_step),
            ([n, m], result_row, result_step),
        ];
        // SAFETY: each descriptor is created before it is used; each attribute is as wide as stated.
        unsafe {
            ok(
                (api.cublasLtMatmulDescCreate)(&mut gemm.operation, compute, 0),
                "a description",
            )?;
            // CUBLASLT_MATMUL_DESC_TRANSA and TRANSB; CUBLAS_OP_T is 1.
            for (attribute, transposed) in [(3, right_transposed), (4, left_transposed)] {
                let transposed = c_int::from(transposed);
                ok(
                    (api.cublasLtMatmulDescSetAttribute)(gemm.operation, attribute, from_ref(&transposed).cast(), 4),
                    "a transposition",
                )?;
            }
            for (layout, ([rows, columns], row, step)) in gemm.layouts.iter_mut().zip(matrices) {
                ok(
                    (api.cublasLtMatrixLayoutCreate)(layout, kind, rows, columns, row as i64),
                    "a layout",
                )?;
                // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT and STRIDED_BATCH_OFFSET.
                let count = product.count as c_int;
                ok(
                    (api.cublasLtMatrixLayoutSetAttribute)(*layout, 5, from_ref(&count).cast(), 4),
                    "a count",
                )?;
                ok(
                    (api.cublasLtMatrixLayoutSetAttribute)(*layout, 6, from_ref(&step).cast(), 8),
                    "a step",
                )?;
            }
        }
        let candidates = gemm.candidates()?;
        gemm.heuristic = gemm.fastest(&candidates, operands)?;
        Ok(gemm)
    }
}

impl Gemm {
    fn candidates(&self) -> Result<Vec<LtHeuristic>, Refusal> {
        let api = &self.lt.api;
        let mut preference = null_mut();
        let mut found = [LtHeuristic::EMPTY; CANDIDATES];
        let mut count = 0;
        let [right, left, result] = self.layouts;
        // SAFETY: the preference is created before use; there is room for as many answers as asked for.
        let status = unsafe {
            ok((api.cublasLtMatmulPreferenceCreate)(&mut preference), "a preference")?;
            // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, and REDUCTION_SCHEME_MASK: in place or in fp32.
            (api.cublasLtMatmulPreferenceSetAttribute)(preference, 1, from_ref(&WORKSPACE).cast(), 8);
            (api.cublasLtMatmulPreferenceSetAttribute)(preference, 3, from_ref(&3_u32).cast(), 4);
            let status = (api.cublasLtMatmulAlgoGetHeuristic)(
                self.lt.handle,
                self.operation,
                right,
                left,
                result,
                result,
                preference,
                CANDIDATES as c_int,
                found.as_mut_ptr(),
                &mut count,
            );
            (api.cublasLtMatmulPreferenceDestroy)(preference);
            status
        };
        let usable: Vec<LtHeuristic> = found[..count as usize]
            .iter()
            .filter(|c| c.state == 0)
            .copied()
            .collect();
        match usable.is_empty() {
            true => Err(Refusal::Unsupported(format!(
                "cuBLASLt has no algorithm for it (status {status})"
            ))),
            false => Ok(usable),
        }
    }

    fn fastest(&self, candidates: &[LtHeuristic], operands: [Address; 3]) -> Result<LtHeuristic, Refusal> {
        let mut best = (u64::MAX, candidates[0]);
        for candidate in candidates {
            // Skip algorithms that the heuristics offer but the library refuses.
            if self.run_with(candidate, operands, 0.0).is_err() {
                continue;
            }
            let run = |launches: u32| {
                self.lt
                    .card
                    .time(|| (0..launches).try_for_each(|_| self.run_with(candidate, operands, 0.0)))
            };
            let once = run(1)?;
            let launches = (2_000_000 / once.max(1)).clamp(2, 50) as u32;
            let ns = run(launches)?.min(run(launches)?) / u64::from(launches);
            if ns < best.0 {
                best = (ns, *candidate);
            }
        }
        Ok(best.1)
    }

    /// Enqueues the product of left and right into result.
    ///
    /// # Errors
    /// cuBLASLt's message.
    pub fn run(&self, operands: [Address; 3]) -> Result<(), Refusal> {
        self.run_with(&self.heuristic, operands, 0.0)
    }

    /// Enqueues the product and adds it to the result.
    ///
    /// # Errors
    /// cuBLASLt's message.
    pub fn add(&self, operands: [Address; 3]) -> Result<(), Refusal> {
        self.run_with(&self.heuristic, operands, 1.0)
    }

    fn run_with(&self, heuristic: &LtHeuristic, [left, right, result]: [Address; 3], beta: f32) -> Result<(), Refusal> {
        let alpha = 1_f32;
        let [right_layout, left_layout, result_layout] = self.layouts;
        let lt = &self.lt;
        // SAFETY: the matrices are as the layouts say; the workspace is as large as promised.
        ok(
            unsafe {
                (lt.api.cublasLtMatmul)(
                    lt.handle,
                    self.operation,
                    from_ref(&alpha).cast::<c_void>(),
                    right,
                    right_layout,
                    left,
                    left_layout,
                    from_ref(&beta).cast(),
                    result,
                    result_layout,
                    result,
                    result_layout,
                    &heuristic.algorithm,
                    lt.workspace.address,
                    WORKSPACE as usize,
                    lt.card.stream,
                )
            },
            "cublasLtMatmul",
        )
    }

    /// Readable name of the algorithm, which cuBLASLt identifies by numbers.
    pub fn name(&self) -> String {
        // Values of cublasLtMatmulAlgoConfigAttributes_t.
        let [id, tile, split, stages] = [0, 1, 2, 6].map(|attribute| {
            let (mut value, mut written) = (0_i32, 0_usize);
            // SAFETY: each is 4 bytes wide.
            unsafe {
                (self.lt.api.cublasLtMatmulAlgoConfigGetAttribute)(
                    &self.heuristic.algorithm,
                    attribute,
                    std::ptr::from_mut(&mut value).cast(),
                    4,
                    &mut written,
                )
            };
            value
        });
        format!("algorithm {id}, tile {tile}, stages {stages}, split {split}")
    }
}

impl Drop for Gemm {
    fn drop(&mut self) {
        let api = &self.lt.api;
        // SAFETY: each was created or is null, which both functions refuse without harm.
        unsafe {
            for layout in self.layouts {
                (api.cublasLtMatrixLayoutDestroy)(layout);
            }
            (api.cublasLtMatmulDescDestroy)(self.operation);
        }
    }
}

impl Drop for Lt {
    fn drop(&mut self) {
        // SAFETY: products hold it, so none is left.
        unsafe { (self.api.cublasLtDestroy)(self.handle) };
    }
}

fn ok(status: c_int, what: &str) -> Result<(), Refusal> {
    match status {
        0 => Ok(()),
        _ => Err(Refusal::Failed(format!("cuBLASLt: {what} gave status {status}"))),
    }
}
