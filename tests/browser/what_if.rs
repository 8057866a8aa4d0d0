//! Tests single changes to the setup.

use serde_json::{Map, Value, json};
use thirtyfour::error::WebDriverResult;

use crate::Page;
use crate::page::{Shown, with_page};
use crate::same_bytes::command_line;

const FRAGMENT: &str = "#/?model=gpt2&gpu=H200&seq=512";

fn case(change: (&str, Value)) -> Map<String, Value> {
    let mut case = Map::from_iter([("model".into(), "gpt2".into()), ("seq".into(), 512.into())]);
    case.insert(change.0.into(), change.1);
    case
}

fn reserved(line: &Value) -> i64 {
    line["peak_reserved"].as_i64().expect("it runs")
}

/// Signed bytes of a change such as `ckpt=full`, once it is tried; `None` if it cannot run.
async fn row(page: &Page, name: &str) -> WebDriverResult<Option<i64>> {
    let script = "const row = document.querySelector(`[data-testid=what-if-row][data-name='${arguments[0]}']`);\
                  return row && { value: row.dataset.value ?? null, disabled: row.disabled }";
    let row = page.script_with::<Option<Value>>(script, vec![name.into()]).named(name);
    let row = row.present().await?;
    assert_eq!(row["value"].is_null(), row["disabled"], "{name}");
    Ok(row["value"]
        .as_str()
        .map(|bytes| bytes.parse().expect("a whole number")))
}

#[tokio::test]
async fn a_change_is_the_difference_of_two_runs_of_the_command_line() {
    with_page(FRAGMENT, async |page| {
        let changes = [
            ("ckpt", json!("full")),
            ("optim", json!("sgd")),
            ("precision", json!("fp32")),
            ("batch", json!(2)),
            ("seq", json!(256)),
            ("clip", json!(true)),
        ];
        let mut cases = vec![case(("seq", json!(512)))];
        cases.extend(changes.iter().cloned().map(case));
        let lines = command_line(&cases);
        for ((key, value), line) in changes.iter().zip(&lines[1..]) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let shown = row(page, &format!("{key}={text}")).await?;
            assert_eq!(shown, Some(reserved(line) - reserved(&lines[0])), "{key}={text}");
        }
        assert_eq!(row(page, "freeze=lora").await?, None, "GPT-2 takes no adapters");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn changes_to_adapters_are_the_differences_of_the_command_line() {
    with_page("#/?model=qwen2.5-0.5b&gpu=H200&seq=512&freeze=lora", async |page| {
        let own = |targets: &str| {
            let case = json!({"model": "qwen2.5-0.5b", "seq": 512, "freeze": "lora", "lora_targets": targets});
            case.as_object().cloned().expect("a case")
        };
        let lines = command_line(&["projections", "attention", "all-linear"].map(own));
        for (targets, line) in ["attention", "all-linear"].iter().zip(&lines[1..]) {
            let shown = row(page, &format!("lora_targets={targets}")).await?;
            assert_eq!(shown, Some(reserved(line) - reserved(&lines[0])), "{targets}");
        }
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

/// The list stands until other changes are tried: drawn anew at each entry, it doubled the time of each.
#[tokio::test]
async fn an_entry_leaves_the_list_as_it_is() {
    with_page("#/?model=llava-1.5-7b&gpu=H200", async |page| {
        page.find("what-if-dry-run").await?;
        let script = "
            const [done] = arguments;
            const row = document.querySelector('[data-testid=what-if-row]');
            const results = document.getElementById('results');
            const peak = () => results.querySelector('[data-testid=peak-allocated]').dataset.value;
            const before = peak();
            const observer = new MutationObserver(() => {
                if (peak() === before) return;
                observer.disconnect();
                done(row.isConnected);
            });
            observer.observe(results, { subtree: true, attributes: true, attributeFilter: ['data-value'] });
            const batch = document.querySelector('input[data-testid=batch]');
            batch.value = '3';
            batch.dispatchEvent(new Event('input', { bubbles: true }));
        ";
        assert!(page.promise::<bool>(script, vec![]).await?, "the list is drawn anew");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_change_that_is_picked_is_applied() {
    with_page(FRAGMENT, async |page| {
        let difference = row(page, "optim=sgd").await?.expect("it runs");
        let before = page.value("peak-reserved").present().await?;
        let press = "document.querySelector(`[data-testid=what-if-row][data-name='optim=sgd']`).click()";
        page.run(press).await?;
        let after = page.changed("peak-reserved", &before).await?;
        let bytes = |text: &str| text.parse::<i64>().expect("a whole number");
        assert_eq!(bytes(&after) - bytes(&before), difference);
        page.fragment().contains("optim=sgd").await?;
        // Returning to the first optimizer is now one of the changes.
        assert_eq!(row(page, "optim=adamw").await?, Some(-difference));
        Ok(())
    })
    .await;
}

/// Names of the rows, in the order of the document.
fn order(page: &Page) -> Shown<'_, Vec<String>> {
    let script = "return [...document.querySelectorAll('[data-testid=what-if-row]')].map(row => row.dataset.name)";
    page.script(script)
}

/// Under the pointer the order stays, and what undoes a change takes its place; once it is left, the largest saving comes
/// first again.
#[tokio::test]
async fn no_row_changes_its_place_under_the_pointer() {
    with_page(FRAGMENT, async |page| {
        row(page, "optim=sgd").await?;
        let before = order(page).until(|rows| !rows.is_empty()).await?;
        // A real press: it brings the pointer there.
        page.click_at("[data-testid=what-if-row][data-name='optim=sgd']")
            .await?;
        row(page, "optim=adamw").await?;
        let wanted: Vec<String> = before
            .iter()
            .map(|name| match name.as_str() {
                "optim=sgd" => "optim=adamw".to_owned(),
                _ => name.clone(),
            })
            .collect();
        let kept = |names: &[String]| {
            names
                .iter()
                .filter(|name| wanted.contains(name))
                .cloned()
                .collect::<Vec<_>>()
        };
        // All rows that stay are where they were.
        order(page).until(|after| kept(after) == wanted).await?;
        Ok(())
    })
    .await;
}
