//! Tests the lazily loaded chunks of the program.

use thirtyfour::prelude::*;
use vramscope_engine::Model;

use crate::page::{Page, Shown, with_page};

/// Chunks of models that the page and its worker have fetched.
fn groups(page: &Page) -> Shown<'_, String> {
    let names = "return ['images', 'text', 'blocks'].filter((name) => performance.getEntriesByType('resource') \
                 .some((e) => e.name.includes(`/chunks/${name}-`))).join()";
    page.script(names)
}

/// Waits until exactly these chunks have been fetched. The settings of a model may be here before: its run tells them too.
async fn fetched(page: &Page, wanted: &str) -> WebDriverResult<()> {
    page.until("the code of the family", || groups(page), |groups| groups == wanted)
        .await?;
    Ok(())
}

fn takes_images(page: &Page) -> Shown<'_, bool> {
    page.script("return !!document.querySelector('#control-images')")
}

#[tokio::test]
async fn the_code_of_a_family_comes_when_a_model_needs_it() {
    with_page("#/?batch=1", async |page| {
        page.value("peak-allocated").present().await?;
        takes_images(page).is(true).await?;
        groups(page).is("").await?;
        page.run("location.hash = '#/?model=gpt2&batch=2'").await?;
        page.until("its own settings", || takes_images(page), |takes| !takes)
            .await?;
        fetched(page, "text").await?;
        page.run("location.hash = '#/?model=qwen2.5-vl-3b&batch=1'").await?;
        page.until("its own settings", || takes_images(page), |takes| *takes)
            .await?;
        fetched(page, "images,text").await?;
        assert!(page.errors().await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pasted_configuration_fetches_its_family_too() {
    with_page("#/?batch=1", async |page| {
        page.value("peak-allocated").present().await?;
        page.click("from-config").await?;
        let config = Model::catalogue_config("gpt2").expect("it is in the catalogue");
        let paste = "const area = document.querySelector('[data-testid=config]'); area.value = arguments[0];\
                     area.dispatchEvent(new Event('input', { bubbles: true }))";
        page.run_with(paste, vec![config.into()]).await?;
        page.until("its own settings", || takes_images(page), |takes| !takes)
            .await?;
        fetched(page, "text").await?;
        page.value("peak-allocated").present().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_page_that_cannot_be_fetched_says_so_and_comes_when_asked_again() {
    with_page("#/?model=gpt2&batch=3", async |page| {
        let asked = "return performance.getEntriesByType('resource').some((e) => e.name.includes('/chunks/course-'))";
        page.script::<bool>(asked).is(false).await?;
        let gone = "const real = fetch; globalThis.fetch = (...all) => \
                    String(all[0]).includes('/chunks/') ? Promise.reject(new TypeError('gone')) : real(...all); \
                    globalThis.mend = () => { globalThis.fetch = real; }; \
                    location.hash = '#/course?batch=3'";
        page.run(gone).await?;
        page.text("unloaded").contains("could not be loaded").await?;
        page.run("mend()").await?;
        page.click("load-again").await?;
        page.find("course-cover").await?;
        page.fragment().is("#/course?batch=3").await?;
        Ok(())
    })
    .await;
}
