//! Errors of the database.

/// Error of the database; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The disk is full.
    #[error("the database is full: {0}")]
    Full(String),
    /// The database cannot be reached, is busy, or failed.
    #[error("the database does not answer: {0}")]
    Unavailable(String),
}

/// SQLite's SQLITE_FULL, and SQLITE_IOERR_WRITE, which a limit on the file size causes.
const SQLITE_FULL: [&str; 2] = ["13", "778"];
/// PostgreSQL's disk_full, in class 53, insufficient resources.
const POSTGRES_FULL: &str = "53100";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        match code.as_deref() {
            Some(code) if code == POSTGRES_FULL || SQLITE_FULL.contains(&code) => Self::Full(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
