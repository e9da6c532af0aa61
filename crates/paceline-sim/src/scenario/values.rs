//! Single values of a file: ranges, units and conversions.

use super::file::{Amount, Bursts, Field, Loss as Written};
use super::problems::Checked;
use crate::impair::Loss;
use core::ops::{Range, RangeInclusive};
use paceline_sched::units::{self, UnitError};
use paceline_sched::{Capacity, Duration};
use toml::Spanned;

/// The longest time of a scenario: a day.
pub(super) const TIME_MAX: Duration = Duration::from_secs(86_400);
/// The longest time on a link.
pub(super) const LINK_TIME_MAX: Duration = Duration::from_secs(60);
const MILLION: f64 = 1_000_000.0;

/// A table of the file: its prefix in messages, and its position.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

/// A range of numbers, with the unit and advice for an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) unit: &'static str,
    pub(super) fix: &'static str,
}

/// The rates of samples, with the default of a publisher.
pub(super) const HZ: Rule =
    Rule { min: 0.001, max: 1_000_000.0, unit: "Hz", fix: "defaults to 10" };

impl Rule {
    fn text(&self) -> String {
        let Self { min, max, unit, fix } = self;
        format!("must be from {min} to {max} {unit}; {fix}")
    }
}

impl Place {
    pub(super) fn new(name: String, span: Range<usize>) -> Self {
        Self { name, span }
    }

    /// Returns a number, if present. Reports an error if it is out of range.
    pub(super) fn number(
        &self,
        field: &str,
        value: &Field<f64>,
        rule: Rule,
        checked: &mut Checked<'_>,
    ) -> Option<f64> {
        let value = value.as_ref()?;
        let number = *value.get_ref();
        if (rule.min..=rule.max).contains(&number) {
            return Some(number);
        }
        checked.refuse(&value.span(), &self.name, field, &rule.text());
        None
    }

    /// Returns an integer, if present. Reports an error if it is out of range.
    pub(super) fn whole(
        &self,
        field: &str,
        value: &Field<i64>,
        (range, fix): (RangeInclusive<i64>, &str),
        checked: &mut Checked<'_>,
    ) -> Option<i64> {
        let value = value.as_ref()?;
        if range.contains(value.get_ref()) {
            return Some(*value.get_ref());
        }
        let (least, most) = range.into_inner();
        let rule = format!("must be a whole number from {least} to {most}; {fix}");
        checked.refuse(&value.span(), &self.name, field, &rule);
        None
    }

    /// Returns text converted by `read`, if present. Reports an error if the conversion fails.
    pub(super) fn text<T>(
        &self,
        field: &str,
        value: &Field<String>,
        read: impl FnOnce(&str) -> Result<T, String>,
        checked: &mut Checked<'_>,
    ) -> Option<T> {
        let value = value.as_ref()?;
        match read(value.get_ref()) {
            Ok(read) => Some(read),
            Err(rule) => {
                checked.refuse(&value.span(), &self.name, field, &rule);
                None
            }
        }
    }

    /// Like [`Self::text`], for a required field.
    pub(super) fn needs<T>(
        &self,
        field: &str,
        value: &Field<String>,
        fix: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
        checked: &mut Checked<'_>,
    ) -> Option<T> {
        if value.is_none() {
            checked.add(&self.span, format!("{}{field} is missing: {fix}", self.name));
        }
        self.text(field, value, read, checked)
    }

    /// Returns a duration, if present. Reports an error if it is out of range.
    pub(super) fn duration(
        &self,
        field: &str,
        value: &Field<Amount>,
        (range, fix): (RangeInclusive<Duration>, &str),
        checked: &mut Checked<'_>,
    ) -> Option<Duration> {
        self.amount(field, value, fix, |text| units::duration_in(text, &range), checked)
    }

    /// Like [`Self::duration`], and suggests seconds for a bare number.
    pub(super) fn seconds(
        &self,
        field: &str,
        value: &Field<Amount>,
        (range, fix): (RangeInclusive<Duration>, &str),
        checked: &mut Checked<'_>,
    ) -> Option<Duration> {
        let read = |text: &str| units::duration_in(text, &range).map_err(UnitError::or_seconds);
        self.amount(field, value, fix, read, checked)
    }

    /// Returns a time of the scenario.
    pub(super) fn time(
        &self,
        field: &str,
        value: &Field<Amount>,
        fix: &str,
        checked: &mut Checked<'_>,
    ) -> Option<Duration> {
        self.seconds(field, value, (Duration::ZERO..=TIME_MAX, fix), checked)
    }

