//! Builds graphs of cuDNN operations.

use std::ffi::c_int;
use std::rc::Rc;

use super::super::api::Handle;
use super::plan::Plan;
use super::{
    BOOLEAN, DATA_TYPE, DESCRIPTOR, Descriptor, HANDLE, HEURISTIC_MODE, INT64, Library, POINTWISE_MODE, REDUCTION,
};
use crate::backends::Refusal;

/// Element types with their values in cudnnDataType_t.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// fp32.
    Float = 0,
    /// fp16.
    Half = 2,
    /// 32-bit integers.
    Int32 = 4,
    /// bfloat16.
    Bfloat16 = 9,
    /// Boolean.
    Boolean = 11,
}

/// Elementwise operations with their values in cudnnPointwiseMode_t.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointwise {
    /// Sum of two inputs.
    Add = 0,
    /// Product of two inputs.
    Multiply = 1,
    /// Quotient.
    Divide = 6,
    /// Difference.
    Subtract = 9,
    /// Exponential.
    Exponential = 13,
    /// Natural logarithm.
    Logarithm = 15,
    /// Copy.
    Identity = 21,
    /// Comparison `first >= second`.
    AtLeast = 303,
    /// Index along an axis.
    Index = 501,
    /// The first input where the third is true, else the second.
    Select = 601,
}

/// Reductions with their values in cudnnReduceTensorOp_t.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Sum.
    Sum = 0,
    /// Maximum.
    Highest = 3,
}

/// Storage of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TensorStorage {
    /// An intermediate result that is never stored.
    Virtual,
    /// Memory that is bound to this number.
    Memory(i64),
    /// A number passed by value.
    Value(f32),
}

/// A tensor of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tensor {
    handle: Handle,
    /// Extents.
    pub extents: [i64; 4],
    /// Strides in elements, for each axis.
    pub steps: [i64; 4],
}

impl Tensor {
    /// Extents and strides with the last two axes exchanged.
    pub fn transposed(extents: [i64; 4], steps: [i64; 4]) -> [[i64; 4]; 2] {
        let exchanged = |[a, b, c, d]: [i64; 4]| [a, b, d, c];
        [exchanged(extents), exchanged(steps)]
    }
}

/// Strides of a contiguous tensor.
pub fn packed([_, b, c, d]: [i64; 4]) -> [i64; 4] {
    [b * c * d, c * d, d, 1]
}

/// A graph under construction.
pub struct Graph {
    library: Rc<Library>,
    kept: Vec<Descriptor>,
    operations: Vec<Handle>,
    values: Vec<(i64, f32)>,
    next: i64,
}

impl Graph {
    /// Creates an empty graph.
    pub fn new(library: &Rc<Library>) -> Self {
        Self {
            library: Rc::clone(library),
            kept: Vec::new(),
            operations: Vec::new(),
            values: Vec::new(),
            next: 1000,
        }
    }

    fn keep(&mut self, descriptor: Descriptor) -> Handle {
        let handle = descriptor.handle;
        self.kept.push(descriptor);
        handle
    }

    /// Adds a tensor.
    ///
    /// # Errors
    /// cuDNN's message, as for all methods below.
    pub fn tensor(
        &mut self,
        place: TensorStorage,
        kind: Kind,
        extents: [i64; 4],
        steps: [i64; 4],
    ) -> Result<Tensor, Refusal> {
        // CUDNN_BACKEND_TENSOR_DESCRIPTOR.
        let tensor = self.library.descriptor(17)?;
        self.next += 1;
        let number = match place {
            TensorStorage::Memory(number) => number,
            _ => self.next,
        };
        tensor.set(901, DATA_TYPE, &[kind as c_int])?;
        tensor.set(902, INT64, &extents)?;
        tensor.set(903, INT64, &steps)?;
        tensor.set(906, INT64, &[number])?;
        tensor.set(900, INT64, &[16_i64])?;
        match place {
            TensorStorage::Virtual => tensor.set(907, BOOLEAN, &[1_u8])?,
            TensorStorage::Value(value) => {
                tensor.set(908, BOOLEAN, &[1_u8])?;
                self.values.push((number, value));
            }
            TensorStorage::Memory(_) => {}
        }
        let handle = self.keep(tensor.finish("a tensor")?);
        Ok(Tensor { handle, extents, steps })
    }

    /// Adds an intermediate tensor with the shape of another.
    pub fn between(&mut self, kind: Kind, like: Tensor) -> Result<Tensor, Refusal> {
        self.tensor(TensorStorage::Virtual, kind, like.extents, like.steps)
    }

    /// Adds a number.
    pub fn value(&mut self, value: f32) -> Result<Tensor, Refusal> {
        self.tensor(TensorStorage::Value(value), Kind::Float, [1; 4], [1; 4])
    }

    /// Adds an elementwise operation with one, two or three inputs.
    pub fn pointwise(&mut self, mode: Pointwise, inputs: &[Tensor], result: Tensor) -> Result<Tensor, Refusal> {
        self.pointwise_along(mode, inputs, result, None)
    }

    /// Adds a tensor of indices along an axis.
    pub fn index(&mut self, like: Tensor, axis: i64) -> Result<Tensor, Refusal> {
        let result = self.between(Kind::Int32, like)?;
        self.pointwise_along(Pointwise::Index, &[like], result, Some(axis))
    }

