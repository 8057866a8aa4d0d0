//! The resolver: files of this machine first, then names that are known, caches, and the network last.

mod caches;
mod client;
mod error;
mod fetch;
mod found;
mod local;
mod settings;
mod store;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use vramscope_engine::python_json;

use self::client::{Client, host_of};
pub use self::error::HubError;
use self::fetch::fetch;
pub use self::found::{CachedModel, Found, Origin, Place};
use self::found::{of_config, of_known, of_stored};
pub use self::settings::Settings;
use self::store::{Store, Stored};
use crate::aliases;
use crate::known::{known, nearest, nearest_known};
use crate::not_simulated::not_simulated;
use crate::repository::{Hub, Repository};
use crate::weights::Weights;

/// Most models between an adapter or a file for inference and the model that it was made from.
const MOST_BASES: usize = 4;

/// Finds models.
#[derive(Debug, Clone)]
pub struct Resolver {
    settings: Settings,
}

impl Resolver {
    /// A resolver with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Finds a model by a path, a name, an id or an address.
    ///
    /// # Errors
    /// See [`HubError`]; each says what to do.
    pub fn find(&self, given: &str, place: &Place) -> Result<Found, HubError> {
        self.find_within(given.trim(), place, MOST_BASES)
    }

    fn find_within(&self, given: &str, place: &Place, bases: usize) -> Result<Found, HubError> {
        if let Some(found) = self.local(given, place, bases)? {
            return Ok(found);
        }
        let known = known(given);
        if let Some(certain) = known.as_ref().filter(|known| known.is_certain) {
            return of_known(certain);
        }
        let aliased = aliases::find(given).map_or(given, |(_, id)| id);
        let Some(mut repository) = Repository::parse(aliased) else {
            return match known {
                Some(known) => of_known(&known),
                None => Err(match not_simulated(given) {
                    Some(why) => HubError::Refused(why),
                    None => HubError::Unknown {
                        given: given.chars().take(60).collect(),
                        near: nearest(given),
                    },
                }),
            };
        };
        if place.hub == Hub::ModelScope && !given.contains("://") {
            repository.hub = Hub::ModelScope;
        }
        match (self.of_repository(&repository, place, bases), known) {
            (Ok(found), _) => Ok(found),
            // What is alike by its name is better than no answer, but no answer to a wrong name.
            (Err(error), Some(known)) if !is_about_the_name(&error) => {
                let mut found = of_known(&known)?;
                found
                    .remarks
                    .push(format!("not compared with its own config.json: {error}"));
                Ok(found)
            }
            (Err(error), _) if !is_about_the_name(&error) => Err(match not_simulated(given) {
                Some(why) => HubError::Refused(why),
                None => error,
            }),
            (Err(error), _) => Err(error),
        }
    }

    /// A folder or a file of this machine.
    fn local(&self, given: &str, place: &Place, bases: usize) -> Result<Option<Found>, HubError> {
        // The catalogue's names prevail over folders of the same name, unless the path is written as one.
        let is_path = given.starts_with(['.', '/', '~', '\\']) || given.contains(std::path::MAIN_SEPARATOR);
        if !is_path && vramscope_engine::Model::catalogue_config(given).is_ok() {
            return Ok(None);
        }
        let home = etcetera::home_dir().ok();
        let Some(path) = local::existing(given, &place.folders, home.as_deref()) else {
            return Ok(None);
        };
        let of_file = |path: &Path, folder: Option<&Path>| self.of_file(given, path, folder, bases).map(Some);
        if path.is_file() {
            let is_config = path.extension().is_some_and(|end| end == "json");
            return match is_config {
                true => of_file(&path, path.parent()),
                false => Err(HubError::Local {
                    path: path.display().to_string(),
                    why: "it is no config.json; name the model's folder, its config.json, or its id".into(),
                }),
            };
        }
        let file = ["config.json", "adapter_config.json"]
            .into_iter()
            .map(|name| path.join(name))
            .find(|path| path.is_file());
        match file {
            Some(file) => of_file(&file, Some(&path)),
            // A folder that is known by its name, or an id that is also a folder's.
            None if known(given).is_some() || Repository::parse(given).is_some() => Ok(None),
            None => Err(HubError::Local {
                path: path.display().to_string(),
                why: "the folder has no config.json and no adapter_config.json; name the one that holds the model"
                    .into(),
            }),
        }
    }

