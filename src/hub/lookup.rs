//! What a name leads to before a hub is asked, and what the hub's answer is worth beside it.

use super::aliases;
use super::error::HubError;
use super::found::{Found, of_known};
use super::known::{Known, known, nearest};
use super::not_simulated::not_simulated;
use super::remark::Remark;
use super::repository::{Hub, Repository};

/// Most models between an adapter or a file for inference and the model that it was made from.
pub const MOST_BASES: usize = 4;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// A model that is known.
    Known(Box<Found>),
    /// A repository, whose own files are to be read.
    Ask {
        /// The repository.
        repository: Repository,
        /// A known model that is alike by its name.
        alike: Option<Known>,
    },
}

impl Lookup {
    /// Looks a name up; `hub` is where a bare id is meant to be.
    ///
    /// # Errors
    /// If nothing is known of it and it is no id, or it is known and cannot be simulated.
    pub fn of(given: &str, hub: Hub) -> Result<Self, HubError> {
        let given = given.trim();
        let known = known(given);
        let known = match known {
            Some(certain) if certain.is_certain => return of_known(&certain).map(Self::known),
            known => known,
        };
        let aliased = aliases::find(given).map_or(given, |(_, id)| id);
        let Some(mut repository) = Repository::parse(aliased) else {
            return match known {
                Some(known) => of_known(&known).map(Self::known),
                None => Err(not_simulated(given).unwrap_or_else(|| HubError::Unknown {
                    given: given.chars().take(60).collect(),
                    near: nearest(given),
                })),
            };
        };
        if hub == Hub::ModelScope && !given.contains("://") {
            repository.hub = Hub::ModelScope;
        }
        Ok(Self::Ask {
            repository,
            alike: known,
        })
    }

    fn known(found: Found) -> Self {
        Self::Known(Box::new(found))
    }
}

/// The model of a name whose repository was asked: what is alike by its name is better than no answer, but no answer to a
/// wrong name.
///
/// # Errors
/// If there is none.
pub fn settle(given: &str, asked: Result<Found, HubError>, alike: Option<&Known>) -> Result<Found, HubError> {
    match (asked, alike) {
        (Ok(found), _) => Ok(found),
        (Err(error), _) if error.is_about_the_name() => Err(error),
        (Err(error), Some(known)) => {
            let mut found = of_known(known)?;
            found.remarks.push(Remark::NotCompared(Box::new(error)));
            Ok(found)
        }
        (Err(error), None) => Err(not_simulated(given).unwrap_or(error)),
    }
}
