//! Strategies by which several GPUs share one training step.

use serde::{Deserialize, Serialize};

/// Split of the model, its gradients and the optimizer's states between GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// `DistributedDataParallel`: everything on each GPU, and buckets of the gradients' size beside it.
    Ddp,
    /// `DistributedDataParallel` with `gradient_as_bucket_view=True`: gradients are views of the buckets.
    DdpView,
    /// `ZeroRedundancyOptimizer` under `DistributedDataParallel`: each GPU keeps the states of a part of the
    /// parameters.
    Zero1,
    /// FSDP2, `fully_shard` of every block and of the root: parameters, gradients and states are sharded, and each
    /// block is gathered while it runs and resharded after its forward (ZeRO-3).
    Fsdp,
    /// FSDP2 with `reshard_after_forward=False`: gathered parameters stay until backward is done with them (ZeRO-2).
    FsdpNoReshard,
    /// Tensor parallelism by the model's own plan (`DistributedConfig(tp_size=…)` of transformers): each GPU keeps some
    /// heads and some of the MLP's width of every block, and all work on one batch.
    Tensor,
    /// Pipeline parallelism (`torch.distributed.pipelining`): each GPU has consecutive blocks, and micro-batches go from
    /// one to the next; backwards begin as soon as they can (`Schedule1F1B`).
    Pipeline,
    /// Pipeline parallelism with all forwards before the first backward (`ScheduleGPipe`).
    PipelineGpipe,
}

/// Several GPUs that train together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Parallel {
    /// Strategy.
    pub strategy: Strategy,
    /// Number of GPUs.
    pub world: u64,
    /// FSDP2's `MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=float32)`.
    pub mp: bool,
    /// FSDP2's `CPUOffloadPolicy`: shards, gradients and states in the memory of the host.
    pub offload: bool,
    /// Bucket of DDP (MB): `bucket_cap_mb`.
    pub bucket: u64,
    /// Stage of a pipeline to report, from 0; the one that takes the most memory if absent.
    pub stage: Option<u64>,
}

impl Default for Parallel {
    fn default() -> Self {
        Self {
            strategy: Strategy::Ddp,
            world: 2,
            mp: false,
            offload: false,
            bucket: 25,
            stage: None,
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

    /// GPUs that share each linear map; 1 if each has them whole.
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
}

impl Strategy {
    /// Returns true for pipeline strategies, where each GPU has consecutive blocks.
    pub const fn is_pipeline(self) -> bool {
        matches!(self, Self::Pipeline | Self::PipelineGpipe)
    }

    /// Returns true if parameters are sharded.
    pub const fn shards_parameters(self) -> bool {
        matches!(self, Self::Fsdp | Self::FsdpNoReshard)
    }
}
