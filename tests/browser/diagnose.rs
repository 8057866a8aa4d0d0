//! The page of diagnoses: what is pasted or opened gives its findings, in every language.

use thirtyfour::prelude::*;

use crate::page::{Page, with_page};

const FULL: &str = "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.69 GiB total capacity; 21.45 GiB already allocated; 1.89 GiB free; 21.50 GiB reserved in total by PyTorch)";
const OTHERS: &str = "CUDA out of memory. Tried to allocate 26.00 MiB. GPU 0 has a total capacity of 15.57 GiB of which 23.06 MiB is free. Process 1001 has 12.57 GiB memory in use. Process 1002 has 2.10 GiB memory in use. Including non-PyTorch memory, this process has 510.00 MiB memory in use. Of the allocated memory 413.55 MiB is allocated by PyTorch, and 12.45 MiB is reserved by PyTorch but unallocated.";
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/snapshots/gpt2-bf16.pickle.gz");

/// Name and standing of each finding, in order.
async fn findings(page: &Page) -> WebDriverResult<Vec<(String, String)>> {
    let script =
        "return [...document.querySelectorAll('[data-testid=finding]')].map((f) => [f.dataset.name, f.dataset.value])";
    page.driver.execute(script, vec![]).await?.convert()
}

async fn paste(page: &Page, text: &str) -> WebDriverResult<Vec<(String, String)>> {
    page.enter("diagnose-text", text).await?;
    page.find("diagnose-go").await?.click().await?;
    page.until("findings", || findings(page), |all| !all.is_empty()).await
}

#[tokio::test]
async fn a_pasted_error_gives_its_cause() {
    with_page("#/diagnose", async |page| {
        let found = paste(page, FULL).await?;
        assert_eq!(found[0], ("out-of-capacity".into(), "cause".into()));
        assert!(
            found.contains(&("fragmentation".into(), "ruled-out".into())),
            "{found:?}"
        );
        assert!(page.text("finding").await?.contains("2.50 GiB"));
        page.go("#/diagnose").await?;
        let found = paste(page, OTHERS).await?;
        assert_eq!(found[0], ("other-processes".into(), "cause".into()));
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_opened_snapshot_shows_its_curve_in_every_language() {
    with_page("#/diagnose", async |page| {
        let input = page.driver.find(By::Css("[data-testid=diagnose-files]")).await?;
        input.send_keys(SNAPSHOT).await?;
        let found = page.until("findings", || findings(page), |all| !all.is_empty()).await?;
        assert!(found.iter().any(|(name, _)| name == "peak"), "{found:?}");
        page.find("recording").await?;
        for (language, words) in [("zh-CN", "激活"), ("zh-TW", "保留")] {
            page.choose("language", language).await?;
            let text = || {
                page.driver
                    .execute("return document.querySelector('#results').textContent", vec![])
            };
            let said = page
                .until(
                    language,
                    || async { text().await?.convert::<String>() },
                    |said| said.contains(words),
                )
                .await?;
            assert!(!said.contains("{0}") && !said.contains("t_peak"), "{said}");
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_is_not_understood_is_answered_with_what_is() {
    with_page("#/diagnose", async |page| {
        page.enter("diagnose-text", "my model does not train").await?;
        page.find("diagnose-go").await?.click().await?;
        let shown = page
            .until("answer", || page.value("diagnosis"), Option::is_some)
            .await?;
        assert_eq!(shown.as_deref(), Some("0"));
        assert!(page.text("diagnosis").await?.contains("nvidia-smi"));
        Ok(())
    })
    .await;
}
