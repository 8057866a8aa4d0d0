//! Turns the files of `device/cards` into constants, so that no program holds a reader for them. A file that cannot be
//! read, or that has a key which no card has, fails the build.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Files in the order in which a menu should show their cards.
const FILES: [&str; 5] = [
    "nvidia-datacentre",
    "nvidia-workstation",
    "nvidia-consumer",
    "amd",
    "apple",
];

/// A card as its file describes it; see `Device`, whose fields have the same names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    aliases: Vec<String>,
    stands_for: Option<String>,
    vendor: Vendor,
    kind: DeviceKind,
    memory_gib: u64,
    driver_total_mib: Option<u64>,
    visible: Option<Visible>,
    compute_capability: Option<String>,
    multiprocessors: Option<u64>,
    l2_mib: Option<u64>,
    bandwidth_gb_s: Option<f64>,
    peak_tflops: PeakTeraflops,
    pcie_gb_s: Option<f64>,
    link_gb_s: Option<f64>,
    board_watts: Option<u64>,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Vendor {
    Nvidia,
    Amd,
    Apple,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeviceKind {
    Consumer,
    Workstation,
    Datacentre,
    Soc,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Visible {
    bytes: u64,
    source: String,
}

/// Its debug form is the constant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "all fields are written by their debug form")]
struct PeakTeraflops {
    fp32: Option<f64>,
    tf32: Option<f64>,
    bf16: Option<f64>,
    fp16: Option<f64>,
    fp8: Option<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=device/cards");
    let mut code = String::from("&[\n");
    for file in FILES {
        let path = Path::new("device/cards").join(file).with_extension("json");
        let at = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{at}: {error}"))?;
        let cards: Vec<Card> = serde_json::from_str(&text).map_err(|error| format!("{at}: {error}"))?;
        for card in cards {
            write(&mut code, &card).map_err(|error| format!("{at}: {}: {error}", card.name))?;
        }
    }
    code.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    Ok(std::fs::write(out.join("cards.rs"), code)?)
}

/// Writes a card as a constant.
fn write(code: &mut String, card: &Card) -> Result<(), Box<dyn Error>> {
    let Card {
        name,
        aliases,
        stands_for,
        vendor,
        kind,
        memory_gib,
        driver_total_mib,
        multiprocessors,
        l2_mib,
        bandwidth_gb_s,
        peak_tflops,
        pcie_gb_s,
        link_gb_s,
        board_watts,
        source,
        ..
    } = card;
    let visible = card.visible.as_ref().map_or_else(
        || "None".to_owned(),
        |Visible { bytes, source }| format!("Some(Visible {{ bytes: Bytes::new({bytes}), source: {source:?} }})"),
    );
    let capability = match card.compute_capability.as_deref() {
        Some(text) => {
            let (major, minor) = numbers(text)?;
            format!("Some(ComputeCapability {{ major: {major}, minor: {minor} }})")
        }
        None => "None".to_owned(),
    };
    writeln!(
        code,
        "Device {{ name: {name:?}, aliases: &{aliases:?}, stands_for: {stands_for:?}, vendor: Vendor::{vendor:?}, \
         kind: DeviceKind::{kind:?}, memory_gib: {memory_gib}, driver_total_mib: {driver_total_mib:?}, visible: {visible}, \
         compute_capability: {capability}, multiprocessors: {multiprocessors:?}, l2_mib: {l2_mib:?}, \
         bandwidth_gb_s: {bandwidth_gb_s:?}, peak_tflops: {peak_tflops:?}, pcie_gb_s: {pcie_gb_s:?}, \
         link_gb_s: {link_gb_s:?}, board_watts: {board_watts:?}, source: {source:?} }},"
    )?;
    Ok(())
}

/// Reads a compute capability such as `9.0`.
fn numbers(text: &str) -> Result<(u8, u8), Box<dyn Error>> {
    let (major, minor) = text
        .split_once('.')
        .ok_or_else(|| format!("\"{text}\" is not a compute capability, such as 9.0"))?;
    Ok((major.parse()?, minor.parse()?))
}
