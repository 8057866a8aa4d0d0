//! Tests the use of the page with the keyboard alone.

use thirtyfour::prelude::*;

use crate::Page;
use crate::page::with_page;

async fn press(page: &Page, key: Key) -> WebDriverResult<()> {
    page.driver.action_chain().send_keys(key + "").perform().await
}

/// Test id, or else class, of the focused element.
async fn focused(page: &Page) -> WebDriverResult<String> {
    let script = "const e = document.activeElement; return e.dataset.testid || e.className || e.tagName";
    page.driver.execute(script, vec![]).await?.convert()
}

/// Presses Tab until an element has the focus.
async fn tab_to(page: &Page, wanted: &str) -> WebDriverResult<()> {
    for _ in 0..160 {
        press(page, Key::Tab).await?;
        if focused(page).await? == wanted {
            return Ok(());
        }
    }
    panic!("Tab never reaches {wanted}");
}

#[tokio::test]
async fn tab_goes_through_the_page_and_the_focus_is_always_seen() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        press(page, Key::Tab).await?;
        assert_eq!(focused(page).await?, "skip");
        let unseen = "const e = document.activeElement;
            const ring = x => x && getComputedStyle(x).outlineStyle !== 'none' && parseFloat(getComputedStyle(x).outlineWidth) >= 2;
            // Radios and switches are drawn by what stands beside or around them.
            return [e, e.closest('label'), e.closest('.number'), e.nextElementSibling].some(ring) ? '' : (e.outerHTML.slice(0, 120))";
        let mut reached = Vec::new();
        for _ in 0..140 {
            press(page, Key::Tab).await?;
            let hidden: String = page.driver.execute(unseen, vec![]).await?.convert()?;
            assert_eq!(hidden, "", "the focus is not seen");
            reached.push(focused(page).await?);
        }
        for testid in ["share", "language", "model", "gpu", "batch", "seq", "optim", "peak-allocated", "timeline"] {
            assert!(reached.iter().any(|r| r == testid), "{testid} is not in {reached:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_skip_link_leads_to_the_results() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        press(page, Key::Tab).await?;
        press(page, Key::Enter).await?;
        let id: String = page
            .driver
            .execute("return document.activeElement.id", vec![])
            .await?
            .convert()?;
        assert_eq!(id, "results");
        assert_eq!(page.fragment().await?, "#/?model=gpt2");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_card_is_chosen_from_the_list_by_keyboard() {
    with_page("#/?model=gpt2", async |page| {
        let before = page
            .until("a verdict", || page.text("verdict"), |t| !t.is_empty())
            .await?;
        tab_to(page, "gpu").await?;
        press(page, Key::Down).await?;
        page.driver.query(By::Css("[role=listbox]")).first().await?;
        press(page, Key::End).await?;
        let marked = "const e = document.activeElement;
            return document.getElementById(e.getAttribute('aria-activedescendant'))?.getAttribute('aria-selected')";
        let marked: Option<String> = page.driver.execute(marked, vec![]).await?.convert()?;
        assert_eq!(marked.as_deref(), Some("true"));
        press(page, Key::Enter).await?;
        page.until("another verdict", || page.text("verdict"), |now| *now != before)
            .await?;
        assert_eq!(focused(page).await?, "gpu");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_number_is_explained_and_the_focus_comes_back() {
    with_page("#/?model=gpt2", async |page| {
        page.find("peak-allocated").await?;
        tab_to(page, "peak-reserved").await?;
        press(page, Key::Enter).await?;
        page.until("its result", || page.value("derivation-result"), Option::is_some)
            .await?;
        let inside = "return document.querySelector('#derivation').contains(document.activeElement)";
        let inside: bool = page.driver.execute(inside, vec![]).await?.convert()?;
        assert!(inside, "the panel has the focus");
        press(page, Key::Escape).await?;
        page.until("the focus", || focused(page), |now| now == "peak-reserved")
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn lines_of_the_breakdown_open_by_keyboard_and_keep_the_focus() {
    with_page("#/?model=gpt2", async |page| {
        page.find("breakdown-row").await?;
        let focus = "const twist = document.querySelector('[data-testid=breakdown-row].depth-2 .twist');
            twist.focus(); return document.querySelectorAll('[data-testid=breakdown-row]').length";
        let before: usize = page.driver.execute(focus, vec![]).await?.convert()?;
        press(page, Key::Enter).await?;
        let rows = || async {
            let script = "return document.querySelectorAll('[data-testid=breakdown-row]').length";
            page.driver.execute(script, vec![]).await?.convert::<usize>()
        };
        page.until("more lines", rows, |now| *now > before).await?;
        let open = "return document.activeElement.matches('.depth-2 .twist[aria-expanded=true]')";
        let open = || async { page.driver.execute(open, vec![]).await?.convert::<bool>() };
        page.until("the focus on the same line", open, |open| *open).await?;
        Ok(())
    })
    .await;
}
