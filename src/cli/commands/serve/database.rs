//! The flag that names a server's database.

use std::env;

use clap::Args;

use super::wait_for;
use crate::data_folder::data_folder;
use crate::failure::Failure;
use crate::server::store::{Database, Store, StoreError};

/// Where the records are kept.
#[derive(Debug, Clone, Args)]
pub struct Where {
    /// File of SQLite, or postgres://USER@HOST/NAME [default: results.db in the user's data folder]
    #[arg(long, value_name = "DATABASE")]
    database: Option<Database>,
}

impl Where {
    /// The database given by flag or environment, or the default file.
    ///
    /// # Errors
    /// If the environment names an unknown kind of database.
    pub fn get(&self) -> Result<Database, Failure> {
        if let Some(database) = &self.database {
            return Ok(database.clone());
        }
        match env::var("VRAMSCOPE_DATABASE") {
            Ok(text) => text
                .parse()
                .map_err(|error| Failure::Input(format!("VRAMSCOPE_DATABASE: {error}"))),
            Err(_) => Ok(Database::Sqlite(data_folder()?.join("results.db"))),
        }
    }

    /// Opens the database, runs `work`, and closes it.
    ///
    /// # Errors
    /// If the database cannot be opened, or `work` fails.
    pub fn with<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, StoreError>) -> Result<T, Failure> {
        let database = self.get()?;
        wait_for(async {
            let store = database.open().await.map_err(Failure::broken)?;
            let done = work(&store).await.map_err(Failure::broken);
            store.close().await;
            done
        })
    }
}
