//! All that a database keeps, for backups; and what is kept no longer.

use serde::{Deserialize, Serialize};
use sqlx::Row;

use super::records::insert;
use super::{NewRecord, Store, StoreError, now_ms};

/// A record as the database keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRecord {
    /// Sequence number in this database.
    pub seq: i64,
    /// Time of receipt, in milliseconds since 1970.
    pub received_ms: i64,
    /// Reason for quarantine, if the record is in it.
    pub quarantine: Option<String>,
    /// The record as JSON.
    pub text: String,
}

/// A token as the database keeps it: its hash, which allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptToken {
    /// SHA-256 of the token.
    pub hash: String,
    /// Name of its owner.
    pub name: String,
    /// Role that it grants.
    pub role: String,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Store {
    /// Reads at most `limit` records behind a sequence number, oldest first.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn kept_after(&self, seq: i64, limit: i64) -> Result<Vec<KeptRecord>, StoreError> {
        const KEPT: &str = "SELECT r.seq, r.received_ms, r.quarantine, t.text FROM records r \
                            JOIN texts t ON t.seq = r.seq WHERE r.seq > $1 ORDER BY r.seq LIMIT $2";
        let rows = sqlx::query(KEPT).bind(seq).bind(limit).fetch_all(&self.reading).await?;
        let kept = |row: &sqlx::any::AnyRow| {
            Ok(KeptRecord {
                seq: row.try_get(0)?,
                received_ms: row.try_get(1)?,
                quarantine: row.try_get(2)?,
                text: row.try_get(3)?,
            })
        };
        rows.iter().map(kept).collect()
    }

    /// Reads all tokens, by name.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn kept_tokens(&self) -> Result<Vec<KeptToken>, StoreError> {
        let rows = sqlx::query("SELECT hash, name, role, created_ms FROM tokens ORDER BY name")
            .fetch_all(&self.reading)
            .await?;
        let kept = |row: &sqlx::any::AnyRow| {
            Ok(KeptToken {
                hash: row.try_get(0)?,
                name: row.try_get(1)?,
                role: row.try_get(2)?,
                created_ms: row.try_get(3)?,
            })
        };
        rows.iter().map(kept).collect()
    }

    /// Stores records with the times at which they were received, or on an error none; returns how many were new.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn restore(&self, records: &[(NewRecord, i64)]) -> Result<u64, StoreError> {
        let mut transaction = self.writing.begin().await?;
        let mut new = 0;
        for (record, received_ms) in records {
            new += u64::from(insert(&mut transaction, record, *received_ms).await?.new);
        }
        transaction.commit().await?;
        Ok(new)
    }

    /// Adds a token by its hash; returns false if its name has one.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn restore_token(&self, token: &KeptToken) -> Result<bool, StoreError> {
        let statement =
            "INSERT INTO tokens (hash, name, role, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let done = sqlx::query(statement)
            .bind(token.hash.clone())
            .bind(token.name.clone())
            .bind(token.role.clone())
            .bind(token.created_ms)
            .execute(&self.writing)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Removes the records that were received before a time, or on an error none; returns how many.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn prune(&self, before_ms: i64) -> Result<u64, StoreError> {
        let mut transaction = self.writing.begin().await?;
        // Texts refer to records, so they go first.
        sqlx::query("DELETE FROM texts WHERE seq IN (SELECT seq FROM records WHERE received_ms < $1)")
            .bind(before_ms)
            .execute(&mut *transaction)
            .await?;
        let done = sqlx::query("DELETE FROM records WHERE received_ms < $1")
            .bind(before_ms)
            .execute(&mut *transaction)
            .await?;
        let removed = done.rows_affected();
        if removed > 0 {
            // A server that runs beside this one learns of it by the version of its lists.
            sqlx::query("INSERT INTO prunes (at_ms, removed) VALUES ($1, $2)")
                .bind(now_ms())
                .bind(i64::try_from(removed).unwrap_or(i64::MAX))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(removed)
    }

    /// Removes the records that were received more than so many days ago; returns how many.
    ///
    /// # Errors
    /// Those of [`Self::prune`].
    pub async fn prune_older_than(&self, days: u32) -> Result<u64, StoreError> {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        self.prune(now_ms() - i64::from(days) * DAY_MS).await
    }
}
