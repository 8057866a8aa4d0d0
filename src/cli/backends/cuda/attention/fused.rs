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
    _workspace: Buffer,
    /// fp32 sums for the queries' gradients.
    sums: Buffer,
    _products: Buffer,
    /// True if the sums must be cleared first, which cuDNN before 9.6 leaves to the caller.
    clears: bool,
}

impl Fused {
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
    let library = cuda.cudnn()?;
    let extents = Extents::of(kernel);
    let pass = kernel.pass.unwrap_or(Pass::Forward);
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
    let (sums, products) = match trains {
        true => (
            cuda.card.allocate(4 * queries * extents.width)?,
            cuda.card.allocate(4 * queries)?,
        ),
        false => (cuda.card.allocate(16)?, cuda.card.allocate(16)?),
    };
    let mut bound = Vec::new();
    for set in sets {
        let input = |i: usize| set.inputs[i].address;
        let output = |i: usize| set.outputs[i].address;
        let mut tensors = vec![
            (sdpa::QUERY, input(0)),
            (sdpa::KEY, input(1)),
            (sdpa::VALUE, input(2)),
            (sdpa::OUTPUT, output(0)),
        ];
        if trains {
            tensors.push((sdpa::SUMS, output(1)));
        }
        let of_forward = Some(forward.bind(&tensors, &workspace)?);
        let of_backward = match &backward {
            Some(plan) => {
                tensors.extend([
                    (sdpa::OUTPUT_GRADIENT, input(3)),
                    (sdpa::QUERY_GRADIENT, output(2)),
                    (sdpa::KEY_GRADIENT, output(3)),
                    (sdpa::VALUE_GRADIENT, output(4)),
                    (sdpa::QUERY_SUMS, sums.address),
                    (sdpa::PRODUCTS, products.address),
                ]);
                Some(plan.bind(&tensors, &workspace)?)
            }
            None => None,
        };
        bound.push([of_forward, of_backward]);
    }
    let engines = match &backward {
        Some(plan) => format!("forward engine {}, backward engine {}", forward.engine, plan.engine),
        None => format!("forward engine {}", forward.engine),
    };
    let mut extra = vec![room];
    if trains {
        // Besides both workspaces, a training step allocates the gradient of the result.
        extra.extend([sums.bytes, products.bytes]);
        if pass == Pass::ForwardBackward {
            extra.push(sets[0].inputs[3].bytes);
        }
    }
    let mut fused = Fused {
        forward,
        backward,
        bound,
        ran: vec![false; sets.len()],
        pass,
        _workspace: workspace,
        sums,
        _products: products,
        clears: library.version < 90_600,
    };
    Ok(Ready {
        implementation: cuda.implementation("cuDNN", engines, true),
        extra,
        within: 0,
        launch: Box::new(move |index, _| fused.launch(index)),
    })
}
