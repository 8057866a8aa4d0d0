//! Strategies by which several GPUs share one training step.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use super::{Offload, Setup, Strategy, Zero};

/// Several GPUs that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Parallel {
    /// Strategy.
    pub strategy: Strategy,
    /// Number of GPUs.
    pub world: u64,
    /// FSDP2's `MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32)`.
    pub mp: bool,
    /// What is kept in the memory of the host.
    pub offload: Offload,
    /// Bucket of DDP (MB): `bucket_cap_mb`.
    pub bucket: u64,
    /// Stage of a pipeline to report, from 0; the one that takes the most memory if absent.
    pub stage: Option<u64>,
    /// DeepSpeed's keys of `zero_optimization`.
    pub zero: Zero,
}

impl Serialize for Parallel {
    /// Writes all fields; in JSON, DeepSpeed's keys only if one is not as DeepSpeed has it.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let with_zero = !to.is_human_readable() || self.zero != Zero::default();
        let mut out = to.serialize_struct("Parallel", 6 + usize::from(with_zero))?;
        out.serialize_field("strategy", &self.strategy)?;
        out.serialize_field("world", &self.world)?;
        out.serialize_field("mp", &self.mp)?;
        out.serialize_field("offload", &self.offload)?;
        out.serialize_field("bucket", &self.bucket)?;
        out.serialize_field("stage", &self.stage)?;
        if with_zero {
            out.serialize_field("zero", &self.zero)?;
        }
        out.end()
    }
}

impl Default for Parallel {
    fn default() -> Self {
        Self {
            strategy: Strategy::Ddp,
            world: 2,
            mp: false,
            offload: Offload::None,
            bucket: 25,
            stage: None,
            zero: Zero::default(),
        }
    }
}

impl Parallel {
    /// Copies of the model, each of which trains micro-batches of its own; GPUs that split maps or blocks between them
    /// hold one copy together.
    pub const fn replicas(&self) -> u64 {
        match self.strategy {
            Strategy::Tensor | Strategy::Pipeline | Strategy::PipelineGpipe => 1,
            _ => self.world,
        }
    }

    /// GPUs that share each linear layer; 1 if each has them whole.
    pub const fn group(&self) -> u64 {
        match self.strategy {
            Strategy::Tensor => self.world,
            _ => 1,
        }
    }
}

impl Parallel {
    /// Returns true if each GPU has a part of the model, so that its own step is recorded rather than rewritten.
    pub const fn is_in_parts(&self) -> bool {
        matches!(self.strategy, Strategy::Tensor) || self.strategy.is_pipeline()
    }

    /// Returns true if DeepSpeed overlaps communication with backward: of stage 3 unless `overlap_comm` says otherwise.
    pub fn overlaps(&self) -> bool {
        self.zero.overlap_comm.unwrap_or(self.strategy == Strategy::Deepspeed3)
    }
}

impl Parallel {
    /// Returns true if the work of a step is recorded with what the strategy adds to it, by the hooks that simulate its memory:
    /// under DeepSpeed, FSDP1, and FSDP2 as accelerate prepares it or with an update that communicates.
    pub fn is_recorded_whole(&self, setup: &Setup) -> bool {
        let is_whole = setup.trainer.is_derived() || setup.optim.communicates();
        self.strategy.is_deepspeeds() || self.strategy.is_fsdp1() || self.strategy.shards_parameters() && is_whole
    }
}

impl Strategy {
    /// Returns true for pipeline strategies, where each GPU has consecutive blocks.
    pub const fn is_pipeline(self) -> bool {
        matches!(self, Self::Pipeline | Self::PipelineGpipe)
    }

    /// Stage of ZeRO that DeepSpeed's engine runs; `None` for other strategies.
    pub const fn zero_stage(self) -> Option<u8> {
        match self {
            Self::Deepspeed0 => Some(0),
            Self::Deepspeed1 => Some(1),
            Self::Deepspeed2 => Some(2),
            Self::Deepspeed3 => Some(3),
            _ => None,
        }
    }

    /// Returns true for the strategies of DeepSpeed's engine.
    pub const fn is_deepspeeds(self) -> bool {
        self.zero_stage().is_some()
    }

    /// Returns true if each GPU keeps a part of the parameters alone: FSDP, and ZeRO's third stage.
    pub const fn keeps_parts_of_parameters(self) -> bool {
        self.shards_parameters() || self.is_fsdp1() || matches!(self, Self::Deepspeed3)
    }

    /// Returns true for FSDP1.
    pub const fn is_fsdp1(self) -> bool {
        matches!(self, Self::Fsdp1 | Self::Fsdp1NoReshard)
    }

    /// Returns true if FSDP2 shards parameters.
    pub const fn shards_parameters(self) -> bool {
        matches!(self, Self::Fsdp | Self::FsdpNoReshard)
    }
}
