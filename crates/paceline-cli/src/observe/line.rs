//! One output line with the requested, granted and delivered service.

use super::args::LookArgs;
use super::meter::Figures;
use crate::args::RequestedRate;
use paceline::contract::Form;
use paceline::status::Drops;
use paceline::status::by_reason;
use paceline_tool::show;
use serde::Serialize;
use std::num::NonZeroU32;

/// The requested service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Asked {
    pub(super) form: String,
    pub(super) every: Option<u32>,
    pub(super) max_hz: Option<f64>,
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) within_us: Option<u64>,
    pub(super) loss: Option<String>,
}

/// The granted service, and the measured rate of the publishers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Granted {
    /// The requested part of the published samples per second; `None` until the latter are known.
    pub(super) rate_hz: Option<f64>,
    /// Published samples per second, from sequence numbers and the publishers' clocks.
    pub(super) published_hz: Option<f64>,
    /// True if every publisher has granted a contract, false for best effort.
    pub(super) promised: bool,
    /// Reasons why publishers refused the request.
    pub(super) refused: Vec<String>,
}

/// The delivered service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Delivered {
    pub(super) samples: u64,
    pub(super) bytes: u64,
    /// Samples per second over the last second.
    pub(super) rate_hz: f64,
    pub(super) late: u64,
    #[serde(serialize_with = "by_reason::serialize")]
    pub(super) dropped: Drops,
}

/// One line of `--json`.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    pub(super) tag: &'a str,
    #[serde(flatten)]
    pub(super) figures: Option<Figures>,
    pub(super) asked: &'a Asked,
    pub(super) granted: Granted,
    pub(super) delivered: Delivered,
}

impl Asked {
    /// Combines the flags with `form`; flags win.
    pub(super) fn new(look: &LookArgs, form: Form) -> Self {
        let RequestedRate { every, max_hz } = look.wish.requested_rate().or(form.rate);
        let asked = look.wish.size().map(|size| (size.width, size.height));
        let size = asked.or_else(|| form.size.map(|size| (size.width, size.height)));
        let asked = look.wish.audio.map(|(rate, channels)| format!("{rate}x{channels}"));
        let audio = asked.or_else(|| form.audio.map(|audio| audio.to_string()));
        let mut text = RequestedRate { every, max_hz }.words();
        if let Some((width, height)) = size {
            text.push_str(&format!(" at {width}x{height}"));
        }
        if let Some(audio) = audio {
            text.push_str(&format!(" at {audio}"));
        }
        let bitrate = look.wish.bits_per_s().or_else(|| form.bitrate.map(NonZeroU32::get));
        if let Some(bitrate) = bitrate {
            text.push_str(&format!(" at {bitrate} bit/s"));
        }
        Self {
            form: text,
            every,
            max_hz,
            width: size.map(|(width, _)| width),
            height: size.map(|(_, height)| height),
            within_us: look.wish.within.map(show::micros),
            loss: look.wish.loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
        }
    }

    /// Returns the requested rate if publishers publish `published_hz` samples per second.
    pub(super) fn of(&self, published_hz: f64) -> f64 {
        let some = self.every.map_or(published_hz, |n| published_hz / f64::from(n));
        self.max_hz.map_or(some, |max| some.min(max))
    }
}

/// Formats the line as text.
pub(super) fn line(asked: &Asked, granted: &Granted, delivered: &Delivered) -> String {
    let mut wish = asked.form.clone();
    if let Some(us) = asked.within_us {
        wish.push_str(&format!(" within {} ms", show::millis(us)));
    }
    if let Some(loss) = &asked.loss {
        wish.push_str(&format!(" loss {loss}"));
    }
    let how = if granted.promised { "contract" } else { "best effort" };
    let answer = match granted.refused.first() {
        Some(why) if granted.published_hz.is_none() => format!("refused: {why}"),
        Some(why) => format!("{how}, but refused by one publisher: {why}"),
        None => how.to_owned(),
    };
    let published = match (granted.published_hz, granted.rate_hz) {
        (Some(all), Some(part)) if part < all => {
            format!(" | published: {all:.2} Hz, {part:.2} Hz of them requested")
        }
        (Some(all), _) => format!(" | published: {all:.2} Hz"),
        (None, _) => String::new(),
    };
    format!(
        "asked: {wish} | granted: {answer}{published} | delivered: {:.2} Hz, late {}, dropped {}",
        delivered.rate_hz,
        delivered.late,
        show::drops(&delivered.dropped)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            form: "5 Hz at 160x120".to_owned(),
            every: None,
            max_hz: Some(5.0),
            width: Some(160),
            height: Some(120),
            within_us: Some(200_000),
            loss: Some("1/10".to_owned()),
        }
    }

    fn granted(refused: &[&str], rate_hz: Option<f64>) -> Granted {
        let refused = refused.iter().map(|&why| why.to_owned()).collect();
        Granted { rate_hz, published_hz: rate_hz.map(|_| 30.0), promised: true, refused }
    }

    fn delivered() -> Delivered {
        Delivered { samples: 9, bytes: 90, rate_hz: 4.98, late: 1, dropped: Drops::default() }
    }

    #[test]
    fn the_line_shows_requested_granted_and_delivered() {
        assert_eq!(
            line(&asked(), &granted(&[], Some(5.0)), &delivered()),
            "asked: 5 Hz at 160x120 within 200 ms loss 1/10 | granted: contract | published: 30.00 Hz, \
             5.00 Hz of them requested | delivered: 4.98 Hz, late 1, dropped 0"
        );
        let text = line(&asked(), &granted(&["link 'thin' is full"], None), &delivered());
        assert!(text.contains("| granted: refused: link 'thin' is full |"), "{text}");
        let text = line(&asked(), &granted(&["x"], Some(5.0)), &delivered());
        assert!(text.contains("granted: contract, but refused by one publisher: x"), "{text}");
        let all = Granted { rate_hz: Some(30.0), promised: false, ..granted(&[], Some(30.0)) };
        let text = line(&asked(), &all, &delivered());
        assert!(text.contains("| granted: best effort | published: 30.00 Hz | deliv"), "{text}");
    }

    #[test]
    fn the_expected_rate_is_the_requested_part_of_the_published_rate() {
        assert!((asked().of(30.0) - 5.0).abs() < 1e-9);
        assert!((asked().of(2.0) - 2.0).abs() < 1e-9);
        let third = Asked { every: Some(3), max_hz: None, ..asked() };
        assert!((third.of(30.0) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_line_of_json_contains_the_figures() {
        let figures =
            Figures::Rate { rate_hz: 5.0, min_us: 1.0, max_us: 2.0, std_dev_us: 0.5, window: 3 };
        let (asked, granted) = (asked(), granted(&[], None));
        let line = Line {
            tag: "a/b",
            figures: Some(figures),
            asked: &asked,
            granted,
            delivered: delivered(),
        };
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            "{\"tag\":\"a/b\",\"rate_hz\":5.0,\"min_us\":1.0,\"max_us\":2.0,\"std_dev_us\":0.5,\
             \"window\":3,\"asked\":{\"form\":\"5 Hz at 160x120\",\"every\":null,\"max_hz\":5.0,\
             \"width\":160,\"height\":120,\"within_us\":200000,\"loss\":\"1/10\"},\"granted\":\
             {\"rate_hz\":null,\"published_hz\":null,\"promised\":true,\"refused\":[]},\
             \"delivered\":{\"samples\":9,\"bytes\":90,\"rate_hz\":4.98,\"late\":1,\"dropped\":{}}}"
        );
    }
}
