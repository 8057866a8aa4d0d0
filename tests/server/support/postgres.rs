//! Runs a PostgreSQL server for tests, in a temporary folder and reached through a Unix socket.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running PostgreSQL server, killed on drop.
pub struct Postgres {
    folder: tempfile::TempDir,
    child: Child,
}

impl Postgres {
    /// Starts a server; `None` if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new()
            .prefix("vrs-pg")
            .tempdir_in("/tmp")
            .expect("a folder");
        let user = unprivileged();
        if let Some(user) = user {
            chown(folder.path(), Some(user.0), Some(user.1)).expect("the folder is given away");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a private folder");
        let data = folder.path().join("data");
        let mut init = of(&programs.join("initdb"), user);
        init.arg("--pgdata")
            .arg(&data)
            .args(["--username=postgres", "--auth=trust", "--no-sync", "--no-instructions"]);
        let made = init.output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = of(&programs.join("postgres"), user);
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses="]);
        let child = server
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres starts");
        let postgres = Self { folder, child };
        postgres.wait(&programs);
        Some(postgres)
    }

    fn wait(&self, programs: &Path) {
        for _ in 0..3000 {
            let mut ready = Command::new(programs.join("pg_isready"));
            ready.arg("-q").arg("-h").arg(self.folder.path());
            if ready.status().is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("PostgreSQL did not start in {}", self.folder.path().display());
    }

    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@localhost/postgres?host={}",
            self.folder.path().display()
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT makes it end at once, together with its child processes.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        let _ = self.child.wait();
    }
}

/// Folder of PostgreSQL's programs, which Debian keeps off `PATH`.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok();
    let installed = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"));
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = installed.chain(std::env::split_paths(&on_path)).collect();
    all.retain(|folder| folder.join("initdb").is_file() && folder.join("pg_isready").is_file());
    all.pop()
}

/// User and group to run as: PostgreSQL refuses to run as root, and its package creates a user.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |args: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(args).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    match id(&["-u"]) {
        Some(0) => Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)),
        _ => None,
    }
}

fn of(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/tmp");
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}
