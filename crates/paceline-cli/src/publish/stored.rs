//! A file that is read as a whole.

use anyhow::{anyhow, bail};
use bytes::Bytes;
use paceline_tool::exit;
use std::io::{self, Read as _};
use std::path::Path;

/// Limit of a file in bytes; it stays in memory while it is published.
const FILE_MAX: u64 = 4 << 30;

/// Reads a whole file of at most [`FILE_MAX`] bytes.
pub(super) fn read(file: &Path) -> anyhow::Result<Bytes> {
    let cannot =
        |error: io::Error| anyhow!("cannot read {}: {}", file.display(), exit::file_error(&error));
    let length = std::fs::metadata(file).map_err(cannot)?.len();
    if length > FILE_MAX {
        bail!(
            "{} has {length} bytes, at most {FILE_MAX} are published sample by sample; split the \
             file",
            file.display()
        );
    }
    // The length of a pipe is not known in advance.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    let opened = std::fs::File::open(file).map_err(cannot)?;
    opened.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_MAX {
        bail!(
            "{} has more than the {FILE_MAX} bytes that are published sample by sample; split it",
            file.display()
        );
    }
    Ok(bytes.into())
}