    fn of_file(&self, given: &str, path: &Path, folder: Option<&Path>, bases: usize) -> Result<Found, HubError> {
        let text = local::read(path)?;
        let config = python_json::read(&text).ok();
        let Some(Value::Object(config)) = config else {
            return Err(HubError::Local {
                path: path.display().to_string(),
                why: "it is no JSON object, so no config.json".into(),
            });
        };
        if let Some(base) = adapters_base(&config) {
            let place = Place {
                folders: folder.map(Path::to_owned).into_iter().collect(),
                ..Place::default()
            };
            return self.of_base(given, base, &config, &place, bases);
        }
        let mut found = of_config(given.to_owned(), &text, &config, Origin::File(path.to_owned()));
        found.parameters = folder.and_then(local::parameters);
        Ok(found)
    }

    /// The model that an adapter is for.
    fn of_base(
        &self,
        given: &str,
        base: &str,
        adapter: &Map<String, Value>,
        place: &Place,
        bases: usize,
    ) -> Result<Found, HubError> {
        let bases = bases.checked_sub(1).ok_or_else(|| circle(given))?;
        let mut found = self.find_within(base, place, bases)?;
        let rank = adapter.get("r").and_then(Value::as_u64);
        let of_rank = rank.map_or(String::new(), |rank| format!(", --rank {rank}"));
        found.remarks.insert(
            0,
            format!(
                "{given} is an adapter of {base}: its base is simulated; to train it further, --freeze lora{of_rank}"
            ),
        );
        Ok(found)
    }

    /// A repository: caches, then the network.
    fn of_repository(&self, of: &Repository, place: &Place, bases: usize) -> Result<Found, HubError> {
        let caches = match of.hub {
            Hub::HuggingFace => [self.of_hugging_face_cache(of), self.of_modelscope_cache(of)],
            Hub::ModelScope => [self.of_modelscope_cache(of), self.of_hugging_face_cache(of)],
        };
        if let Some(folder) = caches.into_iter().flatten().next() {
            let file = folder.join("config.json");
            let file = if file.is_file() {
                file
            } else {
                folder.join("adapter_config.json")
            };
            let mut found = self.of_file(&of.id, &file, Some(&folder), bases)?;
            if found.origin == Origin::File(file.clone()) {
                found.origin = Origin::OtherCache(file);
            }
            return Ok(found);
        }
        let (stored, origin) = self.stored(of)?;
        let config = object(&stored.text);
        if let Some(base) = adapters_base(&config) {
            return self.of_base(&of.id, base, &config, place, bases);
        }
        if stored.file != "config.json" {
            // A repository of files for inference: its base trains.
            let base = stored.info.base_models.first();
            let base = base.filter(|base| **base != of.id).ok_or_else(|| HubError::NoConfig {
                repository: of.clone().into(),
            })?;
            let bases = bases.checked_sub(1).ok_or_else(|| circle(&of.id))?;
            let mut found = self.find_within(base, place, bases)?;
            let meaning = Weights::split(of.owner(), of.name()).1.meaning();
            let meaning = meaning.unwrap_or("its base is what trains");
            found
                .remarks
                .insert(0, format!("{} was made from {base}; {meaning}", of.id));
            return Ok(found);
        }
        let mut found = of_config(of.to_string(), &stored.text, &config, origin);
        found.parameters = stored.info.plain_parameters();
        if let Some(pixels) = stored.max_pixels {
            found.remarks.push(format!(
                "its processor makes images of at most {pixels} pixels, unless the run says otherwise"
            ));
        }
        Ok(found)
    }

