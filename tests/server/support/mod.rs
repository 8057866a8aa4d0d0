//! Servers, databases, records and requests for the tests.

mod http;
mod postgres;
mod record;
mod scratch;
mod server;

pub use http::{get, is_closed_after, post, raw, request};
pub use postgres::Postgres;
pub use record::{EXAMPLE, id_of, record};
pub use scratch::Scratch;
pub use server::{Server, vramscope};

/// Defines a test that runs on a new database of each kind. If PostgreSQL is not installed, that half reports so and
/// passes; `cargo xtask test` installs it on Debian.
macro_rules! on_both {
    ($(#[$about:meta])* fn $name:ident($database:ident: &str) $body:block) => {
        mod $name {
            #[allow(unused_imports, reason = "what the tests around it use")]
            use super::*;

            $(#[$about])*
            fn on($database: &str) $body

            #[test]
            fn sqlite() {
                let scratch = crate::support::Scratch::new();
                on(scratch.path("results.db").to_str().expect("UTF-8"));
            }

            #[test]
            fn postgres() {
                match crate::support::Postgres::start() {
                    Some(postgres) => on(&postgres.url()),
                    None => eprintln!("PostgreSQL is not installed: skipped (Debian: apt-get install postgresql)"),
                }
            }
        }
    };
}
pub(crate) use on_both;
