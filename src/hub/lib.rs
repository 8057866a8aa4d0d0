//! Finds a model by what people call it: a name of the catalogue, an id or an address of a hub, a folder, or a file.
//!
//! A model's `config.json` is looked for in this order: a local folder or file; the models known by name, with the copies
//! and variants that have their shape ([`known`]); the caches of Hugging Face's and ModelScope's libraries; the cache of
//! this crate; the network. The names of a few small files ([`FILES`]) are all that is asked of a hub; no weights are
//! fetched, and nothing that a repository brings is run.
//!
//! The modules of this file do no I/O, so that the page can use them. Files and the network are behind the feature `io`.

mod aliases;
mod known;
mod not_simulated;
mod own_code;
mod repository;
mod repository_info;
mod variants;
mod weights;

#[cfg(feature = "io")]
#[allow(clippy::disallowed_methods, reason = "runs natively only")]
mod io;

pub use aliases::Tool;
#[cfg(feature = "io")]
pub use io::{CachedModel, Found, HubError, Origin, Place, Resolver, Settings};
pub use known::{Known, known, known_ids, nearest, nearest_known};
pub use not_simulated::not_simulated;
pub use own_code::OwnCode;
pub use repository::{HUGGING_FACE, Hub, MODELSCOPE, Repository};
pub use repository_info::RepositoryInfo;
pub use weights::Weights;

/// Files whose names are asked of a hub, the first of which describes a model.
pub const FILES: [&str; 5] = [
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "generation_config.json",
    "adapter_config.json",
];
