//! What a first visit downloads, packed as hosts pack it. A KB here is 1000 bytes.

use std::collections::BTreeMap;

use crate::page::{built, with_page};

/// The most that the compiled program may take: what a first visit to the plan fetches of it, every chunk counted.
const PROGRAM: usize = 400_000;
/// The most that the first visit may take, the program included.
const FIRST_VISIT: usize = 550_000;

fn packed(file: &str) -> usize {
    let bytes = std::fs::read(built().join(file)).expect("what the page asked for is there");
    let mut out = Vec::new();
    let options = brotli::enc::BrotliEncoderParams {
        quality: 11,
        lgwin: 24,
        ..Default::default()
    };
    brotli::BrotliCompress(&mut bytes.as_slice(), &mut out, &options).expect("it can be packed");
    out.len()
}

#[tokio::test]
async fn a_first_visit_is_small() {
    with_page("", async |page| {
        let script = "return ['index.html', ...performance.getEntriesByType('resource').map((e) => e.name)]";
        let asked: Vec<String> = page.driver.execute(script, vec![]).await?.convert()?;
        let names = asked.iter().map(|url| url.trim_start_matches(&page.origin));
        let files = names.filter(|name| !name.contains(':'));
        let sizes: BTreeMap<&str, usize> = files.map(|name| (name, packed(name))).collect();
        let compiled = sizes.iter().filter(|(name, _)| name.ends_with(".wasm"));
        let program: usize = compiled.map(|(_, size)| size).sum();
        let all: usize = sizes.values().sum();
        let hint = "is this a quick build? `cargo xtask build` makes the published one";
        assert!(
            program > 0 && program <= PROGRAM,
            "{program} bytes of {PROGRAM}; {hint}"
        );
        assert!(all <= FIRST_VISIT, "{all} bytes of {FIRST_VISIT}: {sizes:?}; {hint}");
        Ok(())
    })
    .await;
}
