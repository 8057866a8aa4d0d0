//! What a person has to know of a model that was found, as data: English here, other languages beside the page's words.

use std::fmt;

use super::error::HubError;
use super::weights::Weights;

/// What a person has to know of a model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// A tool's table gives an id to the name.
    Alias {
        /// Name that was given.
        given: String,
        /// Id in the table.
        id: String,
        /// Whose table it is.
        tool: &'static str,
    },
    /// Its configuration is that of another model.
    Shape {
        /// The model.
        id: String,
        /// Model whose configuration is used.
        of: String,
    },
    /// Its configuration is that of another model, and its weights are of another type.
    Stored {
        /// The model.
        id: String,
        /// Model whose configuration is used.
        of: String,
        /// Type of its weights.
        weights: Weights,
    },
    /// A revision was named, whose files were not read.
    Revision {
        /// The revision.
        revision: String,
    },
    /// A path is the folder of a repository in a cache.
    Folder {
        /// The path.
        path: String,
        /// The repository.
        id: String,
    },
    /// A path is taken for the model that its last part names.
    Path {
        /// The path.
        path: String,
        /// The model.
        id: String,
    },
    /// Of a model that also speaks the part that trains is simulated.
    Thinker {
        /// The model.
        id: String,
    },
    /// The repository brings its own code; the same model in transformers' form is simulated.
    OwnCode {
        /// The repository.
        id: String,
        /// File of the model's class, if its configuration was read.
        file: Option<String>,
    },
    /// The repository brings its own code; a model that is larger in each part is simulated, so that the run needs at most as
    /// much.
    Larger {
        /// The repository.
        id: String,
    },
    /// The repository brings its own code for a model that transformers has too.
    AlsoOwnCode {
        /// The repository.
        id: String,
        /// File of the model's class.
        file: String,
    },
    /// The hub was asked for the model's own files, and did not answer.
    NotCompared(Box<HubError>),
    /// It is an adapter, whose base is simulated.
    Adapter {
        /// The adapter.
        id: String,
        /// Its base.
        base: String,
        /// Its rank.
        rank: Option<u64>,
    },
    /// It was made from a model, which is simulated.
    MadeFrom {
        /// The repository.
        id: String,
        /// Its base.
        base: String,
        /// Type of its weights.
        weights: Weights,
    },
    /// Largest image of its processor.
    Pixels(u64),
    /// The simulated model has another number of parameters than the checkpoint.
    Parameters {
        /// The model.
        id: String,
        /// Parameters of its files.
        stated: u64,
        /// Parameters of the simulated model.
        simulated: u64,
    },
}

/// What stands in for a model that is bounded from above.
const LARGER: &str =
    "its tower and language model stand with a larger connector (Idefics2's), so the run needs at most as much";

impl Remark {
    /// Why an estimate is of at most as much memory as the run needs; `None` if it is of the model itself.
    pub const fn bound(&self) -> Option<&'static str> {
        match self {
            Self::Larger { .. } => Some(LARGER),
            _ => None,
        }
    }

    /// Word of the kind, for JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Alias { .. } => "alias",
            Self::Shape { .. } => "same_shape",
            Self::Stored { .. } => "stored_weights",
            Self::Revision { .. } => "revision",
            Self::Folder { .. } => "cache_folder",
            Self::Path { .. } => "last_part_of_path",
            Self::Thinker { .. } => "thinker",
            Self::OwnCode { .. } => "own_code",
            Self::Larger { .. } => "larger_model",
            Self::AlsoOwnCode { .. } => "also_own_code",
            Self::NotCompared(_) => "not_compared",
            Self::Adapter { .. } => "adapter",
            Self::MadeFrom { .. } => "made_from",
            Self::Pixels(_) => "largest_image",
            Self::Parameters { .. } => "parameters_differ",
        }
    }

    /// Difference of [`Self::Parameters`]: parameters, percent of those of the files, and true if the simulated model has
    /// fewer.
    pub fn difference(stated: u64, simulated: u64) -> (u64, f64, bool) {
        let difference = stated.abs_diff(simulated);
        (
            difference,
            100.0 * difference as f64 / stated as f64,
            stated > simulated,
        )
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alias { given, id, tool } => write!(f, "{given} is {id} in the table of {tool}"),
            Self::Shape { id, of } => write!(f, "{id} has the shape of {of}"),
            Self::Stored { id, of, weights } => {
                write!(
                    f,
                    "{id} has the shape of {of}; {}",
                    weights.meaning().unwrap_or_default()
                )
            }
            Self::Revision { revision } => {
                write!(f, "its revision {revision} is taken to have the shape of the main one")
            }
            Self::Folder { path, id } => {
                write!(f, "{path} is the folder of {id} in a cache of Hugging Face's libraries")
            }
            Self::Path { path, id } => write!(f, "\"{path}\" is taken for {id}, by its last part"),
            Self::Thinker { .. } | Self::OwnCode { .. } | Self::Larger { .. } | Self::AlsoOwnCode { .. } => {
                self.of_code(f)
            }
            Self::NotCompared(why) => write!(f, "not compared with its own config.json: {why}"),
            Self::Adapter { id, base, rank } => {
                let rank = rank.map_or(String::new(), |rank| format!(", --rank {rank}"));
                write!(
                    f,
                    "{id} is an adapter of {base}: its base is simulated; to train it further, --freeze lora{rank}"
                )
            }
            Self::MadeFrom { id, base, weights } => {
                let meaning = weights.meaning().unwrap_or("its base is what trains");
                write!(f, "{id} was made from {base}; {meaning}")
            }
            Self::Pixels(pixels) => write!(
                f,
                "its processor makes images of at most {pixels} pixels, unless the run says otherwise"
            ),
            Self::Parameters { id, stated, simulated } => of_parameters(f, id, *stated, *simulated),
        }
    }
}

impl Remark {
    /// What is simulated of a model that transformers does not have in this form.
    fn of_code(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thinker { id } => write!(
                f,
                "the thinker of {id} is simulated, which is what trains; its talker takes more where it is loaded"
            ),
            Self::OwnCode { id, file } => {
                let file = file.as_ref().map_or(String::new(), |file| format!(" ({file})"));
                write!(
                    f,
                    "{id} brings its own code{file}, which is not simulated: this is the same model in transformers' form"
                )
            }
            Self::Larger { id } => write!(
                f,
                "{id} brings its own code, which is not simulated: {LARGER}; count each slice of a picture as an image, up to ten \
                 for one of more than 448 × 448 pixels. `vramscope dry-run` runs the code itself"
            ),
            Self::AlsoOwnCode { id, file } => write!(
                f,
                "{id} brings its own code too ({file}), which a run with trust_remote_code may take: transformers' own class is \
                 simulated"
            ),
            _ => Ok(()),
        }
    }
}

/// How far a simulated model is from its checkpoint.
fn of_parameters(f: &mut fmt::Formatter<'_>, id: &str, stated: u64, simulated: u64) -> fmt::Result {
    let (difference, percent, is_fewer) = Remark::difference(stated, simulated);
    let (word, reason) = if is_fewer {
        (
            "fewer",
            "layers that transformers does not load (such as those that predict further tokens), or parts that are not simulated",
        )
    } else {
        (
            "more",
            "tied weights that are stored once, or another shape than its config.json says",
        )
    };
    write!(
        f,
        "the files of {id} hold {stated} parameters; the simulated model has {simulated}, {difference} ({percent:.2}%) {word}: \
         {reason}"
    )
}
