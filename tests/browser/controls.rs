use thirtyfour::prelude::*;

use crate::page::with_page;

#[tokio::test]
async fn typing_a_number_changes_the_values_and_the_url() {
    with_page("#/?model=gpt2&seq=1024", async |page| {
        let before = page.value("peak-allocated").await?;
        page.enter("batch", "16").await?;
        page.changed("peak-allocated", &before).await?;
        assert_eq!(page.fragment().await?, "#/?model=gpt2&batch=16&seq=1024");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn choosing_an_optimizer_changes_the_values() {
    with_page("#/?model=gpt2", async |page| {
        let before = page.value("peak-allocated").await?;
        page.choose("optim", "sgd").await?;
        let after = page.changed("peak-allocated", &before).await?;
        let number = |v: &Option<String>| v.as_ref().and_then(|v| v.parse::<u64>().ok());
        assert!(
            number(&after) < number(&before),
            "SGD has no states: {after:?}, was {before:?}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_model_is_found_by_typing_a_part_of_its_name() {
    with_page("", async |page| {
        let before = page.value("params").await?;
        page.enter("model", "gpt2-me").await?;
        page.find("model").await?.send_keys(Key::Enter + "").await?;
        page.changed("params", &before).await?;
        assert_eq!(page.fragment().await?, "#/?model=gpt2-medium");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_smaller_card_changes_the_verdict() {
    with_page("", async |page| {
        let before = page.value("verdict").await?;
        page.enter("gpu", "4060 8").await?;
        page.enter("gpu", "RTX 4060").await?;
        page.find("gpu").await?.send_keys(Key::Enter + "").await?;
        assert_eq!(page.changed("verdict", &before).await?.as_deref(), Some("oom"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn only_what_means_something_for_the_model_is_asked() {
    with_page("#/?model=gpt2", async |page| {
        let there = "return ['seq', 'images', 'image'].map(t => !!document.querySelector(`input[data-testid=${t}]`))";
        let there: Vec<bool> = page.driver.execute(there, vec![]).await?.convert()?;
        assert_eq!(there, [true, false, false]);
        let freeze = "return [...document.querySelectorAll('[data-testid=freeze] option')].map(o => o.value)";
        let freeze: Vec<String> = page.driver.execute(freeze, vec![]).await?.convert()?;
        assert_eq!(freeze, ["none", "lora", "qlora"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pointing_at_the_timeline_lists_what_is_live_there() {
    with_page("", async |page| {
        let title = || async {
            let script = "return document.querySelector('.instant h3').textContent";
            page.driver.execute(script, vec![]).await?.convert::<String>()
        };
        // What stands above has come, so that nothing moves under the pointer.
        page.find("what-if-row").await?;
        page.find("instant").await?;
        let at_peak = title().await?;
        let timeline = page.find("timeline").await?;
        page.driver
            .action_chain()
            .move_to_element_with_offset(&timeline, -60, 0)
            .perform()
            .await?;
        let here = page.until("the list's title", title, |now| *now != at_peak).await?;
        assert!(here.starts_with("Here:"), "{here}");
        timeline.send_keys(Key::Home + "").await?;
        page.until("the keyboard's instant", title, |now| *now != here).await?;
        Ok(())
    })
    .await;
}
