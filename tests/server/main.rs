//! Tests of `serve`, `upload` and `export` with the real binary, on SQLite and on a real PostgreSQL.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod api;
mod crash;
mod document;
mod export;
mod full_disk;
mod fuzz;
mod hostile;
mod page;
mod spool;
mod support;
mod tls;
mod upkeep;
mod way;
