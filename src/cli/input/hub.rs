//! Finds models by what people call them, for all commands.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde::Serialize;
use vramscope_engine::model::ModelError;
use vramscope_engine::{Case, Model};
use vramscope_hub::{CachedModel, Found, Hub, HubError, Origin, Place, Remark, Resolver, Settings, Weights};
use vramscope_launch::{Launch, LeftOut};

use super::source::Source;
use crate::failure::Failure;

/// Where a model is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct HubFlags {
    /// Ask nothing of the network for a model, whose name is then looked for among those that are known and in caches
    #[arg(long)]
    offline: bool,
}

impl HubFlags {
    /// The same without the network: what a paste names is nobody's order to ask a hub.
    #[must_use]
    pub const fn offline(&self) -> Self {
        Self { offline: true }
    }

    /// Returns what finds models.
    pub fn names(&self) -> Names {
        let mut settings = Settings::of_environment();
        settings.is_offline |= self.offline;
        Names {
            resolver: Resolver::new(settings),
            found: Mutex::default(),
            remarks: Mutex::default(),
        }
    }
}

/// Models by name and the folders in which a path of that name may be.
type Looked = HashMap<(String, Vec<PathBuf>), Result<Arc<Found>, HubError>>;

/// What finds models; each name once.
#[derive(Debug)]
pub struct Names {
    resolver: Resolver,
    found: Mutex<Looked>,
    /// What was said of each name, in the order in which they were found.
    remarks: Mutex<Vec<(String, Vec<Remark>)>>,
}

/// An answer with what a person has to know of the models that it is about.
#[derive(Debug, Serialize)]
pub struct Remarked<T> {
    #[serde(flatten)]
    answer: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<Said>,
}

/// A remark as JSON.
#[derive(Debug, Serialize)]
struct Said {
    kind: &'static str,
    text: String,
}

impl Said {
    fn of(remark: &Remark) -> Self {
        Self {
            kind: remark.word(),
            text: remark.to_string(),
        }
    }
}

impl Names {
    /// Looks a model up once, and prints what a person has to know of it to standard error.
    fn look_up(&self, name: &str, place: &Place) -> Result<Arc<Found>, HubError> {
        // Held while it is looked for: cases of a file that name one model ask once.
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // A path is another one beside another launch file.
        let key = (name.to_owned(), place.folders.clone());
        let found = all.entry(key).or_insert_with(|| {
            let found = self.resolver.find(name, place).map(Arc::new);
            if let Ok(found) = &found {
                self.note(name, found);
            }
            found
        });
        found.clone()
    }

    /// Finds a model, and prints what a person has to know of it to standard error.
    ///
    /// # Errors
    /// If it is not found; the text says what to do.
    pub fn find(&self, name: &str, place: &Place) -> Result<Arc<Found>, Failure> {
        self.look_up(name, place).map_err(|error| match error {
            HubError::NoAnswer { .. } | HubError::TooMany { .. } => Failure::broken(error),
            HubError::NotSimulated { .. } if !place.files.is_empty() => {
                let files = place.files.iter().map(|file| quoted(&file.display().to_string()));
                let files = files.collect::<Vec<_>>().join(" ");
                Failure::Input(format!("{error}: vramscope dry-run {files}"))
            }
            error => Failure::input(error),
        })
    }

