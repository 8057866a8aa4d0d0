//! Tests the course.

use thirtyfour::prelude::*;
use xtask::static_server::Server;

use crate::accessible::set_width;
use crate::page::{Page, Shown, built, with_browser, with_page};

/// Ids of the course's rows; each has a page.
const ROWS: &str = include_str!("../../src/app/course/rows.txt");

fn answer<'a, T: serde::de::DeserializeOwned>(page: &'a Page, script: &str) -> Shown<'a, T> {
    page.script(script)
}

/// Navigates within the page without reloading it.
async fn turn_to(page: &Page, fragment: &str) -> WebDriverResult<()> {
    page.run_with("location.hash = arguments[0]", vec![fragment.into()])
        .await?;
    Ok(())
}

/// Waits for the page of a row and returns its title and text length.
async fn row(page: &Page, id: &str) -> WebDriverResult<(String, usize)> {
    let read = || page.value("course-row");
    page.until(id, read, |shown| shown.as_deref() == Some(id)).await?;
    let said = "const row = document.querySelector('.course-row');\
                return [row.querySelector('h2').textContent, row.textContent.length]";
    answer::<(String, usize)>(page, said)
        .until(|(_, length)| *length > 60)
        .await
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
                let (title, _) = row(page, id).await?;
                assert!(!title.is_empty(), "{language} {id}");
                let unsaid = answer::<usize>(page, UNSAID);
                unsaid
                    .named(&format!("{language} {id}: titles and labels that are missing"))
                    .is(0_usize)
                    .await?;
                titles.push(title);
            }
            let contents = answer::<Vec<String>>(page, CONTENTS).named(language);
            contents.is(ROWS.lines().collect::<Vec<_>>()).await?;
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
        // Only its style is fetched by who does not open it.
        answer::<usize>(page, asked).until(|asked| *asked <= 1).await?;
        server.stop();
        page.go("#/course?row=V.table").await?;
        row(page, "V.table").await?;
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
        // The lab's sweep goes from the optimizer to backward.
        let goes_on = |phases: &Vec<String>| phases.len() > 4 && phases[0] == phases[2] && phases[0] != phases[4];
        answer::<Vec<String>>(page, phases).until(goes_on).await?;
        Ok(())
    })
    .await;
}

fn line<'a>(page: &'a Page, name: &str) -> Shown<'a, f64> {
    let script =
        "return Number(document.querySelector(`[data-testid=course-line][data-name=${arguments[0]}]`).dataset.value)";
    page.script_with(script, vec![name.into()])
}

#[tokio::test]
async fn what_is_moved_is_computed_and_stays_in_the_link() {
    with_page("#/course?row=9.vision", async |page| {
        line(page, "per_image").is(5329.0).await?;
        page.enter("course-side", "448").await?;
        page.until("the tokens", || line(page, "per_image"), |tokens| *tokens == 1024.0)
            .await?;
        let fragment = || page.fragment();
        let link = page
            .until("the link", fragment, |link| link.contains("tokens.side"))
            .await?;
        page.go(&link).await?;
        row(page, "9.vision").await?;
        line(page, "per_image").is(1024.0).await?;
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
            page.value("course-feedback").named(typed).holds(wanted).await?;
            page.text("course-feedback").nonempty().await?;
        }
        page.click("course-variant").await?;
        page.fragment().contains("seed=1").await?;
        let first = page.text_at(".course-task").nonempty().await?;
        page.go("#/course?row=9.1&seed=1").await?;
        row(page, "9.1").await?;
        // A seed gives the same numbers to everybody.
        page.text_at(".course-task").is(first).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn ticks_stay_and_a_tree_ends_in_a_link() {
    with_page("#/course?row=9.diagnose", async |page| {
        row(page, "9.diagnose").await?;
        let tick = "document.querySelector('[data-tick=\"9.diagnose/five/2\"]').click()";
        page.run(tick).await?;
        page.run("document.querySelector('[data-tick=\"9.diagnose\"]').click()")
            .await?;
        page.go("#/course?row=9.diagnose").await?;
        row(page, "9.diagnose").await?;
        let ticked = "return document.querySelector('[data-tick=\"9.diagnose/five/2\"]').checked";
        answer::<bool>(page, ticked).is(true).await?;
        page.value("course-progress").holds("1").await?;

        turn_to(page, "#/course?row=L.tree").await?;
        row(page, "L.tree").await?;
        for to in ["half", "use_half"] {
            page.run_with(
                "document.querySelector(`[data-to=${arguments[0]}]`).click()",
                vec![to.into()],
            )
            .await?;
        }
        page.attr("course-leaf", "href").holds("#/?precision=bf16").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_presenter_turns_pages_and_a_figure_stands_alone() {
    with_page("#/course?row=9.params&present=1", async |page| {
        row(page, "9.params").await?;
        let body = page.find_at("body").await?;
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
        line(page, "scores").is(536870912.0).await?;
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
        let are_whole = |all: &Vec<[String; 3]>| {
            all.len() == 4 && all.iter().all(|[title, about, _]| !title.is_empty() && about.len() > 40)
        };
        let leads_to = |all: &Vec<[String; 3]>, row: &str| all.first().is_some_and(|[_, _, link]| link.contains(row));
        read().until(|all| are_whole(all) && leads_to(all, "row=9.params")).await?;
        page.click_at("[data-testid=course-part] a").await?;
        row(page, "9.params").await?;
        page.run("document.querySelector('[data-tick=\"9.params\"]').click()").await?;
        page.go("#/course").await?;
        page.find("course-cover").await?;
        // The next page.
        read().until(|all| leads_to(all, "row=9.grads")).await?;
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
        answer::<usize>(page, open).is(0_usize).await?;
        let seen = "return document.querySelector('.course-row').innerText";
        let hides = |seen: &String| !seen.contains("173.62") && !seen.contains("161.7");
        answer::<String>(page, seen).until(hides).await?;
        Ok(())
    })
    .await;
}
