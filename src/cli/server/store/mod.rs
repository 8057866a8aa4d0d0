//! Records and tokens in a database: SQLite in a file, or PostgreSQL.
//!
//! What the two have in common is sqlx's trait, [`sqlx::Database`], through its driver [`sqlx::Any`]: one [`Store`]
//! with one text of each statement serves both, and the tests run on both. A trait of our own over a store for
//! each would hold every statement twice, which could then differ. Only the tables are made differently
//! (`migrations`), and how a database is opened (`database`).

mod database;
mod error;
mod migrations;
mod records;
mod tokens;

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::AnyPool;

pub use database::Database;
pub use error::StoreError;
pub use records::{Counts, Doubted, Filter, Found, Inserted, List, NewRecord, Version};
pub use tokens::Role;

/// The database, open.
#[derive(Debug, Clone)]
pub struct Store {
    /// One connection for SQLite, which has one writer at a time: others wait here rather than there.
    writing: AnyPool,
    reading: AnyPool,
}

impl Store {
    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").fetch_one(&self.reading).await?;
        Ok(())
    }

    /// Closes every connection; SQLite then moves its log into its file.
    pub async fn close(&self) {
        self.reading.close().await;
        self.writing.close().await;
    }
}

/// Milliseconds since 1970 in UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
