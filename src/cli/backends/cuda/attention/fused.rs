//! Fused attention by cuDNN.

use std::rc::Rc;

use vramscope_benchmark::{Kernel, Pass, Precision};

use super::super::cudnn::{Bound, Plan};
use super::super::job::{Ready, Tensors};
use super::super::memory::Buffer;
use super::super::{Cuda, sdpa};
use crate::backends::Refusal;
use crate::kernels::work::Extents;

/// cuDNN's plans, bound to each copy of the tensors.
struct Fused {
    forward: Rc<Plan>,
    backward: Option<Rc<Plan>>,
    bound: Vec<[Option<Bound>; 2]>,
    /// True for each copy on which forward has run: backward alone needs its results once.
    ran: Vec<bool>,
    pass: Pass,
    workspace: Buffer,
    /// fp32 sums for the queries' gradients.
    sums: Buffer,
    /// Dot product of result and gradient for each query.
    products: Buffer,
    /// True if the sums must be cleared first, which cuDNN before 9.6 leaves to the caller.
    clears: bool,
}

impl Fused {
    /// Plans forward, and backward where it is measured, and allocates what they share.
    fn new(cuda: &Cuda, extents: Extents, precision: Precision, pass: Pass) -> Result<Self, Refusal> {
        let library = cuda.cudnn()?;
        let trains = pass != Pass::Forward;
        let forward = Rc::new(sdpa::forward(library, extents, precision, trains)?);
        let backward = match trains {
            true => Some(Rc::new(sdpa::backward(library, extents, precision)?)),
            false => None,
        };
        let room = forward
            .workspace
            .max(backward.as_ref().map_or(0, |plan| plan.workspace));
        let workspace = cuda.card.allocate(room)?;
        let queries = extents.batch * extents.heads * extents.length;
        let [sums, products] = match trains {
            true => [4 * queries * extents.width, 4 * queries],
            false => [16, 16],
        };
        Ok(Self {
            forward,
            backward,
            bound: Vec::new(),
            ran: Vec::new(),
            pass,
            workspace,
            sums: cuda.card.allocate(sums)?,
            products: cuda.card.allocate(products)?,
            clears: library.version < 90_600,
        })
    }

    /// Binds the plans to another copy of the tensors.
    fn bind(&mut self, set: &Tensors) -> Result<(), Refusal> {
        let input = |i: usize| set.inputs[i].address;
        let output = |i: usize| set.outputs[i].address;
        let mut tensors = vec![
            (sdpa::QUERY, input(0)),
            (sdpa::KEY, input(1)),
            (sdpa::VALUE, input(2)),
            (sdpa::OUTPUT, output(0)),
        ];
        if self.backward.is_some() {
            tensors.push((sdpa::SUMS, output(1)));
        }
        let forward = Some(self.forward.bind(&tensors, &self.workspace)?);
        let backward = match &self.backward {
            Some(plan) => {
                tensors.extend([
                    (sdpa::OUTPUT_GRADIENT, input(3)),
                    (sdpa::QUERY_GRADIENT, output(2)),
                    (sdpa::KEY_GRADIENT, output(3)),
                    (sdpa::VALUE_GRADIENT, output(4)),
                    (sdpa::QUERY_SUMS, self.sums.address),
                    (sdpa::PRODUCTS, self.products.address),
                ]);
                Some(plan.bind(&tensors, &self.workspace)?)
            }
            None => None,
        };
        self.bound.push([forward, backward]);
        self.ran.push(false);
        Ok(())
    }

    /// cuDNN's engines, in words.
    fn engines(&self) -> String {
        match &self.backward {
            Some(plan) => format!(
                "forward engine {}, backward engine {}",
                self.forward.engine, plan.engine
            ),
            None => format!("forward engine {}", self.forward.engine),
        }
    }

    /// Bytes that PyTorch allocates besides inputs and outputs.
    fn extra(&self, set: &Tensors) -> Vec<u64> {
        let mut extra = vec![self.workspace.bytes];
        if self.backward.is_some() {
            // Besides both workspaces, a training step allocates the gradient of the result.
            extra.extend([self.sums.bytes, self.products.bytes]);
            if self.pass == Pass::ForwardBackward {
                extra.push(set.inputs[3].bytes);
            }
        }
        extra
    }

    // A method rather than a closure body, so that the launch closure owns all memory.
    fn launch(&mut self, index: usize) -> Result<(), Refusal> {
        let [forward, backward] = &self.bound[index];
        if let (Some(bound), true) = (forward, self.pass != Pass::Backward || !self.ran[index]) {
            self.ran[index] = true;
            self.forward.run(bound)?;
        }
        let (Some(plan), Some(bound)) = (&self.backward, backward) else {
            return Ok(());
        };
        if self.clears {
            self.sums.set(0)?;
        }
        plan.run(bound)
    }
}

/// Prepares cuDNN's plans for forward, backward or both.
pub(super) fn ready<'a>(
    cuda: &'a Cuda,
    kernel: &Kernel,
    precision: Precision,
    sets: &[Tensors],
) -> Result<Ready<'a>, Refusal> {
    let pass = kernel.pass.unwrap_or(Pass::Forward);
    let mut fused = Fused::new(cuda, Extents::of(kernel), precision, pass)?;
    sets.iter().try_for_each(|set| fused.bind(set))?;
    Ok(Ready {
        implementation: cuda.implementation("cuDNN", fused.engines(), true),
        extra: fused.extra(&sets[0]),
        within: 0,
        launch: Box::new(move |index, _| fused.launch(index)),
    })
}
