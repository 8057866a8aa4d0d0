//! Tokens in the database: by their hash alone.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError, now_ms};

/// What a token allows; each allows what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Role {
    /// Read records
    Read,
    /// Read and send records
    Write,
    /// And look through the quarantine
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(text, false)
    }
}

/// A token, without what would let anybody use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Who it was made for.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Store {
    /// The token with this hash.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn token(&self, hash: &str) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query("SELECT name, role, created_ms FROM tokens WHERE hash = $1")
            .bind(hash.to_owned())
            .fetch_optional(&self.reading)
            .await?;
        row.as_ref().map(token).transpose()
    }

    /// Adds a token; `false` where the name is taken.
    ///
    /// # Errors
    /// When the database is full or does not answer.
    pub async fn add_token(&self, name: &str, role: Role, hash: &str) -> Result<bool, StoreError> {
        let statement = "INSERT INTO tokens (hash, name, role, created_ms) VALUES ($1, $2, $3, $4) \
                         ON CONFLICT (name) DO NOTHING";
        let done = sqlx::query(statement)
            .bind(hash.to_owned())
            .bind(name.to_owned())
            .bind(role.to_string())
            .bind(now_ms())
            .execute(&self.writing)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Takes a token away; `false` where none has this name.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM tokens WHERE name = $1")
            .bind(name.to_owned())
            .execute(&self.writing)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// All tokens by name.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let rows = sqlx::query("SELECT name, role, created_ms FROM tokens ORDER BY name")
            .fetch_all(&self.reading)
            .await?;
        rows.iter().map(token).collect()
    }
}

fn token(row: &AnyRow) -> Result<Token, StoreError> {
    let role: String = row.try_get(1)?;
    Ok(Token {
        name: row.try_get(0)?,
        role: role.parse().map_err(StoreError::Unavailable)?,
        created_ms: row.try_get(2)?,
    })
}
