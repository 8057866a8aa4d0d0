//! Tests the costs of the plan page: prices of one's own, the cards in order, and a row that is taken.

use thirtyfour::Key;
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::with_page;
use crate::person::{Person, walk};

const SETUP: &str = "#/?model=qwen2.5-0.5b&seq=256&gpu=RTX%204090";

/// Waits until the rows of the current run and prices are all known.
async fn settled(page: &Page) -> WebDriverResult<()> {
    page.attr("cost", "aria-busy").holds("false").await
}

/// Cards and numbers of them, in the order on screen.
async fn order(page: &Page) -> WebDriverResult<Vec<String>> {
    let script = "return [...document.querySelectorAll('[data-testid=cost-row]')].map(row => `${row.dataset.gpus} ${row.dataset.name}`)";
    page.script::<Vec<String>>(script).until(|rows| !rows.is_empty()).await
}

/// 18. The price of a card, then the cheapest way to run.
#[tokio::test]
async fn prices_order_the_cards_and_a_press_takes_one() {
    walk(SETUP, async |page, person| {
        page.see("cost-place").await?;
        settled(page).await?;
        assert!(order(page).await?.len() > 4, "without prices all cards are ordered by time");
        person.chooses("price-card", "H100 SXM").await?;
        person.fills("price-new", "2.4").await?;
        person.presses(Key::Enter, 1).await?;
        page.find("price-row").await?;
        person.chooses("price-card", "L4").await?;
        person.fills("price-new", "0,6").await?;
        person.presses(Key::Enter, 1).await?;
        let rows = "return document.querySelectorAll('[data-testid=price-row]').length";
        page.script::<u64>(rows).is(2_u64).await?;
        settled(page).await?;
        let values = "return [...document.querySelectorAll('[data-testid=cost-row][data-value]')].map(row => Number(row.dataset.value))";
        let prices = page.script::<Vec<f64>>(values).until(|all| all.len() >= 6).await?;
        assert!(prices.is_sorted(), "{prices:?}");
        person.click("cost-by-time").await?;
        // Eight of the fastest stand in the lead, whatever they cost.
        page.attr("cost-by-time", "aria-pressed").holds("true").await?;
        let row = "[data-testid=cost-row][data-name='H100 SXM'][data-gpus='8']";
        page.find_at(row).await?;
        // The row of eight H100 is taken for the setup.
        person.click("cost-take/8 × H100 SXM").await?;
        page.fragment().contains("world=8").await?;
        page.fragment().contains("strategy=ddp_view").await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// Prices stay in the browser, and what is no list says what it has to be.
#[tokio::test]
async fn prices_are_kept_and_a_wrong_one_is_told() {
    with_page(SETUP, async |page| {
        let mut person = Person::at(page);
        page.see("cost-place").await?;
        page.find("price-new").await?;
        person.fills("price-new", "much").await?;
        person.presses(Key::Enter, 1).await?;
        page.text("prices-fault").contains("much").await?;
        person.fills("price-new", "0.5").await?;
        person.presses(Key::Enter, 1).await?;
        page.find("price-row").await?;
        page.run("location.reload()").await?;
        page.see("cost-place").await?;
        page.attr("price-row", "data-name").holds("RTX 4090").await?;
        page.prop("price", "value").holds("0.5").await?;
        page.see("cost-place").await?;
        page.run("document.querySelector('[data-testid=prices-entries]').open = true")
            .await?;
        page.click("prices-clear").await?;
        page.attr("price-row", "data-name").absent().await?;
        Ok(())
    })
    .await;
}

/// With the length of the run and what a kilowatt-hour emits, each card has its CO₂; the number stays in the browser.
#[tokio::test]
async fn co2_follows_from_the_energy() {
    with_page(&format!("{SETUP}&samples=100000"), async |page| {
        let mut person = Person::at(page);
        page.see("cost-place").await?;
        page.find("cost-energy").await?;
        page.attr("cost-co2", "data-value").absent().await?;
        person.fills("cost-grams", "400").await?;
        person.presses(Key::Enter, 1).await?;
        page.find("cost-co2").await?;
        let of = "const of = (id) => Number(document.querySelector(`[data-testid=${id}]`).dataset.value);";
        let ratio = format!("{of} return of('cost-co2') / of('cost-energy')");
        page.script::<f64>(&ratio)
            .until(|ratio| (ratio - 0.4).abs() < 1e-9)
            .await?;
        page.run("location.reload()").await?;
        page.see("cost-place").await?;
        page.prop("cost-grams", "value").holds("400").await?;
        page.find("cost-co2").await?;
        Ok(())
    })
    .await;
}
