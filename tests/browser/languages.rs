//! Tests the choice of language and theme.

use crate::page::with_page;

#[tokio::test]
async fn a_language_is_chosen_by_hand_and_remembered() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let verdict = || page.text("verdict");
        verdict().contains("on H100 SXM").await?;
        page.choose("language", "zh-CN").await?;
        page.until("simplified", verdict, |t| t.contains("需要")).await?;
        page.go("").await?;
        page.until("remembered", verdict, |t| t.contains("需要")).await?;
        page.choose("language", "zh-TW").await?;
        page.until("traditional", verdict, |t| t.contains("還剩") || t.contains("超出"))
            .await?;
        page.script::<String>("return document.documentElement.lang")
            .is("zh-TW")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_theme_is_chosen_by_hand() {
    with_page("#/?theme=light", async |page| {
        let background = || page.script::<String>("return getComputedStyle(document.body).backgroundColor");
        let light = background().nonempty().await?;
        page.choose("theme", "dark").await?;
        page.until("background", background, |now| *now != light).await?;
        Ok(())
    })
    .await;
}
