//! Tests the page as a single file.

use crate::page::{built, with_browser};

#[tokio::test]
async fn one_file_is_the_whole_page() {
    let path = built().join("vramscope.html");
    with_browser(&format!("file://{}", path.display()), async |page| {
        page.go("#/?model=gpt2&batch=2").await?;
        let before = page.value("peak-allocated").present().await?;
        page.enter("batch", "8").await?;
        page.changed("peak-allocated", &before).await?;
        page.fragment().is("#/?model=gpt2&batch=8").await?;
        page.choose("language", "zh-TW").await?;
        page.text("verdict").contains("需要").await?;
        // A file has nothing beside it.
        page.value("single-file").absent().await?;
        page.text("copy-embed").is("").await?;

        // Lazily loaded parts, on the page and in its workers.
        for (route, shown) in [("attention", "memory-chunked"), ("course", "course-progress")] {
            page.go(&format!("#/{route}?model=gpt2")).await?;
            page.value(shown).present().await?;
        }
        page.go("#/recommend?model=gpt2&gpu=RTX 4060&seq=256&effective=8&open=optim,batch")
            .await?;
        page.click("plan-go").await?;
        page.value("plan-recommended").present().await?;
        page.go("#/diagnose").await?;
        page.enter("diagnose-text", "CUDA out of memory. Tried to allocate 2.50 GiB")
            .await?;
        page.click("diagnose-go").await?;
        page.value("finding").present().await?;

        let asked = "return performance.getEntriesByType('resource').map((e) => e.name)\
                     .filter((name) => !/^(blob|data):/.test(name))";
        page.script::<Vec<String>>(asked).is(Vec::<String>::new()).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}
