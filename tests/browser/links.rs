//! Tests links that hold the page's state.

use crate::page::with_page;

const LINK: &str =
    "#/?model=qwen2.5-0.5b&gpu=RTX%204090&batch=2&seq=512&precision=amp-bf16&optim=sgdm&freeze=lora&rank=8";

#[tokio::test]
async fn a_link_restores_every_entry_and_the_result() {
    with_page(LINK, async |page| {
        for (testid, value) in [
            ("model", "qwen2.5-0.5b"),
            ("gpu", "RTX 4090"),
            ("batch", "2"),
            ("seq", "512"),
            ("precision", "amp-bf16"),
            ("optim", "sgdm"),
            ("freeze", "lora"),
            ("rank", "8"),
        ] {
            page.prop(testid, "value").holds(value).await?;
        }
        let first = page.value("peak-allocated").present().await?;
        page.fragment().is(LINK).await?;
        page.go(LINK).await?;
        page.value("peak-allocated").holds(&first).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_broken_link_shows_a_message_and_keeps_what_could_be_read() {
    with_page("#/nowhere?model=gpt2&batch=3&speed=9&seq=%4", async |page| {
        let message = page.text("url-problems").nonempty().await?;
        for named in ["/nowhere", "speed", "seq"] {
            assert!(message.contains(named), "{named} is not in: {message}");
        }
        page.prop("batch", "value").holds("3").await?;
        page.prop("model", "value").holds("gpt2").await?;
        page.value("peak-allocated").present().await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn garbage_after_the_hash_is_no_blank_page() {
    with_page("#%%%&&&??==config", async |page| {
        page.value("peak-allocated").present().await?;
        page.text("url-problems").nonempty().await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_model_in_a_link_is_named_and_stays() {
    with_page("#/?model=gtp2", async |page| {
        let message = page.text("refusal").nonempty().await?;
        assert!(message.contains("gtp2") && message.contains("gpt2"), "{message}");
        page.prop("model", "value").holds("gtp2").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_card_in_a_link_is_named_and_the_bytes_stay() {
    with_page("#/?model=gpt2&gpu=RTX%209999", async |page| {
        page.value("peak-allocated").present().await?;
        page.text("refusal").is("").await?;
        page.value("verdict").absent().await?;
        page.text_at("#results")
            .contains("no card is named \"RTX 9999\"")
            .await?;
        Ok(())
    })
    .await;
}

/// The URL is written shortly after an entry. A navigation in that moment must win.
#[tokio::test]
async fn where_somebody_goes_is_not_written_over_by_an_entry_before() {
    with_page(LINK, async |page| {
        let script = "const batch = document.querySelector(\"[data-testid='batch']\");\
            batch.value = '7';\
            batch.dispatchEvent(new Event('input', { bubbles: true }));\
            const begin = performance.now();\
            const go = () => {\
              if (performance.now() - begin < 100) return setTimeout(go, 5);\
              location.hash = '#/attention';\
              while (performance.now() - begin < 300);\
            };\
            setTimeout(go);";
        page.run(script).await?;
        let hash = || page.script::<String>("return location.hash");
        let is_there = |hash: &String| hash.starts_with("#/attention");
        page.until("the other page", hash, is_there).await?;
        // By now the URL would have been overwritten.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        hash().until(is_there).await?;
        Ok(())
    })
    .await;
}
