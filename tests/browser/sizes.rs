//! Measures the download of a first visit, as sent by the server. A KB is 1000 bytes.

use std::collections::BTreeMap;

use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::page::{built, with_browser};

/// Maximum bytes of a first visit to the plan page: page, styles, phrases, scripts, and all chunks that the page and
/// its worker fetch on their own.
const FIRST_VISIT: u64 = 550_000;

#[tokio::test]
async fn a_first_visit_is_small() {
    let server = Server::start(built(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.go("#/").await?;
        // The tried changes, below the details of the run, are the last content that loads on its own.
        page.driver.query(By::Css(".what-if-group")).first().await?;
        let mut sizes = BTreeMap::<String, u64>::new();
        for (path, bytes) in server.sent() {
            *sizes.entry(path).or_default() += bytes;
        }
        let program = sizes
            .iter()
            .find(|(path, _)| path.starts_with("/vramscope-app-") && path.ends_with(".wasm"));
        assert!(program.is_some_and(|(_, bytes)| *bytes > 0), "no program: {sizes:?}");
        let all: u64 = sizes.values().sum();
        let hint = "is this a quick build? `cargo xtask build` makes the published one";
        assert!(all <= FIRST_VISIT, "{all} bytes of {FIRST_VISIT}: {sizes:?}; {hint}");
        println!("{all} bytes: {sizes:#?}");
        Ok(())
    })
    .await;
}
