//! Walks from each page to each other one, by links and by Back and Forward.

use std::path::Path;

use thirtyfour::error::WebDriverResult;
use xtask::static_server;

use crate::page::{Page, built, with_browser, with_page};

/// Each page: the test id of its entry in the menu, and something that it alone shows.
const PAGES: [(&str, &str); 8] = [
    ("nav/", "[data-testid=peak-allocated]"),
    ("nav/recorded", "[data-testid=gallery]"),
    ("nav/recommend", "[data-testid=plan-go]"),
    ("nav/compare", "[data-testid=compared-take]"),
    ("nav/attention", "[data-testid=memory-slider]"),
    ("nav/diagnose", "[data-testid=diagnose-text]"),
    ("nav/benchmarks", "[data-testid=bench-files]"),
    ("nav/course", "[data-testid=course-cover]"),
];

/// Follows the way to a page: in the menu, behind it, or for the full search from the planner's address.
async fn lead(page: &Page, testid: &str) -> WebDriverResult<()> {
    match testid {
        "nav/recommend" => {
            page.run("location.hash = location.hash.replace(/^#\\/[a-z]*/, '#/recommend')")
                .await
        }
        "nav/benchmarks" | "nav/recorded" => {
            page.click("nav-more").await?;
            page.click(testid).await
        }
        _ => page.click(testid).await,
    }
}

/// Indices of pages in an order that goes from each to each other one.
fn tour() -> Vec<usize> {
    let from = |i: usize| (i + 1..PAGES.len()).flat_map(move |j| [i, j]).chain([i]);
    (0..PAGES.len()).flat_map(from).collect()
}

/// Waits until one page is shown, and no other.
async fn is_on(page: &Page, place: usize) -> WebDriverResult<()> {
    page.no_fault().await?;
    let shown = "return arguments[0].map((selector) => document.querySelector(selector) !== null)";
    let selectors: Vec<&str> = PAGES.iter().map(|(_, selector)| *selector).collect();
    let alone: Vec<bool> = (0..PAGES.len()).map(|i| i == place).collect();
    let shown = page.script_with::<Vec<bool>>(shown, vec![selectors.into()]);
    shown.named(PAGES[place].0).is(alone).await?;
    page.no_fault().await
}

async fn walk(origin: &str) {
    with_browser(origin, async |page| {
        page.go("#/?model=gpt2&seq=256").await?;
        is_on(page, 0).await?;
        let tour = tour();
        for pair in tour.windows(2).filter(|pair| pair[0] != pair[1]) {
            let [from, to] = [pair[0], pair[1]];
            lead(page, PAGES[to].0).await?;
            is_on(page, to).await?;
            page.back().await?;
            is_on(page, from).await?;
            page.forward().await?;
            is_on(page, to).await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[test]
fn the_tour_has_every_ordered_pair() {
    let tour = tour();
    let has = |from, to| tour.windows(2).any(|pair| pair == [from, to]);
    let pairs = (0..PAGES.len()).flat_map(|from| (0..PAGES.len()).map(move |to| (from, to)));
    let missing: Vec<_> = pairs.filter(|(from, to)| from != to && !has(*from, *to)).collect();
    assert_eq!(missing, []);
}

#[tokio::test]
async fn every_page_leads_to_every_other_one_over_http() {
    let address = static_server::start(built(), 0).expect("a port is free");
    walk(&format!("http://{address}/")).await;
}

#[tokio::test]
async fn every_page_leads_to_every_other_one_in_a_single_file() {
    let file = built().join(Path::new("vramscope.html"));
    walk(&format!("file://{}", file.display())).await;
}

/// A lesson is left for any page, too: its simulations are given up then.
#[tokio::test]
async fn a_lesson_that_simulates_is_left_for_any_page() {
    with_page("#/course?row=L.batch", async |page| {
        for (testid, selector) in &PAGES[..PAGES.len() - 1] {
            page.value("course-row").holds("L.batch").await?;
            lead(page, testid).await?;
            page.find_at(selector).await?;
            page.no_fault().await?;
            page.back().await?;
        }
        page.value("course-row").holds("L.batch").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// A log is nobody else's business: it is kept while the page is open, and is in no address.
#[tokio::test]
async fn a_pasted_log_and_its_findings_outlast_a_link_and_back() {
    let log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of \
               23.64 GiB of which 1.89 GiB is free. Including non-PyTorch memory, this process has 21.70 GiB memory in \
               use. Of the allocated memory 21.45 GiB is allocated by PyTorch, and 54.00 MiB is reserved by PyTorch but \
               unallocated.";
    with_page("#/diagnose", async |page| {
        page.enter("diagnose-text", log).await?;
        page.click("diagnose-go").await?;
        page.text("finding").contains("2.50 GiB").await?;
        page.click("finding-row").await?;
        page.value("course-row").present().await?;
        page.fragment().lacks("memory").await?;
        page.back().await?;
        page.prop("diagnose-text", "value").holds(log).await?;
        page.text("finding").contains("2.50 GiB").await?;
        // What was typed and not yet read is kept too.
        page.enter("diagnose-text", "half a log").await?;
        page.click("nav/").await?;
        page.value("peak-allocated").present().await?;
        page.click("nav/diagnose").await?;
        page.prop("diagnose-text", "value").holds("half a log").await?;
        page.fragment().lacks("log").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}
