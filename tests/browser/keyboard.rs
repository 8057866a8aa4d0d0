//! Tests the use of the page with the keyboard alone.

use thirtyfour::prelude::*;

use crate::Page;
use crate::page::{Shown, with_page};

async fn press(page: &Page, key: Key) -> WebDriverResult<()> {
    page.keys(key + "").await
}

/// Test id, or else class, of the focused element.
fn focused(page: &Page) -> Shown<'_, String> {
    let script = "const e = document.activeElement; return e.dataset.testid || e.className || e.tagName";
    page.script(script)
}

/// Presses Tab until an element has the focus.
async fn tab_to(page: &Page, wanted: &str) -> WebDriverResult<()> {
    for _ in 0..160 {
        press(page, Key::Tab).await?;
        // A press of Tab is over once it is answered.
        if focused(page).nonempty().await? == wanted {
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
        focused(page).is("skip").await?;
        let unseen = "const e = document.activeElement;
            const ring = x => x && getComputedStyle(x).outlineStyle !== 'none' && parseFloat(getComputedStyle(x).outlineWidth) >= 2;
            // Radios and switches are drawn by what stands beside or around them.
            return [e, e.closest('label'), e.closest('.number'), e.nextElementSibling].some(ring) ? '' : (e.outerHTML.slice(0, 120))";
        let mut reached = Vec::new();
        for _ in 0..200 {
            press(page, Key::Tab).await?;
            page.script::<String>(unseen).is("").await?;
            reached.push(focused(page).nonempty().await?);
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
        page.script::<String>("return document.activeElement.id")
            .is("results")
            .await?;
        page.fragment().is("#/?model=gpt2").await?;
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
        page.find_at("[role=listbox]").await?;
        press(page, Key::End).await?;
        let marked = "const e = document.activeElement;
            return document.getElementById(e.getAttribute('aria-activedescendant'))?.getAttribute('aria-selected')";
        page.script::<Option<String>>(marked).holds("true").await?;
        press(page, Key::Enter).await?;
        page.until("another verdict", || page.text("verdict"), |now| *now != before)
            .await?;
        focused(page).is("gpu").await?;
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
        page.value("derivation-result").present().await?;
        let inside = "return document.querySelector('#derivation').contains(document.activeElement)";
        page.script::<bool>(inside)
            .named("the panel has the focus")
            .is(true)
            .await?;
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
        let rows = || {
            let script = "return document.querySelectorAll('[data-testid=breakdown-row]').length";
            page.script::<usize>(script)
        };
        let before = rows().until(|count| *count > 0).await?;
        page.find_at("[data-testid=breakdown-row].depth-2 .twist")
            .await?
            .focus()
            .await?;
        press(page, Key::Enter).await?;
        page.until("more lines", rows, |now| *now > before).await?;
        let open = "return document.activeElement.matches('.depth-2 .twist[aria-expanded=true]')";
        let open = || page.script::<bool>(open);
        page.until("the focus on the same line", open, |open| *open).await?;
        Ok(())
    })
    .await;
}
