//! Selects the model: by name, by its config.json, or by a whole case.

use std::cell::OnceCell;

use clap::Args;
use serde_json::Map;
use vramscope_engine::model::ModelError;
use vramscope_engine::setup::Parallel;
use vramscope_engine::{Case, Model, Setup};
use vramscope_launch::ModelFacts;

use super::setup_flags::SetupFlags;
use super::source::Source;
use crate::failure::Failure;

/// A model, in one of three ways.
#[derive(Debug, Clone, Args)]
pub struct Subject {
    /// A model of the catalogue (see `vramscope models`)
    model: Option<String>,
    /// A Hugging Face config.json, or - for standard input
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    config: Option<Source>,
    /// Model and setup as one JSON object; flags override it
    #[arg(long, value_name = "JSON")]
    case: Option<String>,
    /// Setup, and model if no other is named, that the files of a launch ask for.
    #[arg(skip)]
    launched: Option<Case>,
    /// Text of the config.json once it is read: standard input can be read once.
    #[arg(skip)]
    config_text: OnceCell<String>,
}

impl Subject {
    /// A model by name or by its config.json; `None` if neither is given.
    pub fn of(model: Option<String>, config: Option<Source>) -> Option<Self> {
        (model.is_some() || config.is_some()).then(|| Self::of_launch(model, config))
    }

    /// A model that only a launch names ([`Self::launch`]), unless one is given here.
    pub fn of_launch(model: Option<String>, config: Option<Source>) -> Self {
        Self {
            model,
            config,
            case: None,
            launched: None,
            config_text: OnceCell::new(),
        }
    }

    /// Takes the setup of a launch, and its model unless another is named.
    pub fn launch(&mut self, case: Case) {
        self.launched = Some(case);
    }

    /// Returns what tools make settings of; `launched` is the model's name in a launch, which counts if no other model is
    /// given.
    ///
    /// # Errors
    /// If the configuration cannot be read, or the model is not known: what of the files counts depends on it.
    pub fn facts(&self, launched: Option<&str>) -> Result<ModelFacts, Failure> {
        let model = match (&self.model, &self.config) {
            // One that cannot be simulated is refused when it is read, with what can be said of it.
            (None, Some(source)) => Model::from_config(self.config_text(source)?).ok(),
            (name, _) => match name.as_deref().or(launched) {
                Some(name) => Some(Model::from_catalogue(name).map_err(Failure::input)?),
                None => None,
            },
        };
        Ok(model.map_or(ModelFacts::UNKNOWN, |model| ModelFacts::of(&model)))
    }

    /// Text of the config.json.
    fn config_text(&self, source: &Source) -> Result<&str, Failure> {
        if self.config_text.get().is_none() {
            let _ = self.config_text.set(source.read_text()?);
        }
        Ok(self.config_text.get().map_or("", String::as_str))
    }

    /// Returns the model in the shape that its setup requires, and the setup with the flags applied. Flags without
    /// effect are noted on standard error.
    ///
    /// # Errors
    /// If the model is unknown, or the configuration or the case cannot be read.
    pub fn read(self, flags: &SetupFlags) -> Result<(Model, Setup), Failure> {
        let (model, setup) = self.model_and_setup(flags)?;
        for flag in flags.without_effect(model.takes()) {
            anstream::eprintln!("note: {flag} changes nothing for {}", model.name);
        }
        Ok((model, setup))
    }

