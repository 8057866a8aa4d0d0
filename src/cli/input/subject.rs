//! Selects the model: by name, by its config.json, or by a whole case.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value};
use vramscope_engine::model::{ModelError, Stored};
use vramscope_engine::setup::{Freeze, Parallel};
use vramscope_engine::{Case, Model, Setup};
use vramscope_hub::{Found, Place};
use vramscope_launch::{ImageRules, ModelFacts, Note, Resolved};
use vramscope_plan::search::Entry;

use super::hub::{HubFlags, Names, model_of};
use super::setup_flags::SetupFlags;
use super::source::Source;
use crate::failure::Failure;

/// A model, in one of three ways.
#[derive(Debug, Clone, Args)]
pub struct Subject {
    /// A name of `vramscope models`, an id (owner/name, owner/name@revision) or an address of the Hugging Face Hub or
    /// ModelScope, a folder, or a config.json
    model: Option<String>,
    /// A Hugging Face config.json, or - for standard input
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    config: Option<Source>,
    /// Model and setup as one JSON object; flags override it
    #[arg(long, value_name = "JSON")]
    case: Option<String>,
    #[command(flatten)]
    hub: HubFlags,
    /// Setup, and model if no other is named, that the files of a launch ask for.
    #[arg(skip)]
    launched: Option<Launched>,
    /// Where the name of a launch stands.
    #[arg(skip)]
    place: Place,
    /// Text of the config.json once it is read: standard input can be read once.
    #[arg(skip)]
    config_text: OnceCell<String>,
    #[arg(skip)]
    names: OnceCell<Arc<Names>>,
}

/// What the files of a launch ask for.
#[derive(Debug, Clone, PartialEq)]
struct Launched {
    case: Case,
    /// True if they give the length of samples, which is the model's own otherwise.
    has_length: bool,
    /// What the tool does with images whose sizes are given.
    images: ImageRules,
    /// The program that they start, if its code decides what its options mean.
    own_program: Option<String>,
    /// Remark on the place where the shell ends the command although lines follow it, if it does.
    cut_off: Option<String>,
}

impl Launched {
    /// Says that no model is named, and which program knows it, if it is one's own.
    fn no_model(&self) -> String {
        let ways = "name one before it, or give --config with its config.json";
        match (&self.cut_off, &self.own_program) {
            (Some(cut_off), Some(program)) => {
                format!("--launch names no model ({program}; {cut_off}); {ways}, or run it dry: vramscope dry-run")
            }
            (Some(cut_off), None) => format!("--launch names no model: {cut_off}; {ways}"),
            (None, Some(program)) => {
                format!("--launch names no model ({program}); {ways}, or run it dry: vramscope dry-run")
            }
            (None, None) => format!("--launch names no model; {ways}"),
        }
    }

    /// The setup, and what becomes of images in it.
    fn setup(mut self, flags: &SetupFlags) -> (Setup, ImageRules) {
        self.leave_images_to(flags);
        (self.case.setup, self.images)
    }

    /// Takes the images out that a bound fills samples with, where flags say which there are.
    fn leave_images_to(&mut self, flags: &SetupFlags) {
        if flags.names_images() {
            let usual = Setup::default();
            (self.case.setup.images, self.case.setup.image_sizes) = (usual.images, usual.image_sizes);
        }
    }
}

impl Subject {
    /// A model by name or by its config.json; `None` if neither is given.
    pub fn of(model: Option<String>, config: Option<Source>, hub: HubFlags) -> Option<Self> {
        (model.is_some() || config.is_some()).then(|| Self::of_launch(model, config, hub))
    }

    /// A model that only a launch names ([`Self::launch`]), unless one is given here.
    pub fn of_launch(model: Option<String>, config: Option<Source>, hub: HubFlags) -> Self {
        Self {
            model,
            config,
            case: None,
            hub,
            launched: None,
            place: Place::default(),
            config_text: OnceCell::new(),
            names: OnceCell::new(),
        }
    }

    /// A model and a setup as the JSON of a case.
    pub fn of_case(case: String, hub: HubFlags) -> Self {
        Self {
            case: Some(case),
            ..Self::of_launch(None, None, hub)
        }
    }

    /// The same, with what finds models of its own.
    #[must_use]
    pub fn with_own_names(mut self) -> Self {
        self.names = OnceCell::new();
        self
    }

    /// What finds models by name.
    pub fn names(&self) -> Arc<Names> {
        Arc::clone(self.names.get_or_init(|| Arc::new(self.hub.names())))
    }