    pub(super) fn link_time(
        &self,
        field: &str,
        value: &Field<Amount>,
        fix: &str,
        checked: &mut Checked<'_>,
    ) -> Option<Duration> {
        self.duration(field, value, (Duration::ZERO..=LINK_TIME_MAX, fix), checked)
    }

    /// Returns a signed duration of at most a million seconds in nanoseconds.
    pub(super) fn shift(
        &self,
        field: &str,
        value: &Field<Amount>,
        fix: &str,
        checked: &mut Checked<'_>,
    ) -> Option<i64> {
        let range = Duration::ZERO..=Duration::from_secs(1_000_000);
        let read = |text: &str| {
            let (sign, amount) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
            let span = units::duration_in(amount, &range)?;
            Ok(sign * i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
        };
        self.amount(field, value, fix, read, checked)
    }

    /// Returns a size in bytes, if present. Reports an error if it is out of range.
    pub(super) fn size(
        &self,
        field: &str,
        value: &Field<Amount>,
        (range, fix): (RangeInclusive<u64>, &str),
        checked: &mut Checked<'_>,
    ) -> Option<u64> {
        self.amount(field, value, fix, |text| units::size_in(text, &range), checked)
    }

    fn amount<T>(
        &self,
        field: &str,
        value: &Field<Amount>,
        fix: &str,
        read: impl FnOnce(&str) -> Result<T, UnitError>,
        checked: &mut Checked<'_>,
    ) -> Option<T> {
        let value = value.as_ref()?;
        match read(&value.get_ref().0) {
            Ok(read) => Some(read),
            Err(error) => {
                checked.refuse(&value.span(), &self.name, field, &format!("{error}; {fix}"));
                None
            }
        }
    }

    /// Returns a share of frames, in parts per million.
    pub(super) fn share(
        &self,
        field: &str,
        value: &Field<f64>,
        checked: &mut Checked<'_>,
    ) -> Option<u32> {
        self.number(field, value, SHARE, checked).map(ppm)
    }

    pub(super) fn capacity(
        &self,
        field: &str,
        value: &Field<String>,
        checked: &mut Checked<'_>,
    ) -> Option<Capacity> {
        let read = |text: &str| text.parse::<Capacity>().map_err(|error| error.to_string());
        self.text(field, value, read, checked)
    }

    /// Returns a loss model.
    pub(super) fn loss(&self, value: &Field<Written>, checked: &mut Checked<'_>) -> Option<Loss> {
        let value = value.as_ref()?;
        let read = match value.get_ref() {
            Written::Share(share) => one(*share).map(|ppm| match ppm {
                0 => Loss::None,
                ppm => Loss::Random { ppm },
            }),
            Written::Bursts(bursts) => self::bursts(bursts),
        };
        if read.is_none() {
            checked.refuse(&value.span(), &self.name, "loss", LOSS);
        }
        read
    }
}

const SHARE: Rule =
    Rule { min: 0.0, max: 1.0, unit: "as a share of all frames", fix: "0.01 is one in a hundred" };
const LOSS: &str = "must be a share from 0 to 1, such as 0.01, or all of { good_to_bad, bad_to_good, \
     loss_good, loss_bad } as shares from 0 to 1, of which bad_to_good is above 0";

fn one(share: f64) -> Option<u32> {
    (SHARE.min..=SHARE.max).contains(&share).then(|| ppm(share))
}

fn bursts(written: &Bursts) -> Option<Loss> {
    let bad_to_good_ppm = one(written.bad_to_good?)?;
    (bad_to_good_ppm > 0).then_some(())?;
    Some(Loss::GilbertElliott {
        good_to_bad_ppm: one(written.good_to_bad?)?,
        bad_to_good_ppm,
        loss_good_ppm: one(written.loss_good?)?,
        loss_bad_ppm: one(written.loss_bad?)?,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1 by its rule")]
fn ppm(share: f64) -> u32 {
    (share * MILLION).round() as u32
}

/// Returns the time between two samples at a rate of `hz` samples per second.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in its range")]
pub(super) fn period(hz: f64) -> Duration {
    Duration::from_nanos((1e9 / hz).round() as u64)
}

/// Converts samples per second to millihertz.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in its range")]
pub(super) fn millihertz(hz: f64) -> u32 {
    (hz * 1_000.0).round() as u32
}

/// Returns the position of a value, or of its table if it is absent.
pub(super) fn span_of<T>(value: &Field<T>, place: &Place) -> Range<usize> {
    value.as_ref().map_or_else(|| place.span.clone(), Spanned::span)
}
