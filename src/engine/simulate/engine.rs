//! DeepSpeed's engine around a model (`deepspeed/runtime/engine.py`), as the loop of a step calls it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::wrapper::Wrapper;
use crate::tape::log::StorageId;
use crate::tape::{Tape, Tensor};

/// The optimizer of an engine, around the client's.
pub(super) trait EngineOptimizer {
    /// A forward begins, which makes a graph unless `_is_traced` is false.
    fn before_forward(&mut self, _: &Tape, _is_traced: bool) {}
    /// The forward is over.
    fn after_forward(&mut self, _: &Tape) {}
    /// The model begins to generate, or has done so.
    fn generates(&mut self, _: &Tape, _begins: bool) {}
    /// A parameter's gradient was made.
    fn gradient(&mut self, t: &Tape, param: &Tensor);
    /// The backward of a micro-batch is over.
    fn after_backward(&mut self, t: &Tape);
    /// Updates the parameters.
    fn step(&mut self, t: &Tape);
    /// Memory that parameters moved into, and true if it is of trained ones.
    fn weights(&self) -> Vec<(Tensor, bool)>;
    /// Storages made on another stream than the model's.
    fn streams(&self) -> Vec<(StorageId, u32)> {
        Vec::new()
    }
}

/// DeepSpeed's engine.
pub(super) struct Engine {
    optimizer: Rc<RefCell<dyn EngineOptimizer>>,
    /// True while the last micro-batch of a step runs.
    is_boundary: Rc<Cell<bool>>,
    /// True if losses are multiplied by the loss scale, which ZeRO's optimizers do.
    scales: bool,
}

impl Engine {
    /// Makes an engine whose optimizer hears of each gradient, and of the last micro-batch by `is_boundary`.
    pub fn new(
        t: &Tape,
        optimizer: Rc<RefCell<dyn EngineOptimizer>>,
        is_boundary: Rc<Cell<bool>>,
        scales: bool,
    ) -> Self {
        let hooked = optimizer.clone();
        let hook = move |t: &Tape, param: &Tensor| t.in_scope(0, || hooked.borrow_mut().gradient(t, param));
        t.on_gradient(Rc::new(hook));
        Self {
            optimizer,
            is_boundary,
            scales,
        }
    }

    /// Divides a loss by the number of micro-batches, and multiplies it by the loss scale, which is 1
    /// (`engine.backward`). Both results live until backward is over.
    pub fn scaled(&self, t: &Tape, loss: &Tensor) -> [Tensor; 2] {
        let divided = t.scale(loss);
        let scaled = match self.scales {
            true => t.scale(&divided),
            false => divided.clone(),
        };
        [divided, scaled]
    }

    /// Multiplies a loss by the loss scale alone (`engine.backward(loss, scale_wrt_gas=False)`).
    pub fn scaled_alone(&self, t: &Tape, loss: &Tensor) -> Tensor {
        match self.scales {
            true => t.scale(loss),
            false => loss.clone(),
        }
    }

    /// `engine.step()` at the end of a step.
    pub fn step(&self, t: &Tape) {
        t.no_grad(|| self.optimizer.borrow_mut().step(t));
    }
}

impl Wrapper for Engine {
    fn begin(&self, is_last: bool) {
        self.is_boundary.set(is_last);
    }

    fn before_forward(&self, t: &Tape) {
        let is_traced = t.is_grad_enabled();
        t.no_grad(|| self.optimizer.borrow_mut().before_forward(t, is_traced));
    }

    fn after_forward(&self, t: &Tape) {
        t.no_grad(|| self.optimizer.borrow_mut().after_forward(t));
    }

    fn generates(&self, t: &Tape, begins: bool) {
        t.no_grad(|| self.optimizer.borrow_mut().generates(t, begins));
    }

    /// `DeepSpeedEngine._backward_epilogue`.
    fn after_backward(&self, t: &Tape) {
        t.no_grad(|| self.optimizer.borrow_mut().after_backward(t));
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        self.optimizer.borrow().weights()
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        self.optimizer.borrow().streams()
    }

    fn engine(&self) -> Option<&Engine> {
        Some(self)
    }
}
