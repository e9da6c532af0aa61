//! The samples of a file, before it is published.

use super::flow::nothing;
use crate::publish::input::{Input, Place};
use crate::publish::traffic::traffic;
use anyhow::Context as _;
use paceline_media::stream::{Properties, StreamReader};
use std::io::Read as _;

/// The bytes of one read.
const READ: usize = 256 * 1024;

/// The samples of a file.
pub(super) struct Survey {
    pub(super) properties: Properties,
    /// Their lengths in bytes.
    pub(super) lengths: Vec<u32>,
}

impl Survey {
    /// Reads a file from its beginning to its end.
    ///
    /// # Errors
    /// Errors if it has no sample.
    pub(super) fn take(
        place: &Place,
        input: &mut Input,
        mut reader: StreamReader,
    ) -> anyhow::Result<Self> {
        let failed = |error: std::io::Error| place.cannot(&error);
        input.rewind().map_err(failed)?;
        let (mut properties, mut lengths) = (None, Vec::new());
        let mut part = vec![0; READ];
        loop {
            while let Some(sample) = reader.poll().with_context(|| place.name())? {
                if properties.is_none() {
                    properties = Some(reader.properties(&sample).with_context(|| place.name())?);
                }
                // Samples have at most 64 MiB.
                lengths.push(u32::try_from(sample.len()).unwrap_or(u32::MAX));
            }
            match input.read(&mut part).map_err(failed)? {
                0 if reader.is_ended() => break,
                0 => reader.end(),
                read => reader.push(part.get(..read).unwrap_or_default()),
            }
        }
        match properties {
            Some(properties) => Ok(Self { properties, lengths }),
            None => Err(nothing(&reader, place)),
        }
    }

    /// Returns the traffic of the file if it is published at `hz`, also again and again: a rate a tenth above its mean in
    /// bits per second, and the most bytes at once at that rate. Returns `None` if the largest sample in each period
    /// describes it well.
    pub(super) fn traffic(&self, hz: f64) -> Option<(u64, u64)> {
        traffic(&self.lengths, hz)
    }
}
