//! Follows a name to its model: what is built in, what has its shape, what was kept, and the hub if it may be asked.

use vramscope_engine::Model;
use vramscope_hub::{
    Found, Hub, HubError, Known, Leads, Lookup, MOST_BASES, Origin, Remark, Repository, known, not_simulated, settle,
};

use super::ask::{ask, kept};
use crate::models::Models;
use crate::state::Source;

/// Result of looking a name up.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// To a model, with what a person has to know of it.
    Found(Box<Found>),
    /// To a repository whose files are not here.
    Ask {
        /// The repository.
        repository: Repository,
        /// Name of a known model that is alike.
        alike: Option<&'static str>,
    },
    /// To none; the repository, if one was asked.
    None(HubError, Option<Repository>),
}

/// Follows a name; `endpoint` is the hub that may be asked.
pub async fn find(given: &str, models: Models, endpoint: Option<&str>) -> Outcome {
    let mut name = given.to_owned();
    let mut remarks = Vec::new();
    for _ in 0..=MOST_BASES {
        if let Some(known) = known(&name) {
            models.load(&Source::Catalogue(known.name.to_owned())).await;
        }
        let (repository, alike) = match Lookup::of(&name, Hub::HuggingFace) {
            Ok(Lookup::Known(found)) => return finished(*found, remarks, models).await,
            Ok(Lookup::Ask { repository, alike }) => (of_page(repository), alike),
            Err(error) => return Outcome::None(error, None),
        };
        let leads = match (kept(&repository), endpoint) {
            (Some((description, origin)), _) => description.leads(&repository, origin),
            (None, Some(endpoint)) => match ask(&repository, endpoint).await {
                Ok(description) => {
                    let origin = Origin::Network(description.host.clone());
                    description.leads(&repository, origin)
                }
                Err(error) => Err(error),
            },
            (None, None) => {
                // A request would not help: no configuration makes this model simulated.
                if let Some(why) = not_simulated(&name) {
                    return Outcome::None(why, Some(repository));
                }
                return Outcome::Ask {
                    repository,
                    alike: alike.map(|known| known.name),
                };
            }
        };
        match led(&name, leads, alike.as_ref()) {
            Ok(Leads::Base { base, remark }) => {
                remarks.push(remark);
                name = base;
            }
            Ok(Leads::Model(found)) => return finished(*found, remarks, models).await,
            Err(error) => return Outcome::None(error, Some(repository)),
        }
    }
    Outcome::None(HubError::circle(given), None)
}

/// The page's policy lets it ask one hub.
fn of_page(repository: Repository) -> Repository {
    Repository {
        hub: Hub::HuggingFace,
        ..repository
    }
}

fn led(name: &str, leads: Result<Leads, HubError>, alike: Option<&Known>) -> Result<Leads, HubError> {
    match leads {
        Ok(leads) => Ok(leads),
        Err(error) => settle(name, Err(error), alike).map(|found| Leads::Model(Box::new(found))),
    }
}

/// Adds what the engine makes of the configuration.
async fn finished(mut found: Found, mut remarks: Vec<Remark>, models: Models) -> Outcome {
    let source = Source::Config(found.config.clone());
    models.load(&source).await;
    let mut model = Model::from_config(&found.config).ok();
    if let Some(read) = &model {
        models.load_group(read.lazy_group()).await;
    }
    // One whose catalogue has it unchanged is not compared.
    model = model.filter(|_| found.parameters.is_some() || found.own_code.is_some());
    remarks.extend(found.remarks_on(model.as_ref()));
    found.remarks = remarks;
    Outcome::Found(Box::new(found))
}
