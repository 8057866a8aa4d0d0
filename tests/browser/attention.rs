//! Tests the attention page: its figures equal the engine's, and everything shown can be exported.

use vramscope_engine::attention::{Algorithm, Call, memory, time};
use vramscope_engine::device::Device;
use vramscope_engine::{Model, Setup};

use crate::page::with_page;
use crate::saved;

/// GPT-2's attention on the default card.
fn call() -> (Call, &'static Device) {
    let model = Model::from_catalogue("gpt2").expect("it is in the catalogue");
    let card = Device::by_name("H100 SXM").expect("it is known");
    (Call::of(&model, &Setup::default()), card)
}

#[tokio::test]
async fn figures_are_the_engines_at_the_length_of_the_link() {
    with_page("#/attention?model=gpt2&at=3000", async |page| {
        let (call, card) = call();
        let gpu = card.gpu().expect("its shape is known");
        for algorithm in [
            Algorithm::Standard,
            Algorithm::Flash,
            Algorithm::Sliding,
            Algorithm::TopK,
            Algorithm::Chunked,
        ] {
            let name = format!("memory-{}", algorithm.name());
            let peak = memory(&call, algorithm, 3000, gpu).expect("it runs").peak;
            page.value(&name).holds(&peak.get().to_string()).await?;
            let estimate = time(&call, algorithm, 3000, card).expect("its rates are known").total;
            let shown = page.value(&format!("time-{}", algorithm.name()));
            shown.holds(&(estimate.get() * 1e3).to_string()).await?;
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_formula_adds_up_to_the_curve() {
    with_page("#/attention?model=gpt2&at=2048", async |page| {
        page.value("memory-chunked").present().await?;
        page.find("formula-chunked").await?;
        page.run("document.querySelector('[data-testid=formula-chunked]').click()")
            .await?;
        let wanted = page.value("memory-chunked").present().await?;
        page.until(
            "formula",
            || page.value("formula-memory"),
            |now| now.as_ref() == Some(&wanted),
        )
        .await?;
        let terms = "return [...document.querySelectorAll('[data-testid=formula-term]')]\
                     .reduce((sum, row) => sum + Number(row.dataset.value), 0)";
        let sum: u64 = wanted.parse().expect("a number");
        // The rest is rounding.
        let whole = |terms: &u64| *terms <= sum && *terms * 100 > sum * 99;
        page.script::<u64>(terms).named("the terms").until(whole).await?;
        page.text("formula").contains("B·H").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn switches_and_keys_are_in_the_link() {
    with_page("#/attention?model=gpt2", async |page| {
        page.value("memory-flash").present().await?;
        for testid in ["show-topk", "log_y"] {
            let click = format!("document.querySelector('[data-testid={testid}]').click()");
            page.run(&click).await?;
        }
        let wanted = "#/attention?model=gpt2&algorithms=standard%2Cflash%2Csliding%2Cchunked&log_y=false";
        page.until("fragment", || page.fragment(), |now| now == wanted).await?;
        let slider = page.find("memory-slider").await?;
        slider.focus().await?;
        slider.send_keys(thirtyfour::Key::Right + "").await?;
        page.until("here", || page.value("here"), |now| now.as_deref() == Some("3072"))
            .await?;
        page.until("fragment", || page.fragment(), |now| now.contains("at=3072"))
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn data_and_drawing_can_be_saved() {
    with_page("#/attention?model=gpt2&longest=1024&at=1024", async |page| {
        page.value("memory-chunked").present().await?;
        let (name, csv) = saved::text(page, "attention-memory-csv").await?;
        assert_eq!(name, "gpt2-b1-attention-memory.csv");
        let last = csv.lines().last().expect("rows").to_owned();
        let standard = page.value("memory-standard").present().await?;
        assert!(last.starts_with(&format!("1024,{standard},")), "{last}");
        assert!(csv.contains("FlashAttention 2 (bytes)"), "{csv}");

        let (name, svg) = saved::text(page, "attention-time-svg").await?;
        assert!(name.ends_with("-attention-time.svg"), "{name}");
        let faults = "const doc = new DOMParser().parseFromString(arguments[0], 'image/svg+xml');\
                      return [doc.querySelectorAll('parsererror').length, doc.querySelectorAll('path').length]";
        // It is XML, and more lines than a frame has.
        let counts = page.script_with::<[u64; 2]>(faults, vec![svg.into()]);
        counts.until(|[faults, lines]| *faults == 0 && *lines > 10).await?;

        let (name, png) = saved::text(page, "attention-memory-png").await?;
        assert!(name.ends_with(".png") && png.contains("PNG"), "{name}");
        Ok(())
    })
    .await;
}

/// Puts a file into the page's file input.
const OPEN: &str = "const data = new DataTransfer(); data.items.add(new File([arguments[0]], 'mine.json'));\
                    const field = document.querySelector('[data-testid=record-file]'); field.files = data.files;\
                    field.dispatchEvent(new Event('change', { bubbles: true }))";

#[tokio::test]
async fn a_record_is_drawn_and_a_wrong_one_is_explained() {
    with_page("#/attention?model=gpt2&causal=false", async |page| {
        page.value("memory-flash").present().await?;
        let record = r#"{"attention":[{"variant":"flash","length":1024,"ms":0.2,"peak_extra_bytes":5000000},
            {"variant":"flash","heads":99,"length":1024,"ms":0.2}]}"#;
        page.run_with(OPEN, vec![record.into()]).await?;
        let state = || page.text("record-state");
        page.until("record", state, |now| now.contains("1 of 2")).await?;
        let (_, csv) = saved::text(page, "attention-memory-csv").await?;
        assert!(csv.contains("5000000"), "{csv}");

        page.run_with(OPEN, vec![r#"{"attention":[{"variant":"flsh"}]}"#.into()])
            .await?;
        let error = page
            .until("error", || page.text("record-error"), |e| !e.is_empty())
            .await?;
        assert!(error.contains("flsh") && error.contains("standard"), "{error}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_pages_are_linked_with_what_is_entered() {
    with_page("#/?model=gpt2&batch=3", async |page| {
        page.click("nav/attention").await?;
        page.value("memory-flash").present().await?;
        page.fragment().is("#/attention?model=gpt2&batch=3").await?;
        page.click("nav/").await?;
        page.value("peak-allocated").present().await?;
        page.fragment().is("#/?model=gpt2&batch=3").await?;
        Ok(())
    })
    .await;
}
