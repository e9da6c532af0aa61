//! The keyword arguments of a subscriber that can also change while it runs.

use crate::convert::{self, NUMBER, TEXT, WHOLE, from_ms, option, pair};
use paceline::SubscriberBuilder;
use paceline::contract::{Proxy, Retransmit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// What `or_sizes` accepts.
const SIZES: &str = "a list of (width, height)";

/// The given arguments. Others keep their value.
#[derive(Default)]
pub(crate) struct Wish {
    every: Option<u32>,
    max_hz: Option<f64>,
    min_hz: Option<f64>,
    size: Option<(u32, u32)>,
    or_sizes: Vec<(u32, u32)>,
    audio: Option<(u32, u8)>,
    within: Option<Duration>,
    loss: Option<(u32, u32)>,
    proxy: Option<Proxy>,
    retransmit: Option<Retransmit>,
    bitrate: Option<u32>,
    min_bitrate: Option<u32>,
    importance: Option<u8>,
    quality: Option<u8>,
}

impl Wish {
    /// Reads the keyword arguments.
    pub(crate) fn read(asked: &Bound<'_, PyDict>) -> PyResult<Self> {
        let within = option(asked, "within_ms", NUMBER)?;
        let proxy = option::<String>(asked, "proxy", TEXT)?;
        let retransmit = option::<String>(asked, "retransmit", TEXT)?;
        Ok(Self {
            every: option(asked, "every", WHOLE)?,
            max_hz: option(asked, "max_hz", NUMBER)?,
            min_hz: option(asked, "min_hz", NUMBER)?,
            size: pair(asked, "size", 'x')?,
            or_sizes: option(asked, "or_sizes", SIZES)?.unwrap_or_default(),
            audio: pair(asked, "audio", 'x')?,
            within: within.map(|ms| from_ms("within_ms", ms)).transpose()?,
            loss: pair(asked, "loss", '/')?,
            proxy: proxy.map(|word| convert::proxy(&word)).transpose()?,
            retransmit: retransmit.map(|word| convert::retransmit(&word)).transpose()?,
            bitrate: option(asked, "bitrate", WHOLE)?,
            min_bitrate: option(asked, "min_bitrate", WHOLE)?,
            importance: option(asked, "importance", WHOLE)?,
            quality: option(asked, "quality", WHOLE)?,
        })
    }

    /// Applies the arguments to a builder.
    pub(crate) fn put(self, mut builder: SubscriberBuilder<'_>) -> SubscriberBuilder<'_> {
        if let Some(n) = self.every {
            builder = builder.every(n);
        }
        if let Some(hertz) = self.max_hz {
            builder = builder.max_hz(hertz);
        }
        if let Some(hertz) = self.min_hz {
            builder = builder.min_hz(hertz);
        }
        if let Some((width, height)) = self.size {
            builder = builder.size(width, height);
        }
        for (width, height) in self.or_sizes {
            builder = builder.or_size(width, height);
        }
        if let Some((rate, channels)) = self.audio {
            builder = builder.audio(rate, channels);
        }
        if let Some(bitrate) = self.bitrate {
            builder = builder.bitrate(bitrate);
        }
        if let Some(bitrate) = self.min_bitrate {
            builder = builder.min_bitrate(bitrate);
        }
        if let Some(importance) = self.importance {
            builder = builder.importance(importance);
        }
        if let Some(quality) = self.quality {
            builder = builder.quality(quality);
        }
        if let Some(within) = self.within {
            builder = builder.within(within);
        }
        if let Some((x, y)) = self.loss {
            builder = builder.loss(x, y);
        }
        if let Some(proxy) = self.proxy {
            builder = builder.proxy(proxy);
        }
        if let Some(retransmit) = self.retransmit {
            builder = builder.retransmit(retransmit);
        }
        builder
    }
}