    /// Takes the setup of a launch, and its model unless another is named.
    pub fn launch(&mut self, case: Case, resolved: &Resolved) {
        let own_program = resolved
            .not_simulated
            .iter()
            .find(|remark| remark.note == Note::OwnProgram);
        let cut_off = resolved.assumed.iter().find(|remark| remark.note == Note::CutOff);
        self.launched = Some(Launched {
            cut_off: cut_off.map(ToString::to_string),
            case,
            has_length: resolved.case.contains_key("seq"),
            images: resolved.images,
            own_program: own_program.map(ToString::to_string),
        });
    }

    /// Takes where the names in a launch stand.
    pub fn stand_at(&mut self, place: Place) {
        self.place = place;
    }

    /// Paths by which a model may be given, for what stands beside it.
    pub fn paths(&self) -> Vec<PathBuf> {
        let config = self.config.as_ref().and_then(|source| match source {
            Source::File(path) => Some(path.clone()),
            _ => None,
        });
        self.model.iter().map(PathBuf::from).chain(config).collect()
    }

    /// True if a model is given beside a launch.
    pub const fn names_model(&self) -> bool {
        self.model.is_some() || self.config.is_some()
    }

    /// Returns what tools make settings of; `launched` is the model's name in a launch, which counts if no other model is
    /// given.
    ///
    /// # Errors
    /// If the configuration cannot be read, or the model is not found: what of the files counts depends on it.
    pub fn facts(&self, launched: Option<&str>) -> Result<ModelFacts, Failure> {
        let model = match (&self.model, &self.config) {
            // One that cannot be simulated is refused when it is read, with what can be said of it.
            (None, Some(source)) => Model::from_config(self.config_text(source)?).ok(),
            (name, _) => match name.as_deref().or(launched) {
                Some(name) => Model::from_config(&self.find(name)?.config).ok(),
                None => None,
            },
        };
        Ok(model.map_or(ModelFacts::UNKNOWN, |model| ModelFacts::of(&model)))
    }

    /// The model in 16 bits of one that a launch names and whose weights are stored in few; `None` for others.
    pub fn in_16_bits(&self, name: &str) -> Option<&'static str> {
        self.names().in_16_bits(name, &self.place)
    }

    /// Facts of a model that is on the GPU beside the one that trains; `None` if it is not found.
    pub fn facts_beside(&self, name: &str) -> Option<ModelFacts> {
        let model = Model::from_config(&self.find(name).ok()?.config).ok()?;
        Some(ModelFacts::of(&model))
    }

    fn find(&self, name: &str) -> Result<Arc<Found>, Failure> {
        self.names().find(name, &self.place)
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

    /// Does as [`Self::read`] for another length of a run whose notes were written already.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_again(self, flags: &SetupFlags) -> Result<(Model, Setup), Failure> {
        self.model_and_setup(flags)
    }

    /// Returns a factory of models for setups, since in some families image sizes and frames belong to the model; and
    /// the setup with the flags applied.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn models(self, flags: &SetupFlags) -> Result<(Models, Setup), Failure> {
        let mut setup = Setup::default();
        let names = self.names();
        let of = match (self.model, self.config, self.case) {
            (Some(name), ..) => {
                let found = names.find(&name, &self.place)?;
                let case = named(&found);
                setup = case.setup.clone();
                Models::Found(Box::new(case), found)
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
                let (case, states_seq) = read_case(&text)?;
                let found = names.find(&case.model, &Place::default())?;
                let case = at_its_length(case, states_seq, &found);
                setup = case.setup.clone();
                Models::Found(Box::new(case), found)
            }
            _ => return Err(Failure::Input("name a model, or give --config or --case".into())),
        };
        flags.apply(&mut setup);
        if let Ok(model) = of.of(&setup) {
            train_adapters(&model, &mut setup, flags);
        }
        Ok((of, setup))
    }

    /// The case's memory limit in GiB, if it states one.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn limit_gib(&self) -> Result<Option<f64>, Failure> {
        let case = self.case.as_deref().map(read_case).transpose()?;
        Ok(case.and_then(|(case, _)| case.limit_gib))
    }

    /// The case's parallelism, if it names several GPUs.
    ///
    /// # Errors
    /// If the case cannot be read.
    pub fn parallel(&self) -> Result<Option<Parallel>, Failure> {
        let case = self.case.as_deref().map(read_case).transpose()?;
        let launched = self.launched.as_ref().map(|launched| &launched.case);
        Ok(case
            .as_ref()
            .map(|(case, _)| case)
            .or(launched)
            .and_then(|case| case.parallel))
    }

    fn model_and_setup(self, flags: &SetupFlags) -> Result<(Model, Setup), Failure> {
        if let (None, Some(source)) = (&self.model, &self.config) {
            let text = self.config_text(source)?;
            return from_config((source, text), self.launched.clone(), flags);
        }
        let names = self.names();
        match (self.model, self.launched, self.case) {
            (Some(model), launched, _) => {
                let found = names.find(&model, &self.place)?;
                let named = named(&found);
                let (setup, images) =
                    launched.map_or((named.setup, ImageRules::default()), |launched| launched.setup(flags));
                from_case(Case { setup, ..named }, &found, flags, images)
            }
            (.., Some(text)) => {
                let (case, states_seq) = read_case(&text)?;
                let found = names.find(&case.model, &Place::default())?;
                from_case(
                    at_its_length(case, states_seq, &found),
                    &found,
                    flags,
                    ImageRules::default(),
                )
            }
            (_, Some(launched), _) if launched.case.model.is_empty() => Err(Failure::Input(launched.no_model())),
            (_, Some(mut launched), _) => {
                launched.leave_images_to(flags);
                let found = names.find(&launched.case.model, &self.place)?;
                let case = at_its_length(launched.case, launched.has_length, &found);
                from_case(case, &found, flags, launched.images)
            }
            _ => Err(Failure::Input("name a model, or give --config or --case".into())),
        }
    }
}

