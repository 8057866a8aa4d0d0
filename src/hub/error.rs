//! Why a model is not found: one sentence each, with what to do.

use super::answer::{Trouble, Wrong};
use super::repository::Repository;
use super::weights::Weights;

/// Why a model is not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// Nothing of this name is known, and it is no id.
    #[error(
        "no model is named \"{given}\"{}{}; `vramscope models` lists the names, and any other is given as its id at a hub \
         (owner/name), its folder or its config.json",
        open_variable(given),
        suggestions(near)
    )]
    Unknown {
        /// What was given.
        given: String,
        /// Ids near to it.
        near: Vec<&'static str>,
    },
    /// The network may not be asked.
    #[error(
        "{repository} is not among the models known by name or in a cache, and nothing is asked of the network (--offline, \
         HF_HUB_OFFLINE); ask once with a network, or give its config.json with --config{}",
        suggestions(near)
    )]
    Offline {
        /// The repository.
        repository: Box<Repository>,
        /// Ids near to it.
        near: Vec<&'static str>,
    },
    /// The hub could not be reached, or its answer did not end.
    #[error(
        "{repository} is not known by name, and {host} gave no answer: {why}; try again, set HF_ENDPOINT to a mirror or \
         HTTPS_PROXY to your proxy, or open {address} elsewhere and give the file with --config"
    )]
    NoAnswer {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
        /// What went wrong.
        why: Trouble,
        /// Address of the file.
        address: String,
    },
    /// The hub has no such repository, or does not show it.
    #[error(
        "{host} shows no model {repository}{}; look at the spelling, and if it is private set HF_TOKEN or run `hf auth login`",
        suggestions(near)
    )]
    NoRepository {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
        /// Ids near to it.
        near: Vec<&'static str>,
    },
    /// The repository has no such revision.
    #[error("{host} has no revision {} of {}; leave it out for the main one", revision(repository), repository.id)]
    NoRevision {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
    },
    /// The repository is there, and has no file that describes a model.
    #[error(
        "{repository} has no config.json and no adapter_config.json, and its card names no base; name the model that it was \
         made from, or give a config.json with --config"
    )]
    NoConfig {
        /// The repository.
        repository: Box<Repository>,
    },
    /// The repository is gated, or the token does not open it.
    #[error(
        "{host} does not show the files of {repository} {}; accept its terms at {address} and set HF_TOKEN to a token of that \
         account (or run `hf auth login`), or give its config.json with --config",
        if *has_token { "to the owner of this token" } else { "without a token" }
    )]
    Gated {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
        /// Address of the repository.
        address: String,
        /// True if a token was sent.
        has_token: bool,
    },
    /// Too many questions were asked.
    #[error(
        "{host} takes no more questions for now (429){}; set HF_TOKEN for a higher limit, or give the config.json of \
         {repository} with --config",
        seconds.map_or(String::new(), |seconds| format!(", for {seconds} s"))
    )]
    TooMany {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
        /// Seconds to wait, if the hub says it.
        seconds: Option<u64>,
    },
    /// The answer is no file of this kind.
    #[error(
        "{host} answered for {file} of {repository} with {what}; is {host} a hub, or a page to log in to? Open {address} in a \
         browser, and give the file with --config"
    )]
    WrongAnswer {
        /// The repository.
        repository: Box<Repository>,
        /// Host that was asked.
        host: String,
        /// Name of the file.
        file: String,
        /// What it answered.
        what: Wrong,
        /// Address of the file.
        address: String,
    },
    /// A local file cannot be used.
    #[error("{path}: {why}")]
    Local {
        /// Its path.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The model is known, and not simulated.
    #[error(
        "{id} is known, and not simulated: {why}; `vramscope record --model {id}` records its step without a GPU, and \
         `vramscope dry-run` your own command"
    )]
    NotSimulated {
        /// The model.
        id: &'static str,
        /// What is not simulated.
        why: &'static str,
    },
    /// The model has the shape of one that is known, and its weights are of a type that is not simulated.
    #[error(
        "{id} has the shape of {of}, but {}, by kernels that are not simulated; name {of} for its weights in 16 bits, or with \
         `--freeze qlora` for adapters beside weights in 4 bits",
        weights.meaning().unwrap_or("its weights are stored packed")
    )]
    Packed {
        /// The model.
        id: String,
        /// Model of its shape.
        of: &'static str,
        /// Type of its weights.
        weights: Weights,
    },
    /// The name is known, and what it names cannot be read.
    #[error("{0}")]
    Refused(String),
    /// A base of a base does not end.
    #[error("{repository} was made from models that name each other; give a config.json with --config")]
    Circle {
        /// The repository.
        repository: Box<Repository>,
    },
}

impl HubError {
    /// Word of the kind.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown",
            Self::Offline { .. } => "offline",
            Self::NoAnswer { .. } => "no_answer",
            Self::NoRepository { .. } => "no_repository",
            Self::NoRevision { .. } => "no_revision",
            Self::NoConfig { .. } => "no_config",
            Self::Gated { .. } => "gated",
            Self::TooMany { .. } => "too_many",
            Self::WrongAnswer { .. } => "wrong_answer",
            Self::Local { .. } => "local",
            Self::NotSimulated { .. } => "not_simulated",
            Self::Packed { .. } => "packed",
            Self::Refused(_) => "refused",
            Self::Circle { .. } => "circle",
        }
    }

    /// Ids near to what was given, nearest first.
    pub fn near(&self) -> &[&'static str] {
        match self {
            Self::Unknown { near, .. } | Self::Offline { near, .. } | Self::NoRepository { near, .. } => near,
            _ => &[],
        }
    }

    /// Returns true if the hub says that there is no such model: one of a similar name is not it.
    pub(crate) const fn is_about_the_name(&self) -> bool {
        matches!(self, Self::NoRepository { .. } | Self::NoRevision { .. })
    }

    /// Models that name each other as their bases.
    pub fn circle(given: &str) -> Self {
        match Repository::parse(given) {
            Some(repository) => Self::Circle {
                repository: repository.into(),
            },
            None => Self::Local {
                path: given.to_owned(),
                why: "it was made from models that name each other".into(),
            },
        }
    }
}

/// Says that a name holds what nothing sets.
fn open_variable(given: &str) -> &'static str {
    match given.contains('$') {
        true => {
            ": what stands behind $ is set by no line that is given (an argument or a variable of the shell), so name the model itself"
        }
        false => "",
    }
}

fn suggestions(near: &[&'static str]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean: {}", near.join(", ")),
    }
}

fn revision(repository: &Repository) -> &str {
    repository.revision.as_deref().unwrap_or("main")
}
