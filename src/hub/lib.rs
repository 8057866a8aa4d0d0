//! Finds a model by what people call it: a name of the catalogue, an id or an address of a hub, a folder, or a file.
//!
//! A model's `config.json` is looked for in this order: a local folder or file; the models known by name, with the copies
//! and variants that have their shape ([`known`]); the caches of Hugging Face's and ModelScope's libraries; the cache of
//! this crate; the network. The names of a few small files ([`FILES`]) are all that is asked of a hub; no weights are
//! fetched, and nothing that a repository brings is run.
//!
//! The modules of this file do no I/O, so that the page can use them. Files and the network are behind the feature `io`.

mod aliases;
mod answer;
mod error;
mod found;
mod inquiry;
mod known;
mod lookup;
mod not_simulated;
mod own_code;
mod remark;
mod repository;
mod repository_info;
mod variants;
mod weights;

#[cfg(feature = "io")]
#[allow(clippy::disallowed_methods, reason = "runs natively only")]
mod io;

pub use aliases::Tool;
pub use answer::{MOST_BYTES, Question, Response, Trouble, Wrong};
pub use error::HubError;
pub use found::{Found, Leads, Origin};
pub use inquiry::{Description, Inquiry};
#[cfg(feature = "io")]
pub use io::{CachedModel, Place, Resolver, Settings};
pub use known::{Known, known, known_ids, nearest, nearest_known};
pub use lookup::{Lookup, MOST_BASES, settle};
pub use not_simulated::{not_simulated, reasons};
pub use own_code::OwnCode;
pub use remark::Remark;
pub use repository::{HUGGING_FACE, Hub, MODELSCOPE, Repository};
pub use repository_info::RepositoryInfo;
pub use weights::Weights;

/// Files whose names are asked of a hub, the first of which describes a model.
pub const FILES: [&str; 4] = [
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "adapter_config.json",
];
