//! Shortens the names of a program's imports from its glue. `wasm-bindgen` names each import by function and hash, and
//! hashes do not compress: 6 KB of a first visit.

use crate::Failure;

/// Module name of the glue in the program.
const GLUE: &str = "./program_bg.js";
/// ID of WebAssembly's import section.
const IMPORTS: u8 = 2;

/// Renames the imports in the program and its glue to `i0`, `i1`, ….
///
/// # Errors
/// If either differs from the expected form, in which the glue has each import once, at the start of a line.
pub fn shorten(wasm: &[u8], glue: &str) -> Result<(Vec<u8>, String), Failure> {
    let unknown = |what: &str| Failure::new(format!("{what}: another release of wasm-bindgen?"));
    let sections = sections(wasm).ok_or_else(|| unknown("the program has sections of another form"))?;
    let mut out = wasm.get(..8).unwrap_or_default().to_vec();
    let mut glue = glue.to_owned();
    for (id, content) in sections {
        let mut content = content.to_vec();
        if id == IMPORTS {
            let (shortened, names) =
                renamed(&content).ok_or_else(|| unknown("the program has imports of another form"))?;
            content = shortened;
            for (number, name) in names.iter().enumerate() {
                let entry = format!("\n        {name}: function");
                if glue.matches(&entry).count() != 1 {
                    return Err(unknown(&format!("{name} is not once in the glue")));
                }
                glue = glue.replace(&entry, &format!("\n        i{number}: function"));
            }
        }
        out.push(id);
        write_number(&mut out, content.len());
        out.extend(content);
    }
    Ok((out, glue))
}

/// IDs and contents of all sections.
fn sections(wasm: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut rest = wasm.get(8..)?;
    let mut sections = Vec::new();
    while let Some((&id, after)) = rest.split_first() {
        rest = after;
        let len = number(&mut rest)?;
        sections.push((id, take(&mut rest, len)?));
    }
    Some(sections)
}

/// The import section with short names for the glue's imports, and their previous names.
fn renamed(mut imports: &[u8]) -> Option<(Vec<u8>, Vec<String>)> {
    let count = number(&mut imports)?;
    let (mut out, mut names) = (Vec::new(), Vec::new());
    write_number(&mut out, count);
    for _ in 0..count {
        let module = text(&mut imports)?;
        let name = text(&mut imports)?;
        write_text(&mut out, module);
        // Only functions are imported from the glue.
        if module == GLUE && imports.first() == Some(&0) {
            write_text(&mut out, &format!("i{}", names.len()));
            names.push(name.to_owned());
        } else {
            write_text(&mut out, name);
        }
        let len = kind_len(imports)?;
        out.extend(take(&mut imports, len)?);
    }
    imports.is_empty().then_some((out, names))
}

/// Number of bytes that describe an import: a function, table, memory or global.
fn kind_len(imports: &[u8]) -> Option<usize> {
    let (&kind, mut rest) = imports.split_first()?;
    let before = rest.len();
    match kind {
        0 => _ = number(&mut rest)?,
        1 | 2 => {
            if kind == 1 {
                take(&mut rest, 1)?;
            }
            let has_most = take(&mut rest, 1)?[0] & 1 == 1;
            number(&mut rest)?;
            if has_most {
                number(&mut rest)?;
            }
        }
        3 => _ = take(&mut rest, 2)?,
        _ => return None,
    }
    Some(1 + before - rest.len())
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let len = number(bytes)?;
    std::str::from_utf8(take(bytes, len)?).ok()
}

/// Decodes an unsigned LEB128 number.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn write_number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_number(out, text.len());
    out.extend(text.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that imports one function from each of two modules, and a memory, followed by another section.
    fn program(names: [&str; 2]) -> Vec<u8> {
        let mut imports = vec![3];
        for (module, name) in [GLUE, "./other.js"].into_iter().zip(names) {
            write_text(&mut imports, module);
            write_text(&mut imports, name);
            imports.extend([0, 5]);
        }
        write_text(&mut imports, "env");
        write_text(&mut imports, "memory");
        imports.extend([2, 1, 17, 0x80, 0x80, 1]);
        let mut out = b"\0asm\x01\0\0\0".to_vec();
        out.push(IMPORTS);
        write_number(&mut out, imports.len());
        out.extend(imports);
        out.extend([1, 2, 7, 7]);
        out
    }

    #[test]
    fn names_of_the_glue_become_short_on_both_sides() {
        let long = "__wbg_append_".to_owned() + &"0".repeat(200);
        let glue = format!("const import0 = {{\n        {long}: function() {{}},\n    }};");
        let (wasm, glue) = shorten(&program([&long, "there"]), &glue).expect("it is as known");
        assert_eq!(wasm, program(["i0", "there"]));
        assert_eq!(glue, "const import0 = {\n        i0: function() {},\n    };");
    }

    #[test]
    fn a_glue_without_the_import_is_refused() {
        assert!(shorten(&program(["a", "b"]), "const import0 = {};").is_err());
        assert!(shorten(b"\0asm\x01\0\0\0\x02\xff", "").is_err());
    }
}
