//! Tests the lazily loaded chunks of the program.

use crate::page::with_page;

#[tokio::test]
async fn a_page_that_cannot_be_fetched_says_so_and_comes_when_asked_again() {
    with_page("#/?model=gpt2&batch=3", async |page| {
        let asked = "return performance.getEntriesByType('resource').some((e) => e.name.includes('/chunks/course-'))";
        assert!(!page.driver.execute(asked, vec![]).await?.convert::<bool>()?);
        let gone = "const real = fetch; globalThis.fetch = (...all) => \
                    String(all[0]).includes('/chunks/') ? Promise.reject(new TypeError('gone')) : real(...all); \
                    globalThis.mend = () => { globalThis.fetch = real; }; \
                    location.hash = '#/course?batch=3'";
        page.driver.execute(gone, vec![]).await?;
        page.until(
            "a word of it",
            || page.text("unloaded"),
            |text| text.contains("could not be loaded"),
        )
        .await?;
        page.driver.execute("mend()", vec![]).await?;
        page.click("load-again").await?;
        page.until("the course", || page.value("course-row"), Option::is_some)
            .await?;
        assert_eq!(page.fragment().await?, "#/course?batch=3", "what was entered stays");
        Ok(())
    })
    .await;
}
