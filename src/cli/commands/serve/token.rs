//! `vramscope serve token`: manages a server's tokens.

use clap::Subcommand;

use super::Where;
use crate::failure::Failure;
use crate::output;
use crate::output::list::{self, Edge};
use crate::server::access;
use crate::server::store::Role;

/// Tokens: who may send, read and judge records
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token and show it, this once
    Add {
        /// Who it is for; each name has one token
        name: String,
        /// What it allows
        #[arg(long, value_enum)]
        role: Role,
        #[command(flatten)]
        database: Where,
    },
    /// List names and roles
    List {
        #[command(flatten)]
        database: Where,
    },
    /// Take a token away; a server that runs lets it pass for 5 more seconds
    Remove {
        /// Who it was for
        name: String,
        #[command(flatten)]
        database: Where,
    },
}

impl Token {
    /// Runs the command.
    ///
    /// # Errors
    /// If the database cannot be used, or the name is taken or unknown.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add { name, role, database } => add(&name, role, &database),
            Self::List { database } => show(&database),
            Self::Remove { name, database } => remove(&name, &database),
        }
    }
}

fn add(name: &str, role: Role, database: &Where) -> Result<(), Failure> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::Input(
            "a token's name is a text of one line, such as ci".into(),
        ));
    }
    let token = access::new_token().map_err(Failure::broken)?;
    let hash = access::hash(&token);
    if !database.with(async |store| store.add_token(name, role, &hash).await)? {
        return Err(Failure::Input(format!(
            "{name} has a token already; revoke it with `vramscope serve token remove {name}`, or choose another name"
        )));
    }
    anstream::eprintln!("shown this once; whoever sends records puts it into VRAMSCOPE_TOKEN:");
    output::print(&format!("{token}\n"))
}

fn show(database: &Where) -> Result<(), Failure> {
    let tokens = database.with(async |store| store.tokens().await)?;
    let rows: Vec<[String; 2]> = tokens
        .into_iter()
        .map(|token| [token.name, token.role.to_string()])
        .collect();
    output::print(&list::render([("name", Edge::Left), ("role", Edge::Left)], &rows))
}

fn remove(name: &str, database: &Where) -> Result<(), Failure> {
    if database.with(async |store| store.remove_token(name).await)? {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{name} has no token; `vramscope serve token list` lists the existing tokens"
    )))
}