    /// The model in 16 bits of one whose weights are stored in few (GPTQ); `None` for others.
    pub fn in_16_bits(&self, name: &str, place: &Place) -> Option<&'static str> {
        match self.look_up(name, place) {
            Err(HubError::Packed {
                of,
                weights: Weights::Gptq,
                ..
            }) => Some(of),
            _ => None,
        }
    }

    /// Prints what a person has to know of a model, and keeps it for the answer.
    fn note(&self, name: &str, found: &Found) {
        let said = |text: &str| anstream::eprintln!("note: {text}");
        match &found.origin {
            Origin::Network(host) => said(&format!("config.json of {} is from {host}, and cached", found.name)),
            Origin::OtherCache(path) => said(&format!("config.json of {} is {}", found.name, path.display())),
            Origin::Catalogue | Origin::File(_) | Origin::Cache | Origin::Given => {}
        }
        // Where the catalogue has it unchanged, nothing is compared, and reading it once more would cost a millisecond.
        let model = match found.own_code.is_some() || found.parameters.is_some() {
            true => Model::from_config(&found.config).ok(),
            false => None,
        };
        let remarks = found.remarks_on(model.as_ref());
        remarks.iter().for_each(|remark| said(&remark.to_string()));
        let mut all = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((name.to_owned(), remarks));
    }

    /// What an estimate of these models leaves out of the run, where a larger model stands in for one.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let all = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = all.iter().flat_map(|(_, remarks)| remarks).filter_map(Remark::bound);
        bounds.map(LeftOut::of_larger_model).collect()
    }

    /// An answer with the remarks on every model that was found for it.
    pub fn remarked<T>(&self, answer: T) -> Remarked<T> {
        self.remarked_where(answer, |_| true)
    }

    /// The answer to one of several cases, with the remarks on its model.
    pub fn remarked_on<T>(&self, model: Option<&str>, answer: T) -> Remarked<T> {
        self.remarked_where(answer, |name| Some(name) == model)
    }

    fn remarked_where<T>(&self, answer: T, is_meant: impl Fn(&str) -> bool) -> Remarked<T> {
        let all = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = all.iter().filter(|(name, _)| is_meant(name));
        Remarked {
            answer,
            remarks: meant.flat_map(|(_, remarks)| remarks).map(Said::of).collect(),
        }
    }

    /// Makes the model of a case.
    ///
    /// # Errors
    /// If it is not found, or the engine does not read it.
    pub fn model(&self, case: &Case) -> Result<Model, Failure> {
        let found = self.find(&case.model, &Place::default())?;
        model_of(&found, case).map_err(Failure::input)
    }

    /// Returns a folder with the `config.json` of a model, for a program that reads one; `None` if the model is not found, or
    /// its repository brings code that belongs beside the file.
    ///
    /// # Errors
    /// If nothing is known of this name and it is no id, or the folder cannot be written.
    pub fn folder(&self, name: &str) -> Result<Option<PathBuf>, Failure> {
        let found = match self.resolver.find(name, &Place::default()) {
            Ok(found) => found,
            Err(error @ HubError::Unknown { .. }) => return Err(Failure::input(error)),
            Err(_) => return Ok(None),
        };
        if found.has_own_code {
            return Ok(None);
        }
        for remark in &found.remarks {
            anstream::eprintln!("note: {remark}");
        }
        self.resolver.folder(&found).map_err(Failure::broken)
    }

    /// Returns a folder that describes a model: the one that it was found in, else one with its `config.json`.
    ///
    /// # Errors
    /// If the model is not found, its own code would have to be run, or the folder cannot be written.
    pub fn model_folder(&self, name: &str, place: &Place) -> Result<PathBuf, Failure> {
        let found = self.find(name, place)?;
        if let Origin::File(file) | Origin::OtherCache(file) = &found.origin
            && let Some(folder) = file.parent()
        {
            return Ok(folder.to_owned());
        }
        if let (true, Ok(config)) = (found.has_own_code, Model::from_config(&found.config))
            && !config.has_forward()
        {
            return Err(Failure::Input(format!(
                "{name} brings its own code, which is not fetched: download the repository once and give its folder, and the \
                 command runs that code if it says so (trust_remote_code)"
            )));
        }
        let folder = self.resolver.folder(&found).map_err(Failure::broken)?;
        folder.ok_or_else(|| Failure::Broken("this system has no folder for caches; set XDG_CACHE_HOME".into()))
    }

    /// Folder in which a library of a hub keeps the files of a model that it has fetched.
    pub fn kept(&self, name: &str) -> Option<PathBuf> {
        self.resolver.kept(&vramscope_hub::Repository::parse(name)?)
    }

    /// What was read from hubs before.
    pub fn cached(&self) -> Vec<CachedModel> {
        self.resolver.cached()
    }

    /// Removes a model from the cache; returns how many entries it had.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget(&self, name: &str) -> Result<usize, Failure> {
        self.resolver.forget(name).map_err(Failure::broken)
    }

    /// Sets the length of a case to its model's default, unless the case states one.
    pub fn fill_length(&self, case: &mut Case, states_seq: bool) {
        let is_known = Model::catalogue_config(&case.model).is_ok();
        if states_seq || is_known {
            return;
        }
        if let Ok(model) = self.model(case) {
            case.setup.seq = model.default_seq();
        }
    }
}

/// Makes the model that was found, with a case's changes of its shape.
///
/// # Errors
/// If the engine does not read it; the text says what answers instead.
pub fn model_of(found: &Found, case: &Case) -> Result<Model, ModelError> {
    let named = Case {
        model: found.name.clone(),
        ..case.clone()
    };
    Model::from_case_with(&named, &found.config).map_err(|error| unreadable(found, &error))
}

fn unreadable(found: &Found, error: &ModelError) -> ModelError {
    let name = &found.name;
    ModelError(match &found.own_code {
        Some(code) => format!(
            "{name} brings its own code ({}), which is run, not simulated ({error}); `vramscope record --model {name}` records its \
             step without a GPU, and `vramscope dry-run` your own command",
            code.file
        ),
        None => format!(
            "{name}: {error}; `vramscope record --model {name}` records the step of any model that your transformers has, without \
             a GPU"
        ),
    })
}

/// Where the names in a launch stand: beside its files, and at ModelScope if ms-swift is not told otherwise.
pub fn place_of(launch: &Launch, files: &[Source]) -> Place {
    let paths = files.iter().filter_map(|file| match file {
        Source::File(path) => Some(path.clone()),
        Source::Stdin | Source::Command(_) => None,
    });
    let paths: Vec<PathBuf> = paths.collect();
    let says_hugging_face = launch
        .lines
        .iter()
        .any(|line| line.entry.key.eq_ignore_ascii_case("use_hf") && is_on(&line.entry.text()));
    let is_at_modelscope =
        launch.tool.is_swift() && !says_hugging_face && !std::env::var("USE_HF").is_ok_and(|value| is_on(&value));
    Place {
        folders: paths
            .iter()
            .filter_map(|path| Some(path.parent()?.to_owned()))
            .collect(),
        files: paths,
        hub: if is_at_modelscope {
            Hub::ModelScope
        } else {
            Hub::HuggingFace
        },
    }
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:+@%".contains(c);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

fn is_on(value: &str) -> bool {
    ["1", "true", "yes", "on", "y", "t"].contains(&value.to_ascii_lowercase().as_str())
}
