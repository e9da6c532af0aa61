//! A file of one picture: the newest.

use super::named::check;
use anyhow::Context as _;
use paceline::Delivery;
use std::path::PathBuf;

/// A file that holds one picture.
pub(crate) struct Still {
    path: PathBuf,
    encoding: &'static str,
}

impl Still {
    /// A file that has nothing yet.
    pub(crate) const fn new(path: PathBuf, encoding: &'static str) -> Self {
        Self { path, encoding }
    }

    /// Puts a picture in place of the one before; whoever reads sees one of the two, whole.
    pub(crate) fn write(&self, delivery: &Delivery) -> anyhow::Result<()> {
        check(&self.path, self.encoding, delivery)?;
        let next = self.path.with_extension("part");
        std::fs::write(&next, &delivery.payload)
            .and_then(|()| std::fs::rename(&next, &self.path))
            .with_context(|| format!("--out {}: cannot write", self.path.display()))
    }
}
