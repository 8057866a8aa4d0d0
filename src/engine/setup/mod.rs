//! Training configuration that the user chooses: batch, sequence, images, precision, optimizer, checkpointing,
//! freezing. [`settings`](mod@settings) declares each setting once.

mod adapter_places;
mod adapters;
mod batching;
mod choices;
mod count;
mod declaration;
mod freeze;
mod liger;
mod parallel;
mod parameter_names;
mod precision;
mod settings;
mod value;
mod zero;

pub use adapter_places::{AdapterPlaces, FormerNames};
pub(crate) use adapters::MapPlace;
pub use adapters::Targets;
pub use choices::{
    AdapterType, Attention, CAUSAL_CONV1D, Checkpointing, ExpertAdapters, FrozenType, Generation, KernelPackages,
    Loading, Loss, Optimizer, Packing, PixelValues, Precision, Reference, SavedType, Strategy, TrainerKind, ZeroGrad,
};
pub use count::{NotCount, Prefix, read_count, read_listed_count, read_number};
pub use declaration::{Alternatives, Declaration, Depends, Export, Group, Needs};
pub use freeze::{Freeze, Parts};
pub use liger::LigerKernels;
pub use parallel::Parallel;
pub use parameter_names::ParameterNames;
pub use settings::{Change, Setting, Setup};
pub use value::{Choices, Kind, Value};
pub use zero::{Offload, Zero};
