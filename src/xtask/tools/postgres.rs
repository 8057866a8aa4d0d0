//! Installs PostgreSQL, for the tests of the server's other database.

use std::path::Path;

use super::system_package;
use crate::process::find;

/// Installs PostgreSQL if possible. If not, it prints one line, and the tests that need it use another database.
pub fn postgres() {
    if is_there() {
        return;
    }
    let failed = system_package::install(&["postgresql"]).err();
    if !is_there() {
        let why = failed.map(|error| format!(" ({error})")).unwrap_or_default();
        eprintln!("PostgreSQL is not installed: its tests are skipped{why}; on Debian: apt-get install postgresql");
    }
}

fn is_there() -> bool {
    // Debian keeps the programs off `PATH`.
    find(&["initdb"]).is_some() || Path::new("/usr/lib/postgresql").is_dir()
}
