//! The test card, drawn picture by picture.

use super::adapt::Quality;
use super::source::{Next, Opened, Origin, Source};
use crate::args::CardSpec;
use anyhow::Context as _;
use bytes::Bytes;
use paceline::{Encoding, Size};
use paceline_media::TestCard;
use paceline_tool::host::unix_micros;
use std::time::Duration;

/// A test card and its JPEG quality.
struct Card {
    card: TestCard,
    quality: Quality,
}

impl Source for Card {
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        let picture = self.card.draw_jpeg(number, unix_micros(), self.quality.get());
        Ok(Next::Sample(Bytes::from(picture.context("cannot draw the test card")?).into()))
    }

    fn quality(&self) -> Option<&Quality> {
        Some(&self.quality)
    }

    fn has_end(&self) -> bool {
        false
    }

    fn keeps_time(&self) -> bool {
        true
    }
}

/// Creates the test card that the command line describes.
pub(super) fn open(spec: CardSpec, quality: u8) -> anyhow::Result<Opened> {
    let mut card = TestCard::new(spec.size)
        .map_err(|error| paceline_tool::exit::usage(format!("--test-card: {error}")))?;
    card.draw_jpeg(0, 0, quality).context("cannot draw the test card")?;
    let CardSpec { size, hz } = spec;
    Ok(Opened::new(
        Origin {
            encoding: Encoding::Jpeg,
            hz: Some(hz),
            size: Some(Size { width: size.width, height: size.height }),
            bytes_max: None,
            traffic: None,
            live: false,
            wait: Duration::ZERO,
            news: None,
            what: format!("test card {size} at {hz} Hz, image/jpeg of quality {quality}"),
        },
        Card { card, quality: Quality::new(quality) },
    ))
}
