//! Tokens in the database, stored only as hashes.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError, now_ms};

/// Role of a token; each includes the permissions of those before it.
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

/// Description of a token, which does not allow its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Name of its owner.
    pub name: String,
    /// Role that it grants.
    pub role: Role,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Store {
    /// Finds the token with this hash.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn token(&self, hash: &str) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query("SELECT name, role, created_ms FROM tokens WHERE hash = $1")
            .bind(hash.to_owned())
            .fetch_optional(&self.reading)
            .await?;
        row.as_ref().map(token).transpose()
    }

    /// Adds a token; returns false if the name is taken.
    ///
    /// # Errors
    /// If the database is full or does not respond.
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

    /// Removes a token; returns false if none has this name.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn remove_token(&self, name: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM tokens WHERE name = $1")
            .bind(name.to_owned())
            .execute(&self.writing)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Lists all tokens by name.
    ///
    /// # Errors
    /// If the database does not respond.
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
