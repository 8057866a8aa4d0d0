//! Stores records and tokens in a database: SQLite in a file, or PostgreSQL.
//!
//! Both are accessed through sqlx's driver [`sqlx::Any`]: a single [`Store`] with one text per statement serves both,
//! and the tests run on both. A trait of our own with one implementation for each would duplicate every statement, and
//! the copies could diverge. Only the creation of tables (`migrations`) and the opening of a database (`database`)
//! differ.

mod database;
mod error;
mod kept;
mod migrations;
mod records;
mod tokens;

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::AnyPool;

pub use database::Database;
pub use error::StoreError;
pub use kept::KeptToken;
pub use records::{Counts, Doubted, Filter, Found, Inserted, List, NewRecord, Version};
pub use tokens::Role;

/// An open database.
#[derive(Debug, Clone)]
pub struct Store {
    /// Pool for writing. It has one connection for SQLite, which allows one writer at a time, so that others wait here
    /// rather than in SQLite.
    writing: AnyPool,
    reading: AnyPool,
}

impl Store {
    /// Checks that the database responds.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").fetch_one(&self.reading).await?;
        Ok(())
    }

    /// Closes every connection; SQLite then moves its log into the main file.
    pub async fn close(&self) {
        self.reading.close().await;
        self.writing.close().await;
    }
}

/// Milliseconds since 1970-01-01 UTC.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
