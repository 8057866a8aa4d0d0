//! Setup and work of a recorded step, as inputs of the time estimate.

use super::run::RecordedRun;
use crate::Setup;
use crate::dtype::DType;
use crate::setup::Precision;
use crate::simulate::{Recording, Step, StepMarks};
use crate::tape::Kind;
use crate::tape::log::Log;
use crate::tape::work::{Class, WorkItem};
use crate::units::Bytes;

impl RecordedRun {
    /// Takes the work out of the run, as a recording of one step without events and storages.
    pub fn take_work(&mut self) -> Recording {
        let nothing = || Step {
            events: Vec::new(),
            marks: StepMarks::default(),
        };
        Recording {
            work: std::mem::take(&mut self.work),
            log: Log {
                scopes: self.log.scopes.clone(),
                ..Log::default()
            },
            build: Vec::new(),
            emptied: Vec::new(),
            first: nothing(),
            steady: nothing(),
            params: self.params,
            trainable: self.trainable,
            parameters: Vec::new(),
            streams: Vec::new(),
            stages: Vec::new(),
            paged: Bytes::ZERO,
            failure: None,
        }
    }

    /// Returns the part of a setup that determines samples and tokens per second: extents of the batch, micro-batches
    /// and the type of products.
    pub fn setup(&self) -> Setup {
        let inputs = || {
            self.log
                .allocations
                .iter()
                .filter(|allocation| allocation.kind == Kind::Input)
        };
        let ids = inputs()
            .find(|allocation| allocation.name == "input_ids")
            .map(|allocation| allocation.shape);
        let first = ids.or_else(|| inputs().next().map(|allocation| allocation.shape));
        let extent = |at: usize| first.as_ref().and_then(|shape| shape.get(at)).copied();
        let size = |name: &str| {
            let at = self.about.at.as_ref()?;
            at.sizes
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| *value)
        };
        Setup {
            batch: size("batch").or(extent(0)).unwrap_or(1).max(1),
            seq: size("seq").or(ids.and(extent(1))).unwrap_or(0),
            accum: self.micro_batches.max(1),
            precision: self.precision(),
            ..Setup::default()
        }
    }

    /// Returns the type in which most arithmetic of products is done.
    fn precision(&self) -> Precision {
        let mut most = (0u128, DType::Bf16);
        for item in self.work.forward() {
            if let WorkItem::Launch(launch) = item
                && matches!(launch.class, Class::Matmul(_) | Class::Convolution)
            {
                let work = launch.extents.iter().map(|&n| u128::from(n.max(1))).product();
                if work > most.0 {
                    most = (work, launch.dtype);
                }
            }
        }
        match most.1 {
            DType::F16 => Precision::AmpFp16,
            DType::F32 | DType::F64 => Precision::Fp32,
            _ => Precision::Bf16,
        }
    }
}
