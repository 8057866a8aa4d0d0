//! The resolver: files of this machine first, then names that are known, caches, and the network last.

mod caches;
mod client;
mod local;
mod settings;
mod store;

use std::path::{Path, PathBuf};

use serde_json::Value;
use vramscope_engine::python_json;

use self::client::Client;
pub use self::settings::Settings;
use self::store::{Store, Stored};
use crate::answer::host_of;
use crate::error::HubError;
use crate::found::{Found, Leads, Origin, adapters_base, of_config};
use crate::inquiry::{Inquiry, object};
use crate::known::{known, nearest_known};
use crate::lookup::{Lookup, MOST_BASES, settle};
use crate::remark::Remark;
use crate::repository::{Hub, Repository};

/// Where a name stands.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Folders that a path may be relative to, before the working folder.
    pub folders: Vec<PathBuf>,
    /// Hub that a bare id belongs to.
    pub hub: Hub,
    /// Files of the launch that names it.
    pub files: Vec<PathBuf>,
}

/// One entry of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedModel {
    /// Id, with `@REVISION` if one was asked.
    pub name: String,
    /// `model_type` of the configuration.
    pub model_type: String,
    /// Host that it was read from.
    pub host: String,
    /// Days since it was asked.
    pub age_days: u64,
}

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
        match Lookup::of(given, place.hub)? {
            Lookup::Known(found) => Ok(*found),
            Lookup::Ask { repository, alike } => {
                settle(given, self.of_repository(&repository, place, bases), alike.as_ref())
            }
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
        if let Some((base, remark)) = adapters_base(given, &config) {
            let place = Place {
                folders: folder.map(Path::to_owned).into_iter().collect(),
                ..Place::default()
            };
            return self.of_base(given, (&base, remark), &place, bases);
        }
        let mut found = of_config(given.to_owned(), &text, &config, Origin::File(path.to_owned()));
        found.parameters = folder.and_then(local::parameters);
        Ok(found)
    }

    /// The model that an adapter, or a repository of files for inference, was made from.
    fn of_base(
        &self,
        given: &str,
        (base, remark): (&str, Remark),
        place: &Place,
        bases: usize,
    ) -> Result<Found, HubError> {
        let bases = bases.checked_sub(1).ok_or_else(|| HubError::circle(given))?;
        let mut found = self.find_within(base, place, bases)?;
        found.remarks.insert(0, remark);
        Ok(found)
    }

    /// A repository: caches, then the network.
    fn of_repository(&self, of: &Repository, place: &Place, bases: usize) -> Result<Found, HubError> {
        if let Some(folder) = self.kept(of) {
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
        match stored.description.leads(of, origin)? {
            Leads::Model(found) => Ok(*found),
            Leads::Base { base, remark } => self.of_base(&of.id, (&base, remark), place, bases),
        }
    }

    /// Folder in which a library keeps the files of a repository that it has fetched.
    pub fn kept(&self, of: &Repository) -> Option<PathBuf> {
        let caches = match of.hub {
            Hub::HuggingFace => [self.of_hugging_face_cache(of), self.of_modelscope_cache(of)],
            Hub::ModelScope => [self.of_modelscope_cache(of), self.of_hugging_face_cache(of)],
        };
        caches.into_iter().flatten().next()
    }

    fn of_hugging_face_cache(&self, of: &Repository) -> Option<PathBuf> {
        caches::of_hugging_face(self.settings.hugging_face_cache.as_deref()?, of)
    }

    fn of_modelscope_cache(&self, of: &Repository) -> Option<PathBuf> {
        caches::of_modelscope(self.settings.modelscope_cache.as_deref()?, of)
    }

    /// What the hub says of a repository, from this crate's cache while it is fresh or there is no network.
    fn stored(&self, of: &Repository) -> Result<(Stored, Origin), HubError> {
        let host = host_of(self.settings.endpoint(of.hub));
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
        let fetched = match self.fetch(&client, of, stored.as_ref()) {
            Ok(fetched) => fetched,
            // An answer that is a day old is better than none, unless the hub says that there is none any more.
            Err(HubError::NoAnswer { .. } | HubError::TooMany { .. }) if stored.is_some() => {
                return Ok((stored.unwrap_or_else(|| unreachable!("it is there")), Origin::Cache));
            }
            Err(error) => return Err(error),
        };
        // A cache that cannot be written costs a question the next time, and nothing else.
        if let Some(store) = store.as_ref().filter(|_| fetched.description.is_of_use()) {
            let _ = store.write(of, &fetched);
        }
        Ok((fetched, Origin::Network(host)))
    }

    fn fetch(&self, client: &Client<'_>, of: &Repository, stored: Option<&Stored>) -> Result<Stored, HubError> {
        let kept = stored.map(|stored| stored.description.clone());
        let mut inquiry = Inquiry::begin(of, self.settings.endpoint(of.hub), kept);
        while let Some(question) = inquiry.question() {
            inquiry.hear(client.ask(of.hub, &question))?;
        }
        Ok(Stored::new(inquiry.end()))
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
            if stored.description.id == wanted || of_stored(&stored).name == wanted {
                std::fs::remove_file(path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// An entry of the cache for people.
fn of_stored(stored: &Stored) -> CachedModel {
    let of = &stored.description;
    let config = object(&of.text);
    let model_type = config.get("model_type").and_then(Value::as_str);
    let name = match &of.revision {
        Some(revision) => format!("{}@{revision}", of.id),
        None => of.id.clone(),
    };
    CachedModel {
        name,
        model_type: model_type.unwrap_or_default().to_owned(),
        host: of.host.clone(),
        age_days: stored.age_days(),
    }
}
