//! `cargo xtask gallery`: models that are not built in, recorded, packed and listed.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::process::{cargo, output, program, run};
use crate::{Failure, root, tools};

/// Bytes of all recordings at most.
const MOST: u64 = 15_000_000;

/// Folder of the packed recordings and their list, from the root.
pub const fn gallery_folder() -> &'static str {
    "src/gallery/recordings"
}

/// Options of the command.
#[derive(Default)]
struct Asked {
    python: Option<PathBuf>,
    /// A folder of recordings that are there already.
    from: Option<PathBuf>,
    unpack: bool,
    ids: Vec<String>,
}

impl Asked {
    fn of(args: &[String]) -> Result<Self, Failure> {
        let mut asked = Self::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || {
                rest.next()
                    .map(PathBuf::from)
                    .ok_or_else(|| Failure::usage(format!("{arg} needs a value")))
            };
            match arg.as_str() {
                "--python" => asked.python = Some(value()?),
                "--from" => asked.from = Some(value()?),
                "--unpack" => asked.unpack = true,
                flag if flag.starts_with('-') => return Err(Failure::usage(format!("gallery does not know {flag}"))),
                id => asked.ids.push(id.into()),
            }
        }
        Ok(asked)
    }
}

/// Records the named models, or all of `src/gallery/models.json`, packs them and writes the list.
///
/// # Errors
/// When a program is missing or fails, or the recordings take too many bytes.
pub fn gallery(args: &[String]) -> Result<(), Failure> {
    let asked = Asked::of(args)?;
    let folder = root().join(gallery_folder());
    if asked.unpack {
        return asked.ids.iter().try_for_each(|id| unpack(&folder, id));
    }
    let made = match &asked.from {
        Some(folder) => folder.clone(),
        None => record(&asked)?,
    };
    std::fs::create_dir_all(&folder)?;
    run(cargo().args(["build", "--locked", "-p", "vramscope"]))?;
    let models = models()?;
    let mut known = known(&folder);
    for model in &models {
        let id = text(model, "id");
        let recording = made.join(format!("{id}.vram.gz"));
        if recording.exists() && (asked.ids.is_empty() || asked.ids.iter().any(|wanted| wanted == id)) {
            known.extend(pack(&recording, &folder, model)?.map(|entry| (id.to_owned(), entry)));
        }
    }
    list(&folder, &models, &known)
}

