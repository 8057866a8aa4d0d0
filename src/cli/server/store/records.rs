//! Records in the database.

use serde::Serialize;
use serde_json::value::RawValue;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, Row};

use super::{Store, StoreError, now_ms};
use crate::records::Checked;

/// A record to store.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// ID of the record; see [`Checked::id`].
    pub id: String,
    /// Text of the record; see [`Checked::text`].
    pub text: String,
    /// Reason for quarantine, which keeps the record out of lists until it is released.
    pub quarantine: Option<String>,
    entry: String,
    device_key: String,
    backend: String,
    complete: bool,
}

impl NewRecord {
    /// Prepares a record for storage, with a reason for quarantine if it is doubtful.
    pub fn of(checked: Checked, quarantine: Option<String>) -> Self {
        Self {
            // Strings, numbers and flags always serialize.
            entry: serde_json::to_string(&checked.entry()).unwrap_or_default(),
            device_key: device_key(&checked.record.device.name),
            backend: checked.record.device.backend,
            complete: checked.record.run.complete,
            id: checked.id,
            text: checked.text,
            quarantine,
        }
    }
}

/// Normalises a device name, since names compare without case.
fn device_key(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Result of storing a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserted {
    /// True if the record was not in the database before.
    pub new: bool,
    /// Reason for quarantine, if the record is in it.
    pub quarantine: Option<String>,
}

/// Filter of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Name of the card according to its driver, in any case.
    pub device: Option<String>,
    /// Backend that ran the kernels.
    pub backend: Option<String>,
    /// True for complete records only, false for incomplete ones only.
    pub complete: Option<bool>,
    /// Sequence number below which to list: the `next` of the previous list.
    pub before: Option<i64>,
    /// Largest number of records.
    pub limit: i64,
}

/// Records of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Number of records.
    pub count: i64,
    /// Sequence number of the last record.
    pub last: Option<i64>,
    /// JSON of an [`Entry`](vramscope_benchmark::Entry) for each record, separated by commas.
    pub entries: String,
}

/// A record in quarantine.
#[derive(Debug, Clone, Serialize)]
pub struct Doubted {
    /// Sequence number: lists are in descending order.
    #[serde(skip)]
    pub seq: i64,
    /// JSON of an [`Entry`](vramscope_benchmark::Entry).
    pub record: Box<RawValue>,
    /// Time of receipt, in milliseconds since 1970.
    pub received_ms: i64,
    /// Reason for quarantine.
    pub reason: String,
}

/// A record found by its ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The record as JSON.
    pub text: String,
    /// Reason for quarantine, if the record is in it.
    pub quarantine: Option<String>,
}

/// Version of all lists, which changes whenever one of them does: each new record has a higher sequence number, a released
/// one reduces the count in quarantine, and each time that old ones are removed is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    last: Option<i64>,
    quarantined: i64,
    prunes: i64,
}

/// Numbers of records in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Number of all records.
    pub records: i64,
    /// Number of records in quarantine.
    pub quarantined: i64,
}

const INSERT: &str = "INSERT INTO records (id, received_ms, device_key, backend, complete, entry, quarantine) \
                      VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING seq";
/// Returns one row whatever the length; separate rows would cost more than their contents.
const LIST: &str = "SELECT COUNT(*), MIN(seq), string_agg(entry, ',' ORDER BY seq DESC) FROM ( \
                    SELECT seq, entry FROM records WHERE quarantine IS NULL AND seq < $1 \
                    AND (CAST($2 AS TEXT) IS NULL OR device_key = $2) \
                    AND (CAST($3 AS TEXT) IS NULL OR backend = $3) \
                    AND (CAST($4 AS BIGINT) IS NULL OR complete = $4) \
                    ORDER BY seq DESC LIMIT $5) AS listed";
const QUARANTINED: &str = "SELECT seq, received_ms, entry, quarantine FROM records \
                           WHERE quarantine IS NOT NULL AND seq < $1 \
                           AND (CAST($2 AS TEXT) IS NULL OR device_key = $2) \
                           AND (CAST($3 AS TEXT) IS NULL OR backend = $3) \
                           AND (CAST($4 AS BIGINT) IS NULL OR complete = $4) \
                           ORDER BY seq DESC LIMIT $5";