    /// Returns a factory of models for setups, since in some families image sizes and frames belong to the model; and
    /// the setup with the flags applied.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn models(self, flags: &SetupFlags) -> Result<(Models, Setup), Failure> {
        let mut setup = Setup::default();
        let of = match (self.model, self.config, self.case) {
            (Some(name), ..) => {
                let case = named(name);
                setup = case.setup.clone();
                Models::Case(Box::new(case))
            }
            (_, Some(source), _) => {
                let text = source.read_text()?;
                // An unreadable configuration is refused once a model is made of it.
                if let Ok(model) = Model::from_config(&text) {
                    setup.seq = model.default_seq();
                }
                Models::Config(text)
            }
            (.., Some(text)) => {
                let case = read_case(&text)?;
                setup = case.setup.clone();
                Models::Case(Box::new(case))
            }
            _ => return Err(Failure::Input("name a model, or give --config or --case".into())),
        };
        flags.apply(&mut setup);
        Ok((of, setup))
    }

    /// The case's memory limit in GiB, if it states one.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn limit_gib(&self) -> Result<Option<f64>, Failure> {
        let case = self.case.as_deref().map(read_case).transpose()?;
        Ok(case.and_then(|case| case.limit_gib))
    }

    /// The case's parallelism, if it names several GPUs.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn parallel(&self) -> Result<Option<Parallel>, Failure> {
        let case = self
            .case
            .as_deref()
            .map(read_case)
            .transpose()?
            .or_else(|| self.launched.clone());
        Ok(case.and_then(|case| case.parallel))
    }

    fn model_and_setup(self, flags: &SetupFlags) -> Result<(Model, Setup), Failure> {
        if let (None, Some(source)) = (&self.model, &self.config) {
            let text = self.config_text(source)?;
            return from_config((source, text), self.launched.clone(), flags);
        }
        let launched = self.launched;
        match (self.model, self.config, self.case) {
            (Some(model), ..) => {
                let named = named(model);
                let setup = launched.map_or(named.setup, |case| case.setup);
                from_case(Case { setup, ..named }, flags)
            }
            (.., Some(text)) => from_case(read_case(&text)?, flags),
            _ if launched.as_ref().is_some_and(|case| case.model.is_empty()) => Err(Failure::Input(
                "--launch names no model; name one before it, or give --config with its config.json".into(),
            )),
            _ if let Some(case) = launched => from_case(case, flags),
            _ => Err(Failure::Input("name a model, or give --config or --case".into())),
        }
    }
}

/// Source from which models are made.
pub enum Models {
    /// A case without its setup.
    Case(Box<Case>),
    /// The text of a config.json.
    Config(String),
}

impl Models {
    /// The model in the shape that a setup requires.
    ///
    /// # Errors
    /// If it is unknown, or cannot be read.
    pub fn of(&self, setup: &Setup) -> Result<Model, ModelError> {
        match self {
            Self::Case(case) => Model::from_case(&Case {
                setup: setup.clone(),
                ..Case::clone(case)
            }),
            Self::Config(text) => Model::from_config_for(text, setup),
        }
    }
}

/// A model of the catalogue with the default setup, at its own default length.
fn named(model: String) -> Case {
    let mut setup = Setup::default();
    if let Ok(model) = Model::from_catalogue(&model) {
        setup.seq = model.default_seq();
    }
    Case {
        model,
        shape: Map::new(),
        setup,
        limit_gib: None,
        parallel: None,
    }
}

fn read_case(text: &str) -> Result<Case, Failure> {
    let case = Case::from_json(text).map_err(|e| Failure::Input(format!("--case: {e}")))?;
    case.ok_or_else(|| {
        Failure::Input("--case: names no model; give an object such as {\"model\": \"gpt2\", \"batch\": 8}".into())
    })
}

fn from_case(mut case: Case, flags: &SetupFlags) -> Result<(Model, Setup), Failure> {
    flags.apply(&mut case.setup);
    let model = Model::from_case(&case).map_err(Failure::input)?;
    Ok((model, case.setup))
}

fn from_config(
    (source, text): (&Source, &str),
    launched: Option<Case>,
    flags: &SetupFlags,
) -> Result<(Model, Setup), Failure> {
    let is_launched = launched.is_some();
    let mut setup = launched.map_or_else(Setup::default, |case| case.setup);
    flags.apply(&mut setup);
    let model = Model::from_config_for(text, &setup).map_err(|e| Failure::Input(format!("{source}: {e}")))?;
    if !flags.names_seq() && !is_launched {
        setup.seq = model.default_seq();
    }
    Ok((model, setup))
}
