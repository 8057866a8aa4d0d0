use std::path::{Path, PathBuf};

use crate::page::built;

/// A copy of the built page with a Brotli file beside each file, as hosts keep them.
pub fn packed_page() -> PathBuf {
    let folder = built().with_file_name("target").join("measure");
    // Of an earlier run; there need not be one.
    std::fs::remove_dir_all(&folder).ok();
    pack(&built(), &folder).expect("the built page can be copied");
    folder
}

fn pack(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            pack(&path, &target)?;
            continue;
        }
        let bytes = std::fs::read(&path)?;
        let mut packed = Vec::new();
        let options = brotli::enc::BrotliEncoderParams {
            quality: 11,
            lgwin: 24,
            ..Default::default()
        };
        brotli::BrotliCompress(&mut bytes.as_slice(), &mut packed, &options)?;
        std::fs::write(format!("{}.br", target.display()), packed)?;
        std::fs::write(target, bytes)?;
    }
    Ok(())
}
