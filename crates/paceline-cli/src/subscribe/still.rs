//! A PNG file: the newest picture.

use anyhow::{Context as _, anyhow};
use paceline::Delivery;
use std::path::PathBuf;

/// A file that holds one picture.
pub(crate) struct Still {
    path: PathBuf,
}

impl Still {
    /// A file that has nothing yet.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Puts a picture in place of the one before; whoever reads sees one of the two, whole.
    pub(crate) fn write(&self, delivery: &Delivery) -> anyhow::Result<()> {
        if delivery.encoding.as_str() != "image/png" {
            return Err(anyhow!(
                "--out {}: sample {} of {} is {}, a .png file holds an image/png picture; give \
                 another --out",
                self.path.display(),
                delivery.seq,
                delivery.tag,
                delivery.encoding
            ));
        }
        let next = self.path.with_extension("png.part");
        std::fs::write(&next, &delivery.payload)
            .and_then(|()| std::fs::rename(&next, &self.path))
            .with_context(|| format!("--out {}: cannot write", self.path.display()))
    }
}
