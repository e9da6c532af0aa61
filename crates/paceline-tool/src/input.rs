//! Input files.

use crate::exit;
use anyhow::anyhow;
use std::io::Read as _;
use std::path::Path;

/// Limit of a file in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Returns the name and text of a file, or of standard input for `-`. The rest of a text over 16 MiB is ignored.
///
/// # Errors
/// Returns an error with a fix if the file cannot be read or is not UTF-8.
pub fn source(file: &Path) -> anyhow::Result<(String, String)> {
    let mut text = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        return Ok(("standard input".to_owned(), text));
    }
    let name = file.display().to_string();
    let read = std::fs::File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| anyhow!("cannot read {name}: {}", exit::file_error(&error)))?;
    Ok((name, text))
}
