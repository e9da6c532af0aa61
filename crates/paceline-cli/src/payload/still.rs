//! A file that contains only the newest picture.

use super::named::check;
use crate::outfile;
use anyhow::Context as _;
use paceline::Sample;
use std::path::PathBuf;

/// A file of one picture.
pub(crate) struct Still {
    path: PathBuf,
    encoding: &'static str,
}

impl Still {
    /// Creates the output; writes no file yet.
    pub(crate) const fn new(path: PathBuf, encoding: &'static str) -> Self {
        Self { path, encoding }
    }

    /// Replaces the picture atomically: readers always see a whole picture.
    pub(crate) fn write(&self, delivery: &Sample) -> anyhow::Result<()> {
        check(&self.path, self.encoding, delivery)?;
        outfile::replace(&self.path, &delivery.payload)
            .with_context(|| format!("--out {}: cannot write", self.path.display()))
    }
}
