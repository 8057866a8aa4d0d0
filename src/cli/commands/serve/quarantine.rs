//! `vramscope serve quarantine`: lists and releases doubtful records.

use clap::Subcommand;
use serde::Deserialize;

use super::Where;
use crate::failure::Failure;
use crate::output;
use crate::output::list::{self, Edge};
use crate::server::store::{Doubted, Filter};

/// Records with values that their card cannot reach
#[derive(Debug, Subcommand)]
pub enum Quarantine {
    /// List them with the reasons
    List {
        #[command(flatten)]
        database: Where,
    },
    /// Let one out, to be listed with all others
    Release {
        /// The record's id
        id: String,
        #[command(flatten)]
        database: Where,
    },
}

/// The fields of a record that are shown.
#[derive(Deserialize)]
struct Shown {
    id: String,
    device: String,
}

/// Number of records shown at a time.
const LIMIT: i64 = 1000;

impl Quarantine {
    /// Runs the command.
    ///
    /// # Errors
    /// If the database cannot be used, or no record in quarantine has the ID.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { database } => show(&database),
            Self::Release { id, database } => {
                if database.with(async |store| store.release(&id).await)? {
                    return Ok(());
                }
                Err(Failure::Input(format!(
                    "no record in quarantine has the id {id}; `vramscope serve quarantine list` lists them"
                )))
            }
        }
    }
}

fn show(database: &Where) -> Result<(), Failure> {
    let filter = Filter {
        limit: LIMIT,
        ..Filter::default()
    };
    let doubted = database.with(async |store| store.quarantined(&filter).await)?;
    let rows = doubted.into_iter().map(cells).collect::<Result<Vec<_>, _>>()?;
    let heads = [("id", Edge::Left), ("card", Edge::Left), ("reason", Edge::Left)];
    output::print(&list::render(heads, &rows))
}

fn cells(doubted: Doubted) -> Result<[String; 3], Failure> {
    let shown: Shown = serde_json::from_str(doubted.record.get()).map_err(Failure::broken)?;
    Ok([shown.id, shown.device, doubted.reason])
}
