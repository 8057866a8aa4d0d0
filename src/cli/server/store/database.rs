//! Opens the database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyPool, Executor};

use super::{Store, StoreError, migrations};

/// Location of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// An SQLite file, created if it does not exist.
    Sqlite(PathBuf),
    /// A PostgreSQL URL.
    Postgres(String),
}

impl FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(text.to_owned())),
            Some(("sqlite", path)) => Ok(Self::Sqlite(path.trim_start_matches("//").into())),
            // The letter of a Windows drive is not a scheme.
            Some((scheme, _)) if scheme.len() > 1 && text[scheme.len()..].starts_with("://") => Err(format!(
                "{scheme}:// is no database known here; wanted the path of a file for SQLite, or postgres://USER@HOST/NAME"
            )),
            _ if text.is_empty() => Err("wanted the path of a file for SQLite, or postgres://USER@HOST/NAME".into()),
            _ => Ok(Self::Sqlite(text.into())),
        }
    }
}

impl fmt::Display for Database {
    /// Formats the location without a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    match rest.split_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}", user.split(':').next().unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// Number of connections for reading. More than the number of cores only helps if the database is far away.
const READERS: u32 = 4;

impl Database {
    /// Opens the database and creates or migrates its tables.
    ///
    /// # Errors
    /// If it cannot be opened, or a newer version of this program wrote it.
    pub async fn open(&self) -> Result<Store, StoreError> {
        sqlx::any::install_default_drivers();
        let cannot = |error: &dyn fmt::Display| StoreError::Unavailable(format!("{self}: {error}"));
        let (writing, reading) = match self {
            Self::Sqlite(path) => {
                make_private(path).map_err(|error| cannot(&error))?;
                let options = sqlite(path).map_err(|error| cannot(&error))?;
                let writing = sqlite_pool(1, &options).await.map_err(|error| cannot(&error))?;
                let reading = sqlite_pool(READERS, &options).await.map_err(|error| cannot(&error))?;
                (writing, reading)
            }
            Self::Postgres(url) => {
                let pool = AnyPoolOptions::new().max_connections(READERS + 1).connect(url);
                let pool = pool.await.map_err(|error| cannot(&error))?;
                (pool.clone(), pool)
            }
        };
        migrations::of(self)
            .run(&writing)
            .await
            .map_err(|error| cannot(&format!("{error}; a database of a newer vramscope needs that version")))?;
        Ok(Store { writing, reading })
    }
}

/// Pool of connections to one file. The write-ahead log is synced at every commit, so that acknowledged records survive
/// a crash of the machine.
async fn sqlite_pool(connections: u32, options: &AnyConnectOptions) -> Result<AnyPool, sqlx::Error> {
    const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000; \
                            PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864";
    AnyPoolOptions::new()
        .max_connections(connections)
        // Reconnecting would have no benefit.
        .max_lifetime(None)
        .idle_timeout(None)
        .after_connect(|connection, _| Box::pin(async move { connection.execute(SETTINGS).await.map(drop) }))
        .connect_with(options.clone())
        .await
}

fn sqlite(path: &Path) -> Result<AnyConnectOptions, sqlx::Error> {
    const DELIMITERS: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#');
    let path = path.to_string_lossy();
    let path = utf8_percent_encode(&path, DELIMITERS);
    AnyConnectOptions::from_str(&format!("sqlite://{path}?mode=rwc"))
}

/// Creates the file and its folder if needed, readable only by the owner.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_file_or_postgresql() {
        let read = |text: &str| text.parse::<Database>();
        assert_eq!(read("a b.db"), Ok(Database::Sqlite("a b.db".into())));
        assert_eq!(read("sqlite:///var/a.db"), Ok(Database::Sqlite("/var/a.db".into())));
        assert_eq!(read("C:\\a.db"), Ok(Database::Sqlite("C:\\a.db".into())));
        let postgres = read("postgres://bob:secret@host:5433/db").expect("PostgreSQL");
        assert_eq!(postgres.to_string(), "postgres://bob@host:5433/db");
        assert!(read("mysql://host/db").expect_err("unknown").contains("postgres://"));
        assert!(read("").is_err());
    }
}
