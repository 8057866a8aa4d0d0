//! What a first visit downloads, as the server sends it. A KB is 1000 bytes.

use std::collections::BTreeMap;

use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::page::{built, with_browser};

/// The most that a first visit to the plan may take: page, styles, words, scripts, and every chunk of the program that
/// the page and its worker fetch by themselves.
const FIRST_VISIT: u64 = 550_000;

#[tokio::test]
async fn a_first_visit_is_small() {
    let server = Server::start(built(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.go("#/").await?;
        // The last that comes by itself: changes that were tried, below the details of the run.
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
