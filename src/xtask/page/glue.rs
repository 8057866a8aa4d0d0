//! Joins the scripts that `wasm-bindgen` and `wasm-split` write. They import each other, which a single-file page does
//! not allow, and fetch chunks relative to themselves, while only the page knows where the chunks are.

use std::path::{Path, PathBuf};

use crate::Failure;

/// File name of the script that `wasm-split` writes.
pub const LOADER: &str = "__wasm_split.js";

/// Text around a chunk's file name in the loader's request.
const ASK: (&str, &str) = ("fetch(new URL(\"./", ".wasm\", import.meta.url))");

/// Joins the function that fetches chunks, the loader, and the glue to one script.
///
/// # Errors
/// If one of them differs from the expected form.
pub fn join(fetch: &str, loader: &str, glue: &str) -> Result<String, Failure> {
    let unknown = |what: &str| Failure::new(format!("{what}: another release of wasm-split or wasm-bindgen?"));
    let mut out = format!("{fetch}\n");
    let mut exports = Vec::new();
    for line in loader.lines().filter(|line| !line.starts_with("import ")) {
        let line = match line.strip_prefix("export ") {
            Some(constant) => {
                let name = constant.split_whitespace().nth(1);
                exports.push(name.ok_or_else(|| unknown("the loader exports nothing"))?);
                constant
            }
            None => line,
        };
        let line = match line.split_once(ASK.0) {
            Some((before, rest)) => {
                let (file, after) = rest.split_once(ASK.1).ok_or_else(|| unknown(line))?;
                format!("{before}fetchChunk(\"{}\"){after}", name(file))
            }
            None => line.to_owned(),
        };
        out += &line;
        out.push('\n');
    }
    if exports.is_empty() || out.contains("import.meta") {
        return Err(unknown("the loader is not as known"));
    }
    out += &format!("const loader = {{ {} }};\n", exports.join(", "));
    for line in glue.lines() {
        let import = line
            .strip_prefix("import * as ")
            .and_then(|rest| rest.split_once(" from "));
        out += &match import {
            Some((name, from)) if from.contains(LOADER) => format!("const {name} = loader;"),
            _ => line.to_owned(),
        };
        out.push('\n');
    }
    if out.lines().any(|line| line.starts_with("import ")) {
        return Err(unknown("the glue imports what one file could not carry"));
    }
    Ok(out)
}

/// Names and paths of the chunks in a folder, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub fn chunks(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut chunks = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_chunk = stem.starts_with("split_") || stem.starts_with("chunk_");
        if is_chunk && path.extension().is_some_and(|extension| extension == "wasm") {
            chunks.push((name(&stem), path));
        }
    }
    chunks.sort();
    Ok(chunks)
}

/// Name of a chunk in the page: `split_NAME` belongs to a split point, `chunk_N` is shared by several.
fn name(stem: &str) -> String {
    match stem.strip_prefix("split_") {
        Some(name) => name.to_owned(),
        None => stem.replace("chunk_", "shared"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADER_TEXT: &str = "import { initSync } from \"./program.js\";\n\
        const __chunk_3 = makeLoad(() => {\n    const src = fetch(new URL(\"./chunk_3.wasm\", import.meta.url));\n}, []);\n\
        export const __wasm_split_load_course = wrap(() => {\n    const src = fetch(new URL(\"./split_course.wasm\", import.meta.url));\n});\n";
    const GLUE: &str = "import * as import1 from \"./__wasm_split.js\"\nlet wasm;\nexport { initSync };\n";

    #[test]
    fn three_scripts_become_one_that_imports_nothing() {
        let joined = join("const fetchChunk = () => {};", LOADER_TEXT, GLUE).expect("they are as known");
        assert!(!joined.contains("import "), "{joined}");
        assert!(joined.contains("src = fetchChunk(\"shared3\");") && joined.contains("src = fetchChunk(\"course\");"));
        assert!(joined.contains("const loader = { __wasm_split_load_course };\nconst import1 = loader;\n"));
    }

    #[test]
    fn scripts_of_another_kind_are_refused() {
        assert!(join("", "const nothing = 1;", GLUE).is_err());
        assert!(join("", LOADER_TEXT, "import x from \"./snippets/a.js\"\n").is_err());
    }
}
