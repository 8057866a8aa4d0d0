//! Tests the course.

use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::accessible::set_width;
use crate::page::{Page, built, with_browser, with_page};

/// Ids of the course's rows; each has a page.
const ROWS: &str = include_str!("../../src/app/course/rows.txt");

async fn answer<T: serde::de::DeserializeOwned>(page: &Page, script: &str) -> WebDriverResult<T> {
    page.driver.execute(script, vec![]).await?.convert()
}

/// Navigates within the page without reloading it.
async fn turn_to(page: &Page, fragment: &str) -> WebDriverResult<()> {
    page.driver
        .execute("location.hash = arguments[0]", vec![fragment.into()])
        .await?;
    Ok(())
}

/// Waits for the page of a row and returns its title and text length.
async fn row(page: &Page, id: &str) -> WebDriverResult<(String, usize)> {
    let read = || page.value("course-row");
    page.until(id, read, |shown| shown.as_deref() == Some(id)).await?;
    let said = "const row = document.querySelector('.course-row');\
                return [row.querySelector('h2').textContent, row.textContent.length]";
    answer(page, said).await
}

/// Number of headings and labels of the open row that say nothing.
const UNSAID: &str = "return [...document.querySelectorAll('.course-row :is(h2, h3, th[scope=row])')]\
    .filter((e) => !e.firstChild?.textContent.trim()).length";

/// Rows that the contents lead to, in order.
const CONTENTS: &str = "return [...document.querySelectorAll('.course-contents li a')]\
    .map((a) => new URLSearchParams(a.hash.split('?')[1]).get('row'))";

