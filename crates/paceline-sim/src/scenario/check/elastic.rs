//! Checks the reductions that a subscriber accepts.

use crate::scenario::file::Subscriber;
use crate::scenario::problems::Checked;
use crate::scenario::values::{HZ, Place, Rule, millihertz, span_of};
use core::num::NonZeroU32;
use paceline_proto::control::{Elastic, IMPORTANCE_DEFAULT, IMPORTANCE_MAX, SubscriptionSpec};
use paceline_sched::units;

/// The bit rates of a request in bits per second: 1 kbit/s to 1 Gbit/s.
const BITRATES: core::ops::RangeInclusive<u64> = 1_000..=1_000_000_000;

/// Adds the bit rate, the importance and the reductions to a request, whose other values are known.
pub(super) fn reductions(
    place: &Place,
    written: &Subscriber,
    spec: &mut SubscriptionSpec,
    checked: &mut Checked<'_>,
) {
    let fix = "less important contracts are reduced first; defaults to 50";
    let range = 0..=i64::from(IMPORTANCE_MAX);
    let importance = place.whole("importance", &written.importance, (range, fix), checked);
    spec.importance = importance.and_then(|it| u8::try_from(it).ok()).unwrap_or(IMPORTANCE_DEFAULT);
    let (most, least) =
        place.text("bitrate", &written.bitrate, bitrates, checked).unwrap_or_default();
    spec.form.bitrate = most;
    let rule = Rule { fix: "the contract may be reduced down to it", ..HZ };
    let min_hz = place.number("min_hz", &written.min_hz, rule, checked).map(millihertz);
    let min_millihertz = min_hz.and_then(NonZeroU32::new);
    if min_millihertz.is_none() && least.is_none() {
        return;
    }
    let elastic = Elastic { min_millihertz, min_bitrate: least, ..Elastic::none(spec.form) };
    let span = if min_millihertz.is_some() {
        span_of(&written.min_hz, place)
    } else {
        span_of(&written.bitrate, place)
    };
    let field = if min_millihertz.is_some() { "min_hz" } else { "bitrate" };
    if spec.within.is_none() && spec.loss.is_none() {
        let rule = "needs a contract; set within or loss";
        checked.refuse(&span, &place.name, field, rule);
    } else if elastic.is_valid() {
        spec.elastic = Some(Box::new(elastic));
    } else {
        let rule =
            "must be below max_hz, which is required; for example max_hz = 30 and min_hz = 5";
        checked.refuse(&span, &place.name, field, rule);
    }
}

type Bits = Option<NonZeroU32>;

/// Parses one bit rate, or the highest and the lowest one of a range.
fn bitrates(text: &str) -> Result<(Bits, Bits), String> {
    let one = |text: &str| -> Result<Bits, String> {
        let bits = units::rate_in(text.trim(), &BITRATES).map_err(|error| {
            format!("{error}; for example bitrate = \"2mbit\" or \"2mbit..300kbit\"")
        })?;
        Ok(u32::try_from(bits).ok().and_then(NonZeroU32::new))
    };
    let Some((most, least)) = text.split_once("..") else { return Ok((one(text)?, None)) };
    let (most, least) = (one(most)?, one(least)?);
    if least >= most {
        return Err("the second bit rate must be below the first: \"2mbit..300kbit\"".to_owned());
    }
    Ok((most, least))
}