    fn of_hugging_face_cache(&self, of: &Repository) -> Option<PathBuf> {
        caches::of_hugging_face(self.settings.hugging_face_cache.as_deref()?, of)
    }

    fn of_modelscope_cache(&self, of: &Repository) -> Option<PathBuf> {
        caches::of_modelscope(self.settings.modelscope_cache.as_deref()?, of)
    }

    /// What the hub says of a repository, from this crate's cache while it is fresh or there is no network.
    fn stored(&self, of: &Repository) -> Result<(Stored, Origin), HubError> {
        let host = host_of(&self.settings, of.hub);
        let store = self.settings.cache.as_deref().map(Store::new);
        let stored = store.as_ref().and_then(|store| store.read(of, &host));
        if let Some(stored) = stored
            .as_ref()
            .filter(|stored| self.settings.is_offline || stored.is_fresh())
        {
            return Ok((stored.clone(), Origin::Cache));
        }
        if self.settings.is_offline {
            return Err(HubError::Offline {
                repository: of.clone().into(),
                near: nearest_known(&of.id),
            });
        }
        // Reading the system's certificates takes longer than all that is done for a model from the cache.
        let client = Client::new(&self.settings);
        let fetched = match fetch(&client, of, stored.as_ref()) {
            Ok(fetched) => fetched,
            // An answer that is a day old is better than none, unless the hub says that there is none any more.
            Err(HubError::NoAnswer { .. } | HubError::TooMany { .. }) if stored.is_some() => {
                return Ok((stored.unwrap_or_else(|| unreachable!("it is there")), Origin::Cache));
            }
            Err(error) => return Err(error),
        };
        // A cache that cannot be written costs a question the next time, and nothing else.
        let is_of_use = !fetched.file.is_empty() || !fetched.info.base_models.is_empty();
        if let Some(store) = store.as_ref().filter(|_| is_of_use) {
            let _ = store.write(of, &fetched);
        }
        Ok((fetched, Origin::Network(host)))
    }

    /// Writes a model's `config.json` into a folder of its own beside the cache; `None` if this system has no cache.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn folder(&self, found: &Found) -> std::io::Result<Option<PathBuf>> {
        let Some(cache) = self.settings.cache.as_deref() else {
            return Ok(None);
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let name: String = found.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let folder = cache.join("folders").join(name.trim_matches('.'));
        store::write_whole(&folder, "config.json", found.config.as_bytes())?;
        Ok(Some(folder))
    }

    /// Every model of the cache.
    pub fn cached(&self) -> Vec<CachedModel> {
        let all = self.settings.cache.as_deref().map(|folder| Store::new(folder).all());
        all.into_iter()
            .flatten()
            .map(|(_, stored)| of_stored(&stored))
            .collect()
    }

    /// Removes a model from the cache, in every revision; returns how many entries it had.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget(&self, id: &str) -> std::io::Result<usize> {
        let wanted = Repository::parse(id).map_or_else(|| id.to_owned(), |of| of.to_string());
        let all = self.settings.cache.as_deref().map(|folder| Store::new(folder).all());
        let mut removed = 0;
        for (path, stored) in all.into_iter().flatten() {
            if stored.id == wanted || of_stored(&stored).name == wanted {
                std::fs::remove_file(path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Model that an `adapter_config.json` is for.
fn adapters_base(config: &Map<String, Value>) -> Option<&str> {
    config.get("peft_type")?;
    config.get("base_model_name_or_path")?.as_str()
}

fn circle(given: &str) -> HubError {
    match Repository::parse(given) {
        Some(repository) => HubError::Circle {
            repository: repository.into(),
        },
        None => HubError::Local {
            path: given.to_owned(),
            why: "it was made from models that name each other".into(),
        },
    }
}

/// Returns true if the hub says that there is no such model: one of a similar name is not it.
fn is_about_the_name(error: &HubError) -> bool {
    matches!(error, HubError::NoRepository { .. } | HubError::NoRevision { .. })
}

/// Reads an object; an empty one of what is none.
fn object(text: &str) -> Map<String, Value> {
    match python_json::read(text) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
