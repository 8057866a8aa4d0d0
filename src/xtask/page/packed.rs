//! Writes Brotli and gzip files beside each file of the page, for servers that send them to browsers.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::kept::kept;
use super::parallel::for_each;
use super::records::LISTED;
use crate::Failure;
use crate::commands::Build;

/// File name extensions of the two encodings, as `ServeDir` of tower-http, nginx and others expect them.
const ENDS: [&str; 2] = ["br", "gz"];

/// Writes both encodings for each file that they shrink by at least a tenth, and removes those of an earlier build. The
/// list of records is not compressed: `vramscope export` rewrites it, and a server would keep sending the compressed
/// old one.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(dist: &Path, how: Build) -> Result<(), Failure> {
    let mut files = Vec::new();
    collect(dist, &mut files)?;
    let records = dist.join(LISTED);
    let (packed, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| is_packed(path));
    for path in packed {
        std::fs::remove_file(path)?;
    }
    let files: Vec<_> = files.into_iter().filter(|path| *path != records).collect();
    for_each(&files, |path| Ok(pack(path, how)?))
}

/// Returns true if a file of the page is the compressed form of another one.
pub fn is_packed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| ENDS.iter().any(|known| end == *known))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn pack(path: &Path, how: Build) -> io::Result<()> {
    let plain = std::fs::read(path)?;
    for (end, packed) in ENDS.into_iter().zip([brotli(&plain, how)?, gzip(&plain, how)?]) {
        if packed.len() * 10 <= plain.len() * 9 {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(end);
            std::fs::write(name, packed)?;
        }
    }
    Ok(())
}

fn brotli(plain: &[u8], how: Build) -> io::Result<Vec<u8>> {
    let quality = if how == Build::Published { 11 } else { 4 };
    let options = BrotliEncoderParams {
        quality,
        // The largest window that every browser supports, 16 MiB, which exceeds any file of the page.
        lgwin: 24,
        size_hint: plain.len(),
        ..Default::default()
    };
    let make = || {
        let mut packed = Vec::new();
        brotli::BrotliCompress(&mut &*plain, &mut packed, &options)?;
        Ok(packed)
    };
    kept(&format!("br{quality}"), plain, make)
}

fn gzip(plain: &[u8], how: Build) -> io::Result<Vec<u8>> {
    let level = if how == Build::Published {
        Compression::best()
    } else {
        Compression::fast()
    };
    let mut packed = GzEncoder::new(Vec::new(), level);
    packed.write_all(plain)?;
    packed.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn what_is_packed_is_the_file_and_of_this_build() {
        let dist = std::env::temp_dir().join(format!("vramscope-packed-{}", std::process::id()));
        std::fs::create_dir_all(dist.join("data")).expect("a folder of the test's own");
        let text = "the page, the page, the page, ".repeat(50);
        let noise: Vec<u8> = (0..20_u8).flat_map(|i| crate::page::sha256([i])).collect();
        let files = [
            ("a.js", text.as_bytes()),
            (LISTED, text.as_bytes()),
            ("icon.png", &noise),
            ("old.js.br", b"1"),
        ];
        for (name, content) in files {
            std::fs::write(dist.join(name), content).expect("a file");
        }
        for how in [Build::Published, Build::Quick] {
            write(&dist, how).expect("it can be packed");
            let read = |name: &str| std::fs::read(dist.join(name)).expect("it is there");
            let (mut from_brotli, mut from_gzip) = (Vec::new(), String::new());
            brotli::BrotliDecompress(&mut &*read("a.js.br"), &mut from_brotli).expect("Brotli");
            flate2::read::GzDecoder::new(&*read("a.js.gz"))
                .read_to_string(&mut from_gzip)
                .expect("gzip");
            assert_eq!(
                (from_brotli.as_slice(), from_gzip.as_str()),
                (text.as_bytes(), text.as_str())
            );
            for name in [LISTED, "icon.png", "old.js"] {
                assert!(
                    ENDS.iter().all(|end| !dist.join(format!("{name}.{end}")).exists()),
                    "{name}"
                );
            }
        }
        std::fs::remove_dir_all(dist).expect("it is there");
    }
}
