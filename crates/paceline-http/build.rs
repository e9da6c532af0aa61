//! Embeds the built pages (`cargo xtask web`) if they exist; otherwise the binary explains how to build them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // This folder always exists: cargo would run the script on every build for a missing one.
    println!("cargo:rerun-if-changed=pages");
    let folder =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("pages/dist");
    let mut files = Vec::new();
    gather(&folder, "", &mut files)?;
    files.sort();
    let mut code = "static PAGES: &[(&str, &[u8])] = &[\n".to_owned();
    for (name, path) in files {
        let _ = writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default()).join("pages.rs");
    fs::write(out, code)
}

fn gather(folder: &Path, before: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), &name, files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}
