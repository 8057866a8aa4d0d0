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
            let shown = page.find(testid).await?.prop("value").await?;
            assert_eq!(shown.as_deref(), Some(value), "{testid}");
        }
        let first = page.value("peak-allocated").await?;
        assert!(first.is_some());
        assert_eq!(page.fragment().await?, LINK);
        page.go(LINK).await?;
        assert_eq!(page.value("peak-allocated").await?, first);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_broken_link_shows_a_message_and_keeps_what_could_be_read() {
    with_page("#/nowhere?model=gpt2&batch=3&speed=9&seq=%4", async |page| {
        let message = page.text("url-problems").await?;
        for named in ["/nowhere", "speed", "seq"] {
            assert!(message.contains(named), "{named} is not in: {message}");
        }
        assert_eq!(page.find("batch").await?.prop("value").await?.as_deref(), Some("3"));
        assert_eq!(page.find("model").await?.prop("value").await?.as_deref(), Some("gpt2"));
        assert!(page.value("peak-allocated").await?.is_some());
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn garbage_after_the_hash_is_no_blank_page() {
    with_page("#%%%&&&??==config", async |page| {
        assert!(page.value("peak-allocated").await?.is_some());
        assert!(!page.text("url-problems").await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_model_in_a_link_is_named_and_stays() {
    with_page("#/?model=gtp2", async |page| {
        let message = page.text("refusal").await?;
        assert!(message.contains("gtp2") && message.contains("gpt2"), "{message}");
        assert_eq!(page.find("model").await?.prop("value").await?.as_deref(), Some("gtp2"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_card_in_a_link_is_named_and_the_bytes_stay() {
    with_page("#/?model=gpt2&gpu=RTX%209999", async |page| {
        assert!(page.text("refusal").await?.is_empty());
        assert_eq!(page.value("verdict").await?, None);
        assert!(page.value("peak-allocated").await?.is_some());
        let shown: String = page
            .driver
            .execute("return document.body.innerText", vec![])
            .await?
            .convert()?;
        assert!(shown.contains("no card is named \"RTX 9999\""), "{shown}");
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
        page.driver.execute(script, vec![]).await?;
        let hash = || async {
            page.driver
                .execute("return location.hash", vec![])
                .await?
                .convert::<String>()
        };
        let is_there = |hash: &String| hash.starts_with("#/attention");
        page.until("the other page", hash, is_there).await?;
        // By now the URL would have been overwritten.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert!(is_there(&hash().await?), "{}", hash().await?);
        Ok(())
    })
    .await;
}