/// Records into `target/gallery`; a model that cannot be recorded is named and left out.
fn record(asked: &Asked) -> Result<PathBuf, Failure> {
    let python = match &asked.python {
        Some(python) => python.clone(),
        None => {
            tools::exports()?;
            root().join("target/exports/bin/python")
        }
    };
    let out = root().join("target/gallery");
    std::fs::create_dir_all(&out)?;
    let mut recorder = program(python);
    recorder
        .env("PYTHONPATH", root().join("src/recorder"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    recorder.arg("src/gallery/record.py").arg(&out).args(&asked.ids);
    // It leaves with the number of models that failed, which it named.
    if let Err(failure) = run(&mut recorder) {
        eprintln!("{failure}");
    }
    Ok(out)
}

fn models() -> Result<Vec<Value>, Failure> {
    let text = std::fs::read_to_string(root().join("src/gallery/models.json"))?;
    serde_json::from_str(&text).map_err(|error| Failure::new(format!("models.json: {error}")))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns the current entries of the list, by id.
fn known(folder: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(folder.join("index.json")).unwrap_or_default();
    let index: Value = serde_json::from_str(&text).unwrap_or_default();
    let models = index["models"].as_array().cloned().unwrap_or_default();
    models.into_iter().map(|entry| (text_of(&entry), entry)).collect()
}

fn text_of(entry: &Value) -> String {
    text(entry, "id").to_owned()
}

/// Packs a recording; what the list says of it, if the engine plays it.
fn pack(recording: &Path, folder: &Path, model: &Value) -> Result<Option<Value>, Failure> {
    let id = text(model, "id");
    let mut lines = Vec::new();
    GzDecoder::new(std::fs::File::open(recording)?).read_to_end(&mut lines)?;
    let Some(told) = estimate(recording) else {
        eprintln!("{id}: the engine does not play it");
        return Ok(None);
    };
    let packed = vramscope_gallery::pack(&lines).ok_or_else(|| Failure::new(format!("{id} cannot be packed")))?;
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    file.write_all(&packed)?;
    std::fs::write(folder.join(format!("{id}.vram")), file.finish()?)?;
    let mut entry = Map::new();
    for key in ["id", "title", "group", "batch", "seq", "source", "like"] {
        if !model[key].is_null() {
            entry.insert(key.into(), model[key].clone());
        }
    }
    let figures = json!({
        "params": told["params"],
        "reserved": told["peak_reserved"],
        "digest": digest(&lines),
        "versions": versions(&told["recording"]["versions"]),
    });
    entry.extend(sample(model).map(|sample| ("sample".to_owned(), sample.into())));
    entry.extend(figures.as_object().cloned().unwrap_or_default());
    eprintln!(
        "{id}: {} bytes",
        std::fs::metadata(folder.join(format!("{id}.vram")))?.len()
    );
    Ok(Some(Value::Object(entry)))
}

/// The command line's answer to a recording.
fn estimate(recording: &Path) -> Option<Value> {
    let mut command = program(root().join("target/debug/vramscope"));
    command
        .args(["estimate", "--format", "json", "--recording"])
        .arg(recording);
    serde_json::from_str(&output(&mut command)?).ok()
}

/// The size of a sample that is no text: frames and pixels.
fn sample(model: &Value) -> Option<String> {
    let number = |key: &str| model[key].as_u64();
    if let (Some(frames), Some(side)) = (number("frames"), number("side")) {
        return Some(format!("{frames} × {side}²"));
    }
    let list = |key: &str| {
        let numbers = model[key].as_array()?;
        Some(numbers.iter().map(Value::to_string).collect::<Vec<_>>().join(" × "))
    };
    list("sides").or_else(|| list("latents"))
}

/// A digest of all lines but the first and the last, which name versions and seconds.
fn digest(lines: &[u8]) -> String {
    let all: Vec<&[u8]> = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let mut digest = Sha256::new();
    for line in all.get(1..all.len().saturating_sub(1)).unwrap_or_default() {
        digest.update(line);
        digest.update(b"\n");
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The libraries that decide what a step takes.
fn versions(all: &Value) -> Value {
    let named = ["torch", "transformers", "torchvision", "timm", "diffusers"].into_iter();
    let found = named.filter_map(|name| Some((name.to_owned(), all.get(name)?.clone())));
    Value::Object(found.collect())
}

/// Writes the list, in the order of `models.json`.
fn list(folder: &Path, models: &[Value], known: &BTreeMap<String, Value>) -> Result<(), Failure> {
    let listed: Vec<&Value> = models.iter().filter_map(|model| known.get(text(model, "id"))).collect();
    let mut bytes = 0;
    for entry in &listed {
        bytes += std::fs::metadata(folder.join(format!("{}.vram", text(entry, "id"))))?.len();
    }
    if bytes > MOST {
        return Err(Failure::new(format!(
            "the recordings take {bytes} bytes, more than {MOST}"
        )));
    }
    let lines: Vec<String> = listed.iter().map(|entry| entry.to_string()).collect();
    std::fs::write(
        folder.join("index.json"),
        format!("{{\"models\":[\n{}\n]}}\n", lines.join(",\n")),
    )?;
    eprintln!("{} recordings, {bytes} bytes", listed.len());
    Ok(())
}

/// Writes a recording of the gallery as the recorder writes it, for the command line.
fn unpack(folder: &Path, id: &str) -> Result<(), Failure> {
    let unknown = |error: std::io::Error| Failure::new(format!("the gallery's {id} cannot be read: {error}"));
    let mut packed = Vec::new();
    let file = std::fs::File::open(folder.join(format!("{id}.vram"))).map_err(unknown)?;
    GzDecoder::new(file).read_to_end(&mut packed).map_err(unknown)?;
    let lines = vramscope_gallery::unpack(&packed, 1 << 30).map_err(|damaged| Failure::new(damaged.to_string()))?;
    let path = root().join("target/gallery").join(format!("{id}.vram.gz"));
    std::fs::create_dir_all(root().join("target/gallery"))?;
    let mut out = GzEncoder::new(std::fs::File::create(&path)?, Compression::default());
    out.write_all(&lines)?;
    out.finish()?;
    println!("{}", path.display());
    Ok(())
}
