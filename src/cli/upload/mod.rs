//! Uploads records to a server: client, spool and tokens.

mod client;
mod destination;
mod keyring;
mod spool;
mod token;

pub use client::{Client, Trouble};
pub use destination::Destination;
pub use keyring::Keyring;
pub use spool::{Spool, Waiting};
pub use token::Token;