#[tokio::test]
async fn every_row_opens_in_three_languages_from_one_file() {
    let path = built().join("vramscope.html");
    with_browser(&format!("file://{}", path.display()), async |page| {
        let mut titles = Vec::new();
        for language in ["en", "zh-CN", "zh-TW"] {
            page.go(&format!("#/course?lang={language}")).await?;
            for id in ROWS.lines() {
                turn_to(page, &format!("#/course?row={id}&lang={language}")).await?;
                let (title, length) = row(page, id).await?;
                assert!(!title.is_empty() && length > 60, "{language} {id}: {title}");
                assert_eq!(
                    answer::<usize>(page, UNSAID).await?,
                    0,
                    "{language} {id}: a title or a label is missing"
                );
                titles.push(title);
            }
            let contents: Vec<String> = answer(page, CONTENTS).await?;
            assert_eq!(contents, ROWS.lines().collect::<Vec<_>>(), "{language}");
        }
        let rows = ROWS.lines().count();
        let differ = (0..rows).filter(|i| titles[*i] != titles[i + rows]).count();
        assert!(differ > rows / 2, "{differ} titles of {rows} are of another language");
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_contents_show_where_the_reader_is() {
    let last = ROWS.lines().last().expect("there are rows");
    with_page(&format!("#/course?row={last}"), async |page| {
        for width in [1440, 390] {
            set_width(page, width).await?;
            page.go(&format!("#/course?row={last}")).await?;
            row(page, last).await?;
            let inside = "const list = document.querySelector('.course-contents').getBoundingClientRect();
                const here = document.querySelector('.course-contents [aria-current]').getBoundingClientRect();
                return here.height > 0 && here.top >= list.top && here.bottom <= list.bottom";
            page.until("the list is there", || answer::<bool>(page, inside), |inside| *inside)
                .await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_course_is_kept_for_use_offline() {
    let server = Server::start(built(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.go("").await?;
        let kept = "return Boolean(navigator.serviceWorker.controller)";
        page.until("the page is kept", || answer::<bool>(page, kept), |kept| *kept)
            .await?;
        let asked = "return performance.getEntriesByType('resource').filter((e) => /course/.test(e.name)).length";
        let asked: usize = answer(page, asked).await?;
        server.stop();
        page.go("#/course?row=V.table").await?;
        row(page, "V.table").await?;
        assert!(asked <= 1, "only its style is fetched by who does not open it: {asked}");
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn simulated_peaks_stand_beside_what_was_measured() {
    with_page("#/course?row=L.batch", async |page| {
        let peaks =
            "return [...document.querySelectorAll('[data-testid=course-peak]')].map((e) => Number(e.dataset.value))";
        let read = || answer::<Vec<f64>>(page, peaks);
        let peaks = page.until("all are simulated", read, |peaks| peaks.len() == 6).await?;
        let measured = [2561869824.0, 2569078784.0, 2570389504.0, 3288697344.0, 4973227520.0];
        for (peak, measured) in peaks.iter().zip(measured) {
            assert!((peak / measured - 1.0_f64).abs() < 0.015, "{peak}, measured {measured}");
        }
        let phases = "return [...document.querySelectorAll('[data-testid=course-phase]')].map((e) => e.textContent)";
        let phases: Vec<String> = answer(page, phases).await?;
        assert_eq!(phases[0], phases[2]);
        assert_ne!(
            phases[0], phases[4],
            "the lab's sweep goes from the optimizer to backward"
        );
        Ok(())
    })
    .await;
}

async fn line(page: &Page, name: &str) -> WebDriverResult<f64> {
    let script =
        "return Number(document.querySelector(`[data-testid=course-line][data-name=${arguments[0]}]`).dataset.value)";
    page.driver.execute(script, vec![name.into()]).await?.convert()
}

#[tokio::test]
async fn what_is_moved_is_computed_and_stays_in_the_link() {
    with_page("#/course?row=9.vision", async |page| {
        assert_eq!(line(page, "per_image").await?, 5329.0);
        page.enter("course-side", "448").await?;
        page.until("the tokens", || line(page, "per_image"), |tokens| *tokens == 1024.0)
            .await?;
        let fragment = || page.fragment();
        let link = page
            .until("the link", fragment, |link| link.contains("tokens.side"))
            .await?;
        page.go(&link).await?;
        row(page, "9.vision").await?;
        assert_eq!(line(page, "per_image").await?, 1024.0);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn answers_are_judged_and_variants_come_from_the_seed() {
    with_page("#/course?row=9.1", async |page| {
        row(page, "9.1").await?;
        for (typed, wanted) in [
            ("173,62 GB", "right"),
            ("161.7 GiB", "right"),
            ("１７３．６２　ＧＢ", "right"),
            ("173.62 GiB", "wrong"),
            ("much", "wrong"),
        ] {
            page.enter("course-answer", typed).await?;
            page.click("course-check").await?;
            let judged = page.value("course-feedback").await?;
            assert_eq!(judged.as_deref(), Some(wanted), "{typed}");
            assert!(!page.text("course-feedback").await?.is_empty());
        }
        page.click("course-variant").await?;
        let task =
            || async { answer::<String>(page, "return document.querySelector('.course-task').textContent").await };
        page.until("the seed", || page.fragment(), |link| link.contains("seed=1"))
            .await?;
        let first = task().await?;
        page.go("#/course?row=9.1&seed=1").await?;
        row(page, "9.1").await?;
        assert_eq!(task().await?, first, "a seed gives the same numbers to everybody");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn ticks_stay_and_a_tree_ends_in_a_link() {
    with_page("#/course?row=9.diagnose", async |page| {
        row(page, "9.diagnose").await?;
        let tick = "document.querySelector('[data-tick=\"9.diagnose/five/2\"]').click()";
        page.driver.execute(tick, vec![]).await?;
        page.driver
            .execute("document.querySelector('[data-tick=\"9.diagnose\"]').click()", vec![])
            .await?;
        page.go("#/course?row=9.diagnose").await?;
        row(page, "9.diagnose").await?;
        let ticked = "return document.querySelector('[data-tick=\"9.diagnose/five/2\"]').checked";
        assert!(answer::<bool>(page, ticked).await?);
        assert_eq!(page.value("course-progress").await?.as_deref(), Some("1"));

        turn_to(page, "#/course?row=L.tree").await?;
        row(page, "L.tree").await?;
        for to in ["half", "use_half"] {
            page.driver
                .execute(
                    "document.querySelector(`[data-to=${arguments[0]}]`).click()",
                    vec![to.into()],
                )
                .await?;
        }
        let leaf = page.find("course-leaf").await?.attr("href").await?;
        assert_eq!(leaf.as_deref(), Some("#/?precision=bf16"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_presenter_turns_pages_and_a_figure_stands_alone() {
    with_page("#/course?row=9.params&present=1", async |page| {
        row(page, "9.params").await?;
        let body = page.driver.find(By::Css("body")).await?;
        body.send_keys(Key::Right).await?;
        row(page, "9.grads").await?;
        body.send_keys(Key::Left).await?;
        row(page, "9.params").await?;
        body.send_keys(Key::Escape).await?;
        let presenting = || answer::<bool>(page, "return document.documentElement.hasAttribute('data-present')");
        page.until("the end", presenting, |on| !on).await?;

        page.go("?embed=1#/course?row=9.attn&figure=scores").await?;
        let blocks = "return document.querySelectorAll('[data-block]').length";
        page.until("the figure", || answer::<usize>(page, blocks), |n| *n == 1)
            .await?;
        assert_eq!(line(page, "scores").await?, 536870912.0);
        page.go("#/course?row=L").await?;
        let rows = || answer::<usize>(page, "return document.querySelectorAll('.course-row').length");
        page.until("a part as a handout", rows, |rows| *rows == 9).await?;
        Ok(())
    })
    .await;
}

/// The cover has the parts, where each leads, and the page to go on with.
#[tokio::test]
async fn the_cover_shows_the_parts_and_the_readers_progress() {
    with_page("#/course", async |page| {
        page.find("course-cover").await?;
        let parts = "return [...document.querySelectorAll('[data-testid=course-part]')].map((part) =>
            [part.querySelector('h3').textContent, part.querySelector('p').textContent, part.querySelector('a').getAttribute('href')])";
        let read = || answer::<Vec<[String; 3]>>(page, parts);
        let all = read().await?;
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|[title, about, _]| !title.is_empty() && about.len() > 40), "{all:?}");
        assert!(all[0][2].contains("row=9.params"), "{all:?}");
        page.click_at("[data-testid=course-part] a").await?;
        row(page, "9.params").await?;
        page.driver
            .execute("document.querySelector('[data-tick=\"9.params\"]').click()", vec![])
            .await?;
        page.go("#/course").await?;
        page.find("course-cover").await?;
        assert!(read().await?[0][2].contains("row=9.grads"), "the next page");
        Ok(())
    })
    .await;
}

/// An exercise shows its solution only to who asks for it.
#[tokio::test]
async fn an_exercise_keeps_its_answer_to_itself() {
    with_page("#/course?row=9.1", async |page| {
        row(page, "9.1").await?;
        let open =
            "return [...document.querySelectorAll('.course-exercise .course-solution')].filter((e) => e.open).length";
        assert_eq!(answer::<usize>(page, open).await?, 0);
        let seen = "return document.querySelector('.course-row').innerText";
        let seen: String = answer(page, seen).await?;
        assert!(!seen.contains("173.62") && !seen.contains("161.7"), "{seen}");
        Ok(())
    })
    .await;
}
