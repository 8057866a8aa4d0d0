//! Recordings in the page: of the gallery, dropped, and wrong ones.

use std::io::{Read, Write};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use thirtyfour::error::WebDriverResult;
use xtask::commands::gallery_folder;
use xtask::root;

use crate::Page;
use crate::page::with_page;
use crate::same_bytes::binary;

/// A recording that the gallery has.
const OF_GALLERY: &str = "r3d-18";
/// One that the gallery has not.
pub const OF_TESTS: &str = "tests/data/recordings/qwen2-4layers-bf16-b2-s256.vram.gz";

/// Drops a file of these bytes, given as Base64, onto an element.
const DROP: &str = "const bytes = Uint8Array.from(atob(arguments[2]), (c) => c.charCodeAt(0)); \
    const data = new DataTransfer(); data.items.add(new File([bytes], arguments[1])); \
    document.querySelector(arguments[0]).dispatchEvent( \
        new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))";

/// Drops a file onto an element.
pub async fn drop_bytes(page: &Page, area: &str, name: &str, bytes: &[u8]) -> WebDriverResult<()> {
    let args = vec![area.into(), name.into(), STANDARD.encode(bytes).into()];
    page.run_with(DROP, args).await?;
    Ok(())
}

/// The command line's answer to a recording on a card.
pub fn estimate(recording: &[u8], gpu: &str) -> Value {
    said("estimate", recording, &["--gpu", gpu])
}

/// The answer of a command to a recording.
pub fn said(command: &str, recording: &[u8], flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder of the test's own");
    let path = folder.path().join("run.vram.gz");
    std::fs::write(&path, recording).expect("a file of the test's own");
    let output = Command::new(binary())
        .args([command, "--format", "json", "--recording"])
        .arg(&path)
        .args(flags)
        .output()
        .expect("the binary starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Shown figures, and the command line's.
const FIGURES: [(&str, &str); 4] = [
    ("peak-allocated", "peak_allocated"),
    ("peak-reserved", "peak_reserved"),
    ("params", "params"),
    ("trainable", "trainable"),
];

/// Waits until the page shows the figures of an answer.
pub async fn shows(page: &Page, answer: &Value) -> WebDriverResult<()> {
    for (testid, key) in FIGURES {
        page.value(testid).holds(&answer[key].to_string()).await?;
    }
    let verdict = answer["target"]["verdict"].as_str().map(str::to_owned);
    page.value("verdict").is(verdict).await?;
    Ok(())
}

/// A recording of the gallery as the recorder wrote it.
pub fn unpacked(id: &str) -> Vec<u8> {
    let file = std::fs::File::open(root().join(gallery_folder()).join(format!("{id}.vram"))).expect("it is committed");
    let mut packed = Vec::new();
    GzDecoder::new(file).read_to_end(&mut packed).expect("gzip");
    let lines = vramscope_gallery::unpack(&packed, 1 << 30).expect("it was packed");
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(&lines).expect("memory");
    out.finish().expect("memory")
}

#[tokio::test]
async fn a_recording_of_the_gallery_is_found_and_shows_what_the_command_line_says() {
    with_page("#/?gpu=H200", async |page| {
        page.click("from-recording").await?;
        let listed = || page.value("gallery");
        let all = page
            .until("the list", listed, |n| {
                n.as_deref().is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n >= 60))
            })
            .await?;
        page.enter("gallery-search", "3d resnet").await?;
        page.until("what matches", listed, |n| *n != all).await?;
        page.click_at(&format!("[data-name='{OF_GALLERY}']")).await?;
        shows(page, &estimate(&unpacked(OF_GALLERY), "H200")).await?;
        page.text("facts").contains("NVIDIA H100").await?;
        page.fragment().contains(&format!("recording={OF_GALLERY}")).await?;
        page.click("gallery-back").await?;
        page.until("the list again", listed, |n| *n == all).await?;
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_recording_that_is_dropped_on_the_calculator_is_shown_and_follows_the_card() {
    let recording = std::fs::read(root().join(OF_TESTS)).expect("it is committed");
    with_page("#/?model=llava-1.5-7b", async |page| {
        drop_bytes(page, ".controls", "run.vram.gz", &recording).await?;
        // It was made for an H200, which the page then has chosen.
        shows(page, &estimate(&recording, "H200")).await?;
        let reserved = page.value("peak-reserved").present().await?;
        page.choose("expandable_segments", "true").await?;
        page.changed("peak-reserved", &reserved).await?;
        page.choose("expandable_segments", "recorded").await?;
        page.value("peak-reserved").named("as before").holds(&reserved).await?;
        page.find("live-tensor").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_recording_says_what_to_do() {
    let recording = std::fs::read(root().join(OF_TESTS)).expect("it is committed");
    let mut newer = Vec::new();
    GzDecoder::new(&recording[..]).read_to_end(&mut newer).expect("gzip");
    let newer = String::from_utf8(newer)
        .expect("UTF-8")
        .replacen("\"version\":1", "\"version\":7", 1);
    with_page("#/recorded", async |page| {
        let half = &recording[..recording.len() / 2];
        let wrong: [(&str, &[u8], &str); 3] = [
            ("notes.txt", b"hello", "not a recording"),
            ("cut.vram.gz", half, "is incomplete"),
            ("newer.vram.gz", newer.as_bytes(), "version 7"),
        ];
        for (name, bytes, words) in wrong {
            drop_bytes(page, ".results", name, bytes).await?;
            // What cannot be told apart is asked about.
            if name == "notes.txt" {
                page.click("unknown-recording").await?;
            }
            page.until(name, || page.text("refusal"), |text| text.contains(words))
                .await?;
        }
        page.go("#/recorded?recording=nobody").await?;
        page.text("refusal").contains("nobody").await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_model_that_is_not_built_in_is_sent_to_the_recorder() {
    with_page("#/?model=flobert", async |page| {
        page.text("record-command").contains("vramscope.record").await?;
        Ok(())
    })
    .await;
}