    fn pointwise_along(
        &mut self,
        mode: Pointwise,
        inputs: &[Tensor],
        result: Tensor,
        axis: Option<i64>,
    ) -> Result<Tensor, Refusal> {
        let how = self.library.descriptor(0)?;
        how.set(0, POINTWISE_MODE, &[mode as c_int])?;
        let compute = if mode == Pointwise::AtLeast {
            Kind::Boolean
        } else {
            Kind::Float
        };
        how.set(1, DATA_TYPE, &[compute as c_int])?;
        if let Some(axis) = axis {
            how.set(9, INT64, &[axis])?;
        }
        let how = self.keep(how.finish("a pointwise description")?);
        // CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR; inputs x, b and t, then y.
        let operation = self.library.descriptor(13)?;
        operation.set(750, DESCRIPTOR, &[how])?;
        for (attribute, input) in [751, 752, 758].into_iter().zip(inputs) {
            operation.set(attribute, DESCRIPTOR, &[input.handle])?;
        }
        operation.set(753, DESCRIPTOR, &[result.handle])?;
        self.operation(operation, "a pointwise operation")?;
        Ok(result)
    }

    /// Adds a reduction to the extents of the result.
    pub fn reduce(&mut self, mode: Reduce, input: Tensor, result: Tensor) -> Result<Tensor, Refusal> {
        let how = self.library.descriptor(21)?;
        how.set(1600, REDUCTION, &[mode as c_int])?;
        how.set(1601, DATA_TYPE, &[Kind::Float as c_int])?;
        let how = self.keep(how.finish("a reduction's description")?);
        let operation = self.library.descriptor(22)?;
        operation.set(1612, DESCRIPTOR, &[how])?;
        operation.set(1610, DESCRIPTOR, &[input.handle])?;
        operation.set(1611, DESCRIPTOR, &[result.handle])?;
        self.operation(operation, "a reduction")?;
        Ok(result)
    }

    /// Adds a matrix product.
    pub fn product(&mut self, left: Tensor, right: Tensor, result: Tensor) -> Result<Tensor, Refusal> {
        let how = self.library.descriptor(18)?;
        how.set(1500, DATA_TYPE, &[Kind::Float as c_int])?;
        let how = self.keep(how.finish("a product's description")?);
        let operation = self.library.descriptor(19)?;
        operation.set(1523, DESCRIPTOR, &[how])?;
        operation.set(1520, DESCRIPTOR, &[left.handle])?;
        operation.set(1521, DESCRIPTOR, &[right.handle])?;
        operation.set(1522, DESCRIPTOR, &[result.handle])?;
        self.operation(operation, "a matrix product")?;
        Ok(result)
    }

    /// Adds a reshape of the input to the extents of the result.
    pub fn reshape(&mut self, input: Tensor, result: Tensor) -> Result<Tensor, Refusal> {
        let operation = self.library.descriptor(31)?;
        operation.set(2200, DESCRIPTOR, &[input.handle])?;
        operation.set(2201, DESCRIPTOR, &[result.handle])?;
        self.operation(operation, "a reshape")?;
        Ok(result)
    }

    fn operation(&mut self, operation: Descriptor, what: &str) -> Result<(), Refusal> {
        let handle = self.keep(operation.finish(what)?);
        self.operations.push(handle);
        Ok(())
    }

    /// Returns the first plan of the heuristics that can be built.
    pub fn plan(mut self) -> Result<Plan, Refusal> {
        let library = Rc::clone(&self.library);
        let graph = library.descriptor(15)?;
        graph.set(800, HANDLE, &[library.handle])?;
        graph.set(801, DESCRIPTOR, &self.operations)?;
        let graph = self.keep(graph.finish("this graph")?);
        let heuristics = library.descriptor(4)?;
        heuristics.set(201, DESCRIPTOR, &[graph])?;
        // CUDNN_HEUR_MODE_A, which PyTorch uses too.
        heuristics.set(200, HEURISTIC_MODE, &[3_i32])?;
        let heuristics = heuristics.finish("heuristics for this graph")?;
        let configurations: Vec<Descriptor> = (0..8).map(|_| library.descriptor(3)).collect::<Result<_, _>>()?;
        let mut handles: Vec<Handle> = configurations.iter().map(|c| c.handle).collect();
        let found = heuristics.get(202, DESCRIPTOR, handles.as_mut_ptr().cast(), handles.len() as i64)?;
        let mut last = Refusal::Unsupported("cuDNN has no kernel for it".into());
        for configuration in configurations.into_iter().take(found as usize) {
            match self.plan_of(configuration) {
                Ok(plan) => {
                    let Self { kept, values, .. } = self;
                    return Ok(Plan { kept, values, ..plan });
                }
                Err(refusal) => last = refusal,
            }
        }
        Err(last)
    }

    fn plan_of(&self, configuration: Descriptor) -> Result<Plan, Refusal> {
        let library = &self.library;
        let plan = library.descriptor(5)?;
        plan.set(400, HANDLE, &[library.handle])?;
        plan.set(401, DESCRIPTOR, &[configuration.handle])?;
        let plan = plan.finish("a plan")?;
        let mut workspace = 0_i64;
        plan.get(402, INT64, std::ptr::from_mut(&mut workspace).cast(), 1)?;
        let engine = library.descriptor(2)?;
        let mut handle = engine.handle;
        let mut number = -1_i64;
        configuration.get(300, DESCRIPTOR, std::ptr::from_mut(&mut handle).cast(), 1)?;
        engine.get(1301, INT64, std::ptr::from_mut(&mut number).cast(), 1)?;
        Ok(Plan {
            library: Rc::clone(library),
            plan,
            engine: number,
            workspace: workspace as u64,
            kept: vec![configuration],
            values: Vec::new(),
        })
    }
}