/// Source from which models are made.
pub enum Models {
    /// A case without its setup, and what was found for its name.
    Found(Box<Case>, Arc<Found>),
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
            Self::Found(case, found) => {
                let case = Case {
                    setup: setup.clone(),
                    ..Case::clone(case)
                };
                model_of(found, &case)
            }
            Self::Config(text) => Model::from_config_for(text, setup),
        }
    }
}

/// A model that was found with the default setup, at its own default length.
fn named(found: &Found) -> Case {
    let case = Case {
        model: found.name.clone(),
        shape: Map::new(),
        setup: Setup::default(),
        limit_gib: None,
        parallel: None,
    };
    at_its_length(case, false, found)
}

/// Sets a case's length to its model's default, unless the case states one.
fn at_its_length(mut case: Case, states_seq: bool, found: &Found) -> Case {
    if let (false, Ok(model)) = (states_seq, Model::from_config(&found.config)) {
        case.setup.seq = model.default_seq();
    }
    case
}

/// Reads a case; also returns true if it states its length.
fn read_case(text: &str) -> Result<(Case, bool), Failure> {
    let case = Case::from_json(text).map_err(|e| Failure::Input(format!("--case: {e}")))?;
    let case = case.ok_or_else(|| {
        Failure::Input("--case: names no model; give an object such as {\"model\": \"gpt2\", \"batch\": 8}".into())
    })?;
    Ok((case, states_seq(text)))
}

/// Returns true if the JSON of a case states its length.
pub fn states_seq(text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.is_some_and(|value| value.get("case").unwrap_or(&value).get("seq").is_some())
}

fn from_case(mut case: Case, found: &Found, flags: &SetupFlags, images: ImageRules) -> Result<(Model, Setup), Failure> {
    flags.apply(&mut case.setup);
    images.apply(&mut case.setup);
    let model = model_of(found, &case).map_err(Failure::input)?;
    train_adapters(&model, &mut case.setup, flags);
    Ok((model, case.setup))
}

/// Takes adapters for weights that are stored in 4 bits, beside which nothing else trains, unless a flag says what trains.
fn train_adapters(model: &Model, setup: &mut Setup, flags: &SetupFlags) {
    let is_stored_in_4_bits = matches!(model.stored, Stored::Nf4(_));
    let is_open = matches!(setup.freeze, Freeze::NONE | Freeze::Lora) && !flags.entries().contains(&Entry::Freeze);
    if is_stored_in_4_bits && is_open {
        setup.freeze = Freeze::Qlora;
        anstream::eprintln!(
            "note: --freeze qlora: the weights of {} are stored in 4 bits",
            model.name
        );
    }
}

fn from_config(
    (source, text): (&Source, &str),
    launched: Option<Launched>,
    flags: &SetupFlags,
) -> Result<(Model, Setup), Failure> {
    let is_launched = launched.is_some();
    let (mut setup, images) = launched.map_or_else(Default::default, |launched| launched.setup(flags));
    flags.apply(&mut setup);
    images.apply(&mut setup);
    let model = Model::from_config_for(text, &setup).map_err(|e| Failure::Input(format!("{source}: {e}")))?;
    if !flags.names_seq() && !is_launched {
        setup.seq = model.default_seq();
    }
    Ok((model, setup))
}