impl Store {
    /// Stores all records or, on an error, none. When it returns they are on disk. Records that already exist are left
    /// unchanged.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn insert(&self, records: &[NewRecord]) -> Result<Vec<Inserted>, StoreError> {
        let mut transaction = self.writing.begin().await?;
        let now = now_ms();
        let mut inserted = Vec::with_capacity(records.len());
        for record in records {
            inserted.push(insert(&mut transaction, record, now).await?);
        }
        transaction.commit().await?;
        Ok(inserted)
    }

    /// Lists records that are not in quarantine, newest first.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn list(&self, filter: &Filter) -> Result<List, StoreError> {
        let row = asked(LIST, filter).fetch_one(&self.reading).await?;
        Ok(List {
            count: row.try_get(0)?,
            last: row.try_get(1)?,
            entries: row.try_get::<Option<String>, _>(2)?.unwrap_or_default(),
        })
    }

    /// Lists records in quarantine, newest first.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn quarantined(&self, filter: &Filter) -> Result<Vec<Doubted>, StoreError> {
        let rows = asked(QUARANTINED, filter).fetch_all(&self.reading).await?;
        rows.iter().map(doubted).collect()
    }

    /// Finds the record with this ID.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn get(&self, id: &str) -> Result<Option<Found>, StoreError> {
        const GET: &str = "SELECT t.text, r.quarantine FROM records r JOIN texts t ON t.seq = r.seq WHERE r.id = $1";
        let row = sqlx::query(GET)
            .bind(id.to_owned())
            .fetch_optional(&self.reading)
            .await?;
        let found = |row: AnyRow| {
            Ok(Found {
                text: row.try_get(0)?,
                quarantine: row.try_get(1)?,
            })
        };
        row.map(found).transpose()
    }

    /// Returns the texts of all records except those in quarantine, newest first.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn all(&self) -> Result<Vec<String>, StoreError> {
        const ALL: &str = "SELECT t.text FROM records r JOIN texts t ON t.seq = r.seq \
                           WHERE r.quarantine IS NULL ORDER BY r.seq DESC";
        let rows = sqlx::query(ALL).fetch_all(&self.reading).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Releases a record from quarantine; returns false if no record in quarantine has this ID.
    ///
    /// # Errors
    /// If the database is full or does not respond.
    pub async fn release(&self, id: &str) -> Result<bool, StoreError> {
        let statement = "UPDATE records SET quarantine = NULL WHERE id = $1 AND quarantine IS NOT NULL";
        let done = sqlx::query(statement)
            .bind(id.to_owned())
            .execute(&self.writing)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Returns the version of all lists.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn version(&self) -> Result<Version, StoreError> {
        // Each part is a single lookup in an index, or the count of a table that has a row for each day at most.
        const VERSION: &str = "SELECT (SELECT MAX(seq) FROM records), \
                               (SELECT COUNT(*) FROM records WHERE quarantine IS NOT NULL), \
                               (SELECT COUNT(*) FROM prunes)";
        let row = sqlx::query(VERSION).fetch_one(&self.reading).await?;
        Ok(Version {
            last: row.try_get(0)?,
            quarantined: row.try_get(1)?,
            prunes: row.try_get(2)?,
        })
    }

    /// Counts the records.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let row = sqlx::query("SELECT COUNT(*), COUNT(quarantine) FROM records")
            .fetch_one(&self.reading)
            .await?;
        Ok(Counts {
            records: row.try_get(0)?,
            quarantined: row.try_get(1)?,
        })
    }
}

/// Stores a record with its time of receipt, unless it is there.
pub(super) async fn insert(
    connection: &mut AnyConnection,
    record: &NewRecord,
    now: i64,
) -> Result<Inserted, StoreError> {
    let row = sqlx::query(INSERT)
        .bind(record.id.as_str())
        .bind(now)
        .bind(record.device_key.as_str())
        .bind(record.backend.as_str())
        .bind(i64::from(record.complete))
        .bind(record.entry.as_str())
        .bind(record.quarantine.as_deref())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(row) = row else {
        let there = sqlx::query("SELECT quarantine FROM records WHERE id = $1")
            .bind(record.id.as_str())
            .fetch_one(&mut *connection)
            .await?;
        return Ok(Inserted {
            new: false,
            quarantine: there.try_get(0)?,
        });
    };
    sqlx::query("INSERT INTO texts (seq, text) VALUES ($1, $2)")
        .bind(row.try_get::<i64, _>(0)?)
        .bind(record.text.as_str())
        .execute(&mut *connection)
        .await?;
    Ok(Inserted {
        new: true,
        quarantine: record.quarantine.clone(),
    })
}

/// Binds a filter's parameters to a statement for a list.
fn asked<'q>(statement: &'static str, filter: &Filter) -> Query<'q, Any, AnyArguments> {
    sqlx::query(statement)
        .bind(filter.before.unwrap_or(i64::MAX))
        .bind(filter.device.as_deref().map(device_key))
        .bind(filter.backend.clone())
        .bind(filter.complete.map(i64::from))
        .bind(filter.limit)
}

fn doubted(row: &AnyRow) -> Result<Doubted, StoreError> {
    let entry: String = row.try_get(2)?;
    Ok(Doubted {
        seq: row.try_get(0)?,
        received_ms: row.try_get(1)?,
        record: RawValue::from_string(entry).map_err(|error| StoreError::Unavailable(error.to_string()))?,
        reason: row.try_get(3)?,
    })
}
