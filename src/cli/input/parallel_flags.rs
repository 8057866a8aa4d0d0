//! Flags for several GPUs, with the keys and values of a case file.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use vramscope_engine::setup::{Offload, Parallel, Strategy, Zero};

use super::count;
use crate::failure::Failure;

/// How several GPUs share a step, where that was given.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Several GPUs")]
pub struct ParallelFlags {
    /// What each GPU holds; the figures are of one of them
    #[arg(long, value_name = "NAME", value_parser = strategy())]
    strategy: Option<Strategy>,
    /// GPUs [default: 2]
    #[arg(long, value_name = "N", value_parser = count::size)]
    world: Option<u64>,
    /// FSDP2: gather in bf16, reduce in fp32
    #[arg(long)]
    mp: bool,
    /// Memory of the host. FSDP2: shards, gradients and states. DeepSpeed: `optimizer` or `optimizer,param`
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = offload()
    )]
    offload: Option<Offload>,
    /// DDP: size of a bucket of gradients [default: 25]
    #[arg(long, value_name = "MB", value_parser = count::size)]
    bucket: Option<u64>,
    /// DeepSpeed: keys of `zero_optimization` that are not as it has them, such as reduce_bucket_size=2e8
    #[arg(long, value_name = "KEY=VALUE,..", value_parser = Zero::parse)]
    zero: Option<Zero>,
    /// A pipeline: the stage to look at, from 0 [default: the one that takes the most memory]
    #[arg(long, value_name = "N", value_parser = count::size)]
    stage: Option<u64>,
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::CHOICES.names).try_map(|name| Strategy::named(&name).ok_or("no such strategy"))
}

fn offload() -> impl TypedValueParser<Value = Offload> {
    PossibleValuesParser::new(Offload::WORDS.map(|(word, _)| word))
        .try_map(|word| Offload::named(&word).ok_or("nothing that is kept there"))
}

impl ParallelFlags {
    /// Returns true if the number of GPUs was given.
    pub const fn names_world(&self) -> bool {
        self.world.is_some()
    }

    /// Replaces `--world` in a copy of these flags.
    pub fn on(&self, gpus: u64) -> Self {
        Self {
            world: Some(gpus),
            ..self.clone()
        }
    }

    /// The case's parallelism with these flags applied; `None` if neither names a strategy.
    ///
    /// # Errors
    /// If a flag is given that requires a strategy, and there is none.
    pub fn over(&self, case: Option<Parallel>) -> Result<Option<Parallel>, Failure> {
        let Some(strategy) = self.strategy.or(case.map(|case| case.strategy)) else {
            return match self {
                flags if *flags == Self::default() => Ok(None),
                _ => Err(Failure::Input(
                    "--world, --mp, --offload, --bucket, --zero and --stage are of several GPUs; name a --strategy"
                        .into(),
                )),
            };
        };
        let case = case.unwrap_or_default();
        Ok(Some(Parallel {
            strategy,
            world: self.world.unwrap_or(case.world),
            mp: self.mp || case.mp,
            offload: self.offload.unwrap_or(case.offload),
            bucket: self.bucket.unwrap_or(case.bucket),
            stage: self.stage.or(case.stage),
            zero: self.zero.unwrap_or(case.zero),
        }))
    }
}
