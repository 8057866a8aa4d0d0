//! Archives that are the same each time: tar as POSIX has it (ustar), its entries by name, with one time and no owner, packed by
//! gzip without a time of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

use crate::Failure;

/// Bytes of a block of tar.
const BLOCK: usize = 512;

/// Files of a folder and those in it, each with its path within.
pub fn files_of(folder: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    let mut found = Vec::new();
    collect(folder, "", &mut found)?;
    Ok(found)
}

fn collect(folder: &Path, within: &str, found: &mut Vec<(PathBuf, String)>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{within}{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => collect(&entry.path(), &format!("{name}/"), found)?,
            false => found.push((entry.path(), name)),
        }
    }
    Ok(())
}

/// Writes files under a folder's name into an archive, all of one time.
///
/// # Errors
/// If a file cannot be read, its name is longer than the format has room for, or the archive cannot be written.
pub fn write(archive: &Path, folder: &str, mut files: Vec<(PathBuf, String)>, time: u64) -> Result<(), Failure> {
    files.sort_by(|(_, a), (_, b)| a.cmp(b));
    let out = GzBuilder::new()
        .mtime(0)
        .write(fs::File::create(archive)?, Compression::best());
    let mut out = std::io::BufWriter::new(out);
    for (path, name) in files {
        let bytes = fs::read(&path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        let is_program = name == "vramscope";
        out.write_all(&header(
            &format!("{folder}/{name}"),
            bytes.len(),
            if is_program { 0o755 } else { 0o644 },
            time,
        )?)?;
        out.write_all(&bytes)?;
        out.write_all(&vec![0; bytes.len().next_multiple_of(BLOCK) - bytes.len()])?;
    }
    // The end of an archive: two empty blocks.
    out.write_all(&[0; 2 * BLOCK])?;
    let packed = out.into_inner().map_err(|error| Failure::new(error.to_string()))?;
    packed.finish()?;
    Ok(())
}

/// The header of a file: name and prefix, mode, owner, size, time, checksum (POSIX.1-2001, `ustar` interchange format).
fn header(name: &str, size: usize, mode: u32, time: u64) -> Result<[u8; BLOCK], Failure> {
    let mut block = [0; BLOCK];
    let (prefix, name) = match name.len() {
        ..=100 => ("", name),
        // The longest end of the name that fits the first field and begins behind a slash.
        _ => name
            .match_indices('/')
            .map(|(at, _)| (&name[..at], &name[at + 1..]))
            .find(|(prefix, name)| prefix.len() <= 155 && name.len() <= 100)
            .ok_or_else(|| Failure::new(format!("{name} is longer than an archive has room for")))?,
    };
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{time:011o}"));
    // The checksum counts its own field as blanks.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\u{0}00");
    put(345, prefix);
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn tar_reads_what_is_written_and_it_is_the_same_each_time() {
        let folder = std::env::temp_dir().join(format!("vramscope-archive-{}", std::process::id()));
        let long = format!("{}/{}.txt", "d".repeat(90), "n".repeat(60));
        fs::create_dir_all(folder.join("in").join("d".repeat(90))).expect("a folder");
        fs::write(folder.join("in/vramscope"), [7; 1000]).expect("a file");
        fs::write(folder.join("in").join(&long), "text").expect("a file");
        let made = ["a.tar.gz", "b.tar.gz"].map(|name| {
            let files = files_of(&folder.join("in")).expect("files");
            write(&folder.join(name), "top", files, 1_700_000_000).expect("it is written");
            fs::read(folder.join(name)).expect("an archive")
        });
        assert_eq!(made[0], made[1]);
        let listed = Command::new("tar")
            .args(["-tvzf"])
            .arg(folder.join("a.tar.gz"))
            .output()
            .expect("tar");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(
            listed.contains("-rwxr-xr-x") && listed.contains("top/vramscope") && listed.contains(&long),
            "{listed}"
        );
        let unpacked = Command::new("tar")
            .arg("-xzf")
            .arg(folder.join("a.tar.gz"))
            .current_dir(&folder)
            .status();
        assert!(unpacked.expect("tar").success());
        assert_eq!(fs::read(folder.join("top/vramscope")).expect("a file"), [7; 1000]);
        assert_eq!(fs::read(folder.join("top").join(&long)).expect("a file"), b"text");
        let _ = fs::remove_dir_all(folder);
    }
}
