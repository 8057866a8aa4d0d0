//! Tests the page as a single file.

use crate::page::{built, with_browser};

/// Maximum size of the file, in bytes.
const LIMIT: u64 = 4_370_000;

#[tokio::test]
async fn one_file_is_the_whole_page() {
    let path = built().join("vramscope.html");
    with_browser(&format!("file://{}", path.display()), async |page| {
        page.go("#/?model=gpt2&batch=2").await?;
        let before = page.value("peak-allocated").await?;
        assert!(before.is_some());
        page.enter("batch", "8").await?;
        page.changed("peak-allocated", &before).await?;
        assert_eq!(page.fragment().await?, "#/?model=gpt2&batch=8");
        page.choose("language", "zh-TW").await?;
        page.until("words", || page.text("verdict"), |t| t.contains("需要"))
            .await?;
        assert!(
            page.value("single-file").await?.is_none() && page.text("copy-embed").await?.is_empty(),
            "a file has nothing beside it"
        );

        // Lazily loaded parts, on the page and in its workers.
        for (route, shown) in [("attention", "memory-chunked"), ("course", "course-progress")] {
            page.go(&format!("#/{route}?model=gpt2")).await?;
            page.until(route, || page.value(shown), Option::is_some).await?;
        }
        page.go("#/recommend?model=gpt2&gpu=RTX 4060&seq=256&effective=8&open=optim,batch")
            .await?;
        page.click("plan-go").await?;
        page.until("a plan", || page.value("plan-recommended"), Option::is_some)
            .await?;
        page.go("#/diagnose").await?;
        page.enter("diagnose-text", "CUDA out of memory. Tried to allocate 2.50 GiB")
            .await?;
        page.click("diagnose-go").await?;
        page.until("findings", || page.value("finding"), Option::is_some)
            .await?;

        let asked = "return performance.getEntriesByType('resource').map((e) => e.name)\
                     .filter((name) => !/^(blob|data):/.test(name))";
        let asked: Vec<String> = page.driver.execute(asked, vec![]).await?.convert()?;
        assert_eq!(asked, Vec::<String>::new());
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[test]
fn one_file_is_small_enough_to_be_sent_around() {
    let size = std::fs::metadata(built().join("vramscope.html")).map(|m| m.len());
    let size = size.expect("the build leaves it");
    assert!(size <= LIMIT, "{size} bytes, of {LIMIT}");
}
