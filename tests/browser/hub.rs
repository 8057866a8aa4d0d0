//! Models that are not built in: a stand-in of a hub answers the page, which asks it when it is told to.

#[path = "../command_line/hub/draw.rs"]
mod draw;
#[allow(dead_code, reason = "the command line's tests use more of it")]
#[path = "../command_line/hub/stand_in.rs"]
mod stand_in;

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;
use thirtyfour::prelude::*;
use xtask::static_server::Server;

use self::stand_in::{Repo, StandIn};
use crate::Page;
use crate::offline::copy_of_page;
use crate::page::{built, with_browser, with_page};
use crate::same_bytes::binary;

/// A configuration of a small Llama that no table knows.
fn small() -> Value {
    json!({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
        "tie_word_embeddings": false})
}

fn raw(head: &str) -> Repo {
    Repo::Raw(format!(
        "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
}

fn of_body(body: &str) -> Repo {
    let length = body.len();
    Repo::Raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

/// Puts the address of a hub, or none, into a copy of the built page, as a build with `HF_ENDPOINT` does.
fn page_for(name: &str, hub: &str) -> std::path::PathBuf {
    let folder = copy_of_page(name);
    let html = std::fs::read_to_string(folder.join("index.html")).expect("the page is there");
    let (_, rest) = html
        .split_once("name=\"model-hub\" content=\"")
        .expect("it names a hub");
    let (of_build, _) = rest.split_once('"').expect("an attribute");
    assert!(of_build.starts_with("https://"), "{of_build}");
    let with_hub = html.replace(of_build, hub);
    assert!(
        hub.is_empty() || with_hub.matches(hub).count() == 2,
        "in the policy too"
    );
    std::fs::write(folder.join("index.html"), with_hub).expect("it can be changed");
    // The packed ones are those of the build.
    for packed in ["index.html.br", "index.html.gz"] {
        std::fs::remove_file(folder.join(packed)).ok();
    }
    folder
}

/// Opens the page at a fragment beside a stand-in that has these repositories.
async fn with_hub<const N: usize>(
    name: &str,
    repos: [(&str, Repo); N],
    fragment: &str,
    test: impl AsyncFnOnce(&Page, &StandIn) -> WebDriverResult<()>,
) {
    let hub = StandIn::start(repos);
    let server = Server::start(page_for(name, &hub.address()), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.go(fragment).await?;
        test(page, &hub).await?;
        page.no_fault().await
    })
    .await;
}

/// Types a name into the field of the model, and takes it.
async fn name_model(page: &Page, name: &str) -> WebDriverResult<()> {
    page.enter("model", name).await?;
    page.find("model").await?.send_keys(Key::Enter + "").await
}

/// What the command line says of models by the ids of a stand-in.
fn command_line(hub: &StandIn, ids: &[String]) -> Vec<Value> {
    let home = tempfile::tempdir().expect("a folder");
    let cases: String = ids.iter().map(|id| format!("{}\n", json!({"model": id}))).collect();
    let cases_file = home.path().join("cases.jsonl");
    std::fs::write(&cases_file, cases).expect("a file of the test's own");
    let output = Command::new(binary())
        .args(["estimate", "--gpu", "H100 SXM", "--cases"])
        .arg(&cases_file)
        .env_clear()
        .env("HF_ENDPOINT", hub.address())
        .env("HOME", home.path())
        .stderr(Stdio::null())
        .output()
        .expect("the binary starts");
    let text = String::from_utf8(output.stdout).expect("it writes UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it writes JSON"))
        .collect()
}

/// Waits for the page's answer for an id: the command line's.
async fn answered(page: &Page, id: &str, line: &Value) -> WebDriverResult<()> {
    page.text("hub-said").named(id).contains(id).await?;
    match line.get("peak_allocated") {
        Some(bytes) => page.value("peak-allocated").named(id).holds(&bytes.to_string()).await,
        None => {
            page.text("refusal").named(id).nonempty().await?;
            page.value("peak-allocated").named(id).absent().await
        }
    }
}

#[tokio::test]
async fn every_known_family_is_answered_first_and_from_what_is_kept() {
    let rows = draw::drawn();
    let hub = StandIn::serve(draw::repos(&rows));
    let ids: Vec<String> = (0..draw::COUNT).map(draw::id).collect();
    let lines = command_line(&hub, &ids);
    assert_eq!(lines.len(), draw::COUNT);
    let answers = lines.iter().filter(|line| line.get("peak_allocated").is_some()).count();
    assert!(answers >= draw::COUNT / 2, "{answers}");
    let server = Server::start(page_for("drawn-models", &hub.address()), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.keep_nothing().await?;
        page.go("#/?model=llava-1.5-7b").await?;
        page.value("peak-allocated").present().await?;
        hub.take_requests();
        for (number, (id, line)) in ids.iter().zip(&lines).enumerate() {
            name_model(page, id).await?;
            if number == 0 {
                // Nothing is asked before it is told to.
                page.find("hub-get").await?;
                assert!(hub.take_requests().is_empty());
                page.click("hub-remember").await?;
                page.click("hub-get").await?;
            }
            answered(page, id, line).await?;
        }
        assert!(hub.take_requests().len() >= draw::COUNT);

        // Again, from what this browser has kept: no question.
        page.go("#/?model=llava-1.5-7b").await?;
        for (id, line) in ids.iter().zip(&lines).rev() {
            name_model(page, id).await?;
            answered(page, id, line).await?;
        }
        assert!(hub.take_requests().is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_press_gets_an_id_whose_link_needs_no_hub() {
    let repo = Repo::of_files(
        [("config.json", small())],
        json!({"safetensors": {"parameters": {"BF16": 1_000_000}}}),
    );
    with_hub("one-press", [("someone/model", repo)], "#/?model=someone/model", async |page, hub| {
        page.text("hub").contains("someone/model").await?;
        page.text("hub-get").contains("Get config.json from").await?;
        page.value("peak-allocated").absent().await?;
        assert!(hub.take_requests().is_empty());
        page.click("hub-get").await?;
        let bytes = page.value("peak-allocated").present().await?;
        let said = page.text("hub-said").contains("someone/model at 127.0.0.1").await?;
        assert!(said.contains("hold 1000000 parameters"), "{said}");
        page.prop("model", "value").holds("someone/model").await?;
        page.text("command").contains("vramscope estimate someone/model").await?;
        let asked = hub.take_requests();
        assert!(asked.iter().all(|request| !request.headers.contains_key("cookie")));
        assert!(asked.iter().all(|request| !request.headers.contains_key("referer")), "{asked:?}");

        // The link has the configuration in it.
        let link = page.fragment().contains("config=").await?;
        page.run("localStorage.clear()").await?;
        page.go(&link).await?;
        page.value("peak-allocated").holds(&bytes).await?;
        page.prop("model", "value").holds("someone/model").await?;
        assert!(hub.take_requests().is_empty());

        // Another model, and back over the browser's history.
        name_model(page, "gpt2").await?;
        page.changed("peak-allocated", &bytes).await?;
        page.fragment().is("#/?model=gpt2").await?;
        page.back().await?;
        page.value("peak-allocated").holds(&bytes).await?;
        // An edited configuration is nobody's.
        page.click("from-config").await?;
        let edit = "const area = document.querySelector('[data-testid=config]'); \
                    area.value = area.value.replace('\"vocab_size\":1000', '\"vocab_size\":2000').replace('\"vocab_size\": 1000', '\"vocab_size\": 2000'); \
                    area.dispatchEvent(new Event('input', { bubbles: true }))";
        page.run(edit).await?;
        page.changed("peak-allocated", &bytes).await?;
        page.text("command").contains("--config -").await?;
        Ok(())
    })
    .await;
}

/// What stands in for a repository's own code: the same model in transformers' form, or a larger one.
#[tokio::test]
async fn a_model_whose_repository_brings_its_code_says_what_stands_in_for_it() {
    const SAME: &str = include_str!("../../src/hub/own_code/OpenGVLab/InternVL2-2B.json");
    const LARGER: &str = include_str!("../../src/hub/own_code/openbmb/MiniCPM-Llama3-V-2_5.json");
    let repo = |text: &str| Repo::of_config(&serde_json::from_str(text).expect("a configuration"));
    let repos = [
        ("someone/tuned-internvl", repo(SAME)),
        ("someone/tuned-minicpm", repo(LARGER)),
    ];
    with_hub("own-code", repos, "#/?model=llava-1.5-7b", async |page, _| {
        for (id, part) in [
            ("someone/tuned-internvl", "the same model in transformers’ form"),
            ("someone/tuned-minicpm", "needs at most as much"),
        ] {
            name_model(page, id).await?;
            page.click("hub-get").await?;
            page.text("hub-said").named(id).contains(part).await?;
            page.value("peak-allocated").named(id).present().await?;
        }
        Ok(())
    })
    .await;
}

/// Ids, how the hub answers for each, the kind of the error, and a part of what is said of it.
fn bad_answers() -> [(&'static str, Repo, &'static str, &'static str); 12] {
    let away = "302 Found\r\nLocation: http://localhost:9/someone/away/resolve/main/config.json";
    [
        (
            "someone/gated",
            raw("403 Forbidden\r\nX-Error-Code: GatedRepo"),
            "gated",
            "accepted its terms",
        ),
        (
            "someone/closed",
            raw("401 Unauthorized\r\nX-Error-Code: GatedRepo"),
            "gated",
            "no account",
        ),
        ("someone/many", raw("429 Too Many Requests"), "too_many", "429"),
        (
            "someone/down",
            raw("503 Service Unavailable"),
            "no_answer",
            "status 503",
        ),
        (
            "someone/html",
            of_body("<!DOCTYPE html><html>Log in</html>"),
            "wrong_answer",
            "an HTML page",
        ),
        ("someone/list", of_body("[]"), "wrong_answer", "JSON that is no object"),
        (
            "someone/pointer",
            of_body("version https://git-lfs.github.com/spec/v1\n"),
            "wrong_answer",
            "Git LFS",
        ),
        ("someone/huge", Repo::Endless, "no_answer", "more than 4 MiB"),
        (
            "someone/cut",
            Repo::Raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"model_type\"".into()),
            "no_answer",
            "broke off",
        ),
        ("someone/away", raw(away), "no_answer", "gave no answer"),
        (
            "someone/empty",
            Repo::of_files([("README.md", json!(""))], json!({})),
            "no_config",
            "no config.json",
        ),
        (
            "someone/new",
            Repo::of_config(&json!({"model_type": "never_seen"})),
            "",
            "never_seen",
        ),
    ]
}

/// What the page says of each answer that is no configuration, and that it shows no figure beside it.
#[tokio::test]
async fn an_answer_that_is_no_configuration_is_explained() {
    let lines = bad_answers();
    let repos = lines.clone().map(|(id, repo, ..)| (id, repo));
    with_hub("bad-answers", repos, "#/?model=llava-1.5-7b", async |page, _| {
        page.value("peak-allocated").present().await?;
        for (id, _, kind, part) in &lines {
            name_model(page, id).await?;
            page.click("hub-get").await?;
            if kind.is_empty() {
                page.text("refusal").named(id).contains(part).await?;
            } else {
                page.attr("hub-error", "data-kind").named(id).holds(kind).await?;
                page.text("hub-error").named(id).contains(part).await?;
                // The way on: by hand.
                let address = format!("/{id}/resolve/main/config.json");
                page.attr("hub-open", "href")
                    .named(id)
                    .until(|to| to.as_ref().is_some_and(|to| to.ends_with(&address)))
                    .await?;
            }
            page.value("peak-allocated").named(id).absent().await?;
            page.value("verdict").named(id).absent().await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_was_meant_is_a_button() {
    with_hub("near-names", [], "#/?model=gtp2", async |page, hub| {
        page.text("hub-error").contains("gtp2").await?;
        page.click_at("[data-testid=hub-near][data-name=gpt2]").await?;
        page.value("peak-allocated").present().await?;
        page.prop("model", "value").holds("gpt2").await?;
        assert!(hub.take_requests().is_empty());

        name_model(page, "Qwen/Qwen3-VL-8B-Instrct").await?;
        page.click("hub-get").await?;
        page.attr("hub-error", "data-kind").holds("no_repository").await?;
        page.click_at("[data-testid=hub-near][data-name='Qwen/Qwen3-VL-8B-Instruct']")
            .await?;
        page.value("peak-allocated").present().await?;
        page.fragment().contains("model=Qwen%2FQwen3-VL-8B-Instruct").await?;
        Ok(())
    })
    .await;
}

/// What is shown beside a typed name is of that name, or nothing.
#[tokio::test]
async fn the_figures_of_another_model_never_stand_beside_a_typed_name() {
    with_hub(
        "typed-names",
        [("someone/model", Repo::of_config(&small()))],
        "#/?model=llava-1.5-7b",
        async |page, hub| {
            page.value("verdict").present().await?;
            page.enter("model", "someone/model").await?;
            page.value("verdict").absent().await?;
            page.value("peak-allocated").absent().await?;
            page.keys(Key::Tab + "").await?;
            page.prop("model", "value").holds("someone/model").await?;
            page.find("hub-get").await?;
            page.value("verdict").absent().await?;
            page.value("peak-allocated").absent().await?;
            assert!(hub.take_requests().is_empty());

            // A word of several models is a search, whose figures are grey, and the model stays.
            name_model(page, "gpt2").await?;
            let bytes = page.value("peak-allocated").present().await?;
            page.enter("model", "qwen").await?;
            page.attr_at("#results", "aria-busy").holds("true").await?;
            page.keys(Key::Tab + "").await?;
            page.prop("model", "value").holds("gpt2").await?;
            page.attr_at("#results", "aria-busy").holds("false").await?;
            page.value("peak-allocated").holds(&bytes).await?;
            // A whole name of the catalogue is taken without Enter.
            page.enter("model", "GPT2-MEDIUM").await?;
            page.keys(Key::Tab + "").await?;
            page.prop("model", "value").holds("gpt2-medium").await?;
            page.changed("peak-allocated", &bytes).await?;
            Ok(())
        },
    )
    .await;
}

#[tokio::test]
async fn copies_adapters_and_files_for_inference_lead_to_their_model() {
    let adapter = json!({"peft_type": "LORA", "base_model_name_or_path": "someone/base", "r": 32});
    let files = Repo::of_files(
        [("README.md", json!(""))],
        json!({"cardData": {"base_model": "someone/base"}}),
    );
    let repos = [
        (
            "someone/adapter",
            Repo::of_files([("adapter_config.json", adapter)], json!({})),
        ),
        ("someone/base-GGUF", files),
        ("someone/base", Repo::of_config(&small())),
    ];
    with_hub(
        "led-on",
        repos,
        "#/?model=unsloth/Qwen2.5-0.5B-Instruct",
        async |page, hub| {
            page.text("hub-said")
                .contains("has the shape of Qwen/Qwen2.5-0.5B-Instruct")
                .await?;
            let copy = page.value("peak-allocated").present().await?;
            page.text("command")
                .contains("vramscope estimate unsloth/Qwen2.5-0.5B-Instruct")
                .await?;
            name_model(page, "Qwen/Qwen2.5-0.5B-Instruct").await?;
            page.text("command")
                .contains("vramscope estimate Qwen/Qwen2.5-0.5B-Instruct")
                .await?;
            page.value("peak-allocated").holds(&copy).await?;
            name_model(page, "/models/Qwen2.5-0.5B-Instruct").await?;
            page.text("hub-said").contains("by its last part").await?;
            page.value("peak-allocated").holds(&copy).await?;
            assert!(hub.take_requests().is_empty(), "they are known");

            name_model(page, "someone/adapter").await?;
            page.click("hub-get").await?;
            page.text("hub-said").contains("LoRA with rank 32").await?;
            let base = page.value("peak-allocated").present().await?;
            name_model(page, "someone/base-GGUF").await?;
            page.click("hub-get").await?;
            page.text("hub-said").contains("GGUF files are for inference").await?;
            page.value("peak-allocated").holds(&base).await?;

            page.choose("language", "zh-CN").await?;
            page.text("hub-said").contains("GGUF 文件仅供推理").await?;
            name_model(page, "unsloth/Qwen3-8B-FP8").await?;
            page.text("hub-error").contains("8 位浮点").await?;
            Ok(())
        },
    )
    .await;
}

/// Opens a page that may ask no hub, and gives it a file by hand.
async fn by_hand(page: &Page) -> WebDriverResult<()> {
    let address = "https://huggingface.co/someone/model/resolve/main/config.json";
    page.attr("hub-open", "href").holds(address).await?;
    page.script::<bool>("return document.querySelector('[data-testid=hub-get]') === null")
        .is(true)
        .await?;
    let paste = "const area = document.querySelector('[data-testid=hub-paste]'); area.value = arguments[0]; \
                 area.dispatchEvent(new Event('input', { bubbles: true }))";
    page.run_with(paste, vec!["{\"model_type\":".into()]).await?;
    page.text("hub-paste-wrong").nonempty().await?;
    page.run_with(paste, vec![small().to_string().into()]).await?;
    page.value("peak-allocated").present().await?;
    page.prop("model", "value").holds("someone/model").await?;
    page.text("command")
        .contains("vramscope estimate someone/model")
        .await?;
    let asked = "return performance.getEntriesByType('resource').map((e) => e.name)\
                 .filter((name) => !name.startsWith(location.origin + '/') && !/^(blob|data):/.test(name))";
    page.script::<Vec<String>>(asked)
        .is(Vec::<String>::new())
        .await
        .map(drop)
}

#[tokio::test]
async fn without_a_hub_the_file_is_given_by_hand() {
    let fragment = "#/?model=someone/model";
    let server = Server::start(page_for("no-hub", ""), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.go(fragment).await?;
        by_hand(page).await
    })
    .await;
    let single_file = format!("file://{}", built().join("vramscope.html").display());
    with_browser(&single_file, async |page| {
        page.go(fragment).await?;
        page.script::<bool>("return document.querySelector('meta[name=model-hub]').content === ''")
            .is(true)
            .await?;
        by_hand(page).await
    })
    .await;
    // No network.
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.before_load("Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false })")
            .await?;
        page.go(fragment).await?;
        by_hand(page).await
    })
    .await;
}

#[tokio::test]
async fn an_embedded_page_asks_no_hub() {
    let repos = [("someone/model", Repo::of_config(&small()))];
    with_hub("embedded", repos, "#/?model=llava-1.5-7b", async |page, hub| {
        // Even where the page itself asks at once.
        name_model(page, "someone/model").await?;
        page.click("hub-remember").await?;
        page.click("hub-get").await?;
        page.value("peak-allocated").present().await?;
        page.run("localStorage.removeItem('vramscope.hub.kept')").await?;
        hub.take_requests();
        for widget in ["verdict", "page"] {
            page.go(&format!("?embed=1&widget={widget}#/?model=someone/model"))
                .await?;
            page.text_at("body").contains("someone/model").await?;
            let shown = "return document.querySelector('[data-testid=hub-get]') === null";
            page.script::<bool>(shown).is(true).await?;
        }
        assert!(hub.take_requests().is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_launch_file_names_any_id() {
    let repos = [("someone/model", Repo::of_config(&small()))];
    with_hub("launched-id", repos, "#/?model=llava-1.5-7b", async |page, hub| {
        let of = |model: &str| format!("swift sft --model {model} --tuner_type lora --max_length 256");
        page.click("open-launch").await?;
        page.enter("launch-text", &of("someone/model")).await?;
        page.click("launch-read").await?;
        page.text("hub").contains("someone/model").await?;
        assert!(hub.take_requests().is_empty());
        page.click_at("dialog [data-testid=hub-get]").await?;
        page.text_at("dialog [data-testid=hub-said]")
            .contains("someone/model")
            .await?;
        page.click("launch-use").await?;
        page.value("peak-allocated").present().await?;
        page.prop("model", "value").holds("someone/model").await?;
        page.text("command")
            .contains("vramscope estimate someone/model")
            .await?;

        // One that is known needs no question.
        hub.take_requests();
        page.click("open-launch").await?;
        page.enter("launch-text", &of("unsloth/Qwen2.5-0.5B-Instruct")).await?;
        page.click("launch-read").await?;
        page.text_at("dialog [data-testid=hub-said]")
            .contains("has the shape of")
            .await?;
        page.click("launch-use").await?;
        page.text("command")
            .contains("vramscope estimate unsloth/Qwen2.5-0.5B-Instruct")
            .await?;
        assert!(hub.take_requests().is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn models_stand_in_groups_of_their_vendors() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.click("model").await?;
        let groups = "return [...document.querySelectorAll('.combo-group')].map((group) => group.textContent)";
        let groups = page
            .script::<Vec<String>>(groups)
            .until(|groups| groups.len() > 10)
            .await?;
        for group in ["LLaVA", "Qwen · < 4B", "Qwen · 4–15B", "Google", "Mistral AI"] {
            assert!(groups.iter().any(|one| one.starts_with(group)), "{group}: {groups:?}");
        }
        let mut once = groups.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), groups.len(), "{groups:?}");
        Ok(())
    })
    .await;
}
