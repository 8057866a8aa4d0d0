//! Operations and bytes of a recorded step.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::simulate::Recording;
use crate::tape::Kind;
use crate::tape::log::{Birth, Event, Log};

/// What kernels have to do.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Operations of products in 16 bits.
    pub half: f64,
    /// Operations of products in fp32.
    pub full: f64,
    /// Bytes written and read by everything else.
    pub bytes: f64,
    /// How many kernels at least.
    pub kernels: u64,
}

/// Of forward and backward, and of the update.
pub(super) fn work(recording: &Recording) -> [Work; 2] {
    let step = &recording.steady;
    let mut count = Count::new(recording);
    // Of several micro-batches the last one is told by the marks: all are alike.
    let pass = &step.events[step.marks.before_forward..step.marks.after_backward];
    for event in pass {
        count.add(*event);
    }
    let pass = std::mem::take(&mut count.work);
    for event in &step.events[step.marks.after_backward..] {
        count.add(*event);
    }
    let mut update = count.work;
    update.bytes += update_bytes(recording);
    [pass, update]
}

/// An update reads weight, gradient and states, and writes weight and states.
fn update_bytes(recording: &Recording) -> f64 {
    let births = &recording.log.births;
    let trained = recording.parameters.iter().filter(|(_, trained)| *trained);
    let weights: u64 = trained.map(|&(id, _)| births[id as usize].bytes).sum();
    let states: u64 = births
        .iter()
        .filter(|b| b.kind == Kind::OptimizerState)
        .map(|b| b.bytes)
        .sum();
    (3 * weights + 2 * states) as f64
}

struct Count<'a> {
    log: &'a Log,
    /// Path of each module.
    paths: Vec<String>,
    /// Matrices by the path of their module.
    weights: HashMap<String, Matrix>,
    /// The same by their outputs: a head that shares the embedding's weight has none of its own.
    by_outputs: HashMap<u64, Matrix>,
    /// Rows that a module's product had in forward.
    rows: HashMap<String, f64>,
    work: Work,
}

#[derive(Clone, Copy)]
struct Matrix {
    outputs: u64,
    elements: u64,
}

impl Matrix {
    /// Of a weight; those of 4 bits are packed, two in a byte.
    fn of(birth: &Birth) -> Self {
        let packed = if birth.dtype == DType::U8 { 2 } else { 1 };
        Self {
            outputs: birth.shape[0],
            elements: packed * birth.shape.numel(),
        }
    }
}

impl<'a> Count<'a> {
    fn new(recording: &'a Recording) -> Self {
        let log = &recording.log;
        let paths: Vec<String> = (0..log.scopes.len()).map(|id| log.path(id as u32)).collect();
        let mut weights = HashMap::new();
        let mut by_outputs = HashMap::new();
        for &(id, _) in &recording.parameters {
            let birth = &log.births[id as usize];
            if birth.shape.len() >= 2 {
                let matrix = Matrix::of(birth);
                weights.entry(paths[birth.scope as usize].clone()).or_insert(matrix);
                by_outputs.entry(matrix.outputs).or_insert(matrix);
            }
        }
        Self {
            log,
            paths,
            weights,
            by_outputs,
            rows: HashMap::new(),
            work: Work::default(),
        }
    }

    fn add(&mut self, event: Event) {
        if !event.is_birth() {
            return;
        }
        let birth = self.log.births[event.storage() as usize];
        if birth.kind == Kind::Workspace {
            return;
        }
        self.work.kernels += 1;
        // What is written is read once.
        self.work.bytes += 2.0 * birth.bytes as f64;
        let operations = match birth.name {
            "mm" | "addmm" | "convolution" => self.product(&birth),
            "mm backward" | "addmm backward" | "convolution backward" => self.product_backward(&birth),
            "attention output" => 4.0 * attention(&birth),
            "attention backward, queries" => 10.0 * attention(&birth),
            _ => 0.0,
        };
        match birth.dtype {
            DType::F32 => self.work.full += operations,
            _ => self.work.half += operations,
        }
    }

    fn weight(&self, birth: &Birth) -> Option<Matrix> {
        let own = self.weights.get(&self.paths[birth.scope as usize]);
        let last = (!birth.shape.is_empty()).then(|| birth.shape[birth.shape.len() - 1]);
        own.or_else(|| self.by_outputs.get(&last?)).copied()
    }

    /// Rows × inputs × outputs, twice.
    fn product(&mut self, birth: &Birth) -> f64 {
        let Some(weight) = self.weight(birth) else { return 0.0 };
        let last = birth.shape[birth.shape.len() - 1];
        let outputs = if birth.name == "convolution" {
            weight.outputs
        } else {
            last
        };
        let rows = birth.shape.numel() as f64 / outputs.max(1) as f64;
        self.rows.insert(self.paths[birth.scope as usize].clone(), rows);
        2.0 * rows * weight.elements as f64
    }

    /// The gradient of the input and that of the weight take as much as the product.
    fn product_backward(&self, birth: &Birth) -> f64 {
        let rows = self.rows.get(&self.paths[birth.scope as usize]);
        let weight = self.weights.get(&self.paths[birth.scope as usize]);
        match (rows, weight) {
            (Some(rows), Some(weight)) => 2.0 * rows * weight.elements as f64,
            // A shared weight: the forward's rows are those of its outputs.
            (Some(rows), None) => 2.0 * birth.shape.numel() as f64 * rows.min(birth.shape[0] as f64),
            _ => 0.0,
        }
    }
}

/// Elements of the output × positions that each looks at; a causal mask halves that.
fn attention(birth: &Birth) -> f64 {
    let shape = birth.shape;
    if shape.len() < 3 {
        return 0.0;
    }
    // [batch, heads, positions, width] or [batch, positions, heads, width]: there are more positions than heads.
    birth.shape.numel() as f64 * shape[1].max(shape[2]) as f64
}
