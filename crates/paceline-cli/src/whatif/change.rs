//! The changes of a recorded run.

use paceline::class::Policy;
use paceline::{Capacity, LossTolerance, Pattern};
use paceline_sim::scenario::SubscriberPlan;
use paceline_tool::args;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// All changes of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) capacities: Vec<CapacityChange>,
    pub(super) requests: Vec<RequestChange>,
    pub(super) discipline: Option<Policy>,
}

/// `[LINK=]RATE`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CapacityChange {
    /// `None` for all links.
    pub(super) link: Option<String>,
    pub(super) capacity: Capacity,
}

impl FromStr for CapacityChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (link, rate) = match text.split_once('=') {
            Some((link, rate)) => (Some(link.to_owned()), rate),
            None => (None, text),
        };
        Ok(Self { link, capacity: args::capacity(rate)? })
    }
}

/// A field of a request with its value; `None` removes it.
#[derive(Clone, Debug, PartialEq)]
enum FieldChange {
    MaxHz(Option<NonZeroU32>),
    Every(NonZeroU32),
    Within(Option<Duration>),
    Loss(Option<LossTolerance>),
}

/// `TAG.FIELD=VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestChange {
    pub(super) tags: Pattern,
    field: FieldChange,
}

const FORM: &str = "must be TAG.FIELD=VALUE with the field max_hz, every, within or loss; for example robot/camera.max_hz=10";

impl FromStr for RequestChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or(FORM)?;
        // Tags may contain dots.
        let (tag, field) = name.rsplit_once('.').ok_or(FORM)?;
        let tags = Pattern::new(tag).map_err(|error| format!("tag '{tag}': {error}"))?;
        let value = Some(value.trim()).filter(|value| !value.is_empty());
        let field = match field {
            "max_hz" => FieldChange::MaxHz(value.map(millihertz).transpose()?),
            "every" => {
                let every = value.map_or(Ok(1), args::every)?;
                FieldChange::Every(NonZeroU32::new(every).unwrap_or(NonZeroU32::MIN))
            }
            "within" => FieldChange::Within(value.map(args::within).transpose()?),
            "loss" => {
                let read = |text: &str| text.parse().map_err(|error| format!("loss: {error}"));
                FieldChange::Loss(value.map(read).transpose()?)
            }
            other => return Err(format!("no field '{other}'; {FORM}")),
        };
        Ok(Self { tags, field })
    }
}

/// Parses a rate in Hz.
fn millihertz(text: &str) -> Result<NonZeroU32, String> {
    let hertz = args::rate(text)?;
    of_hertz(hertz).ok_or_else(|| format!("{hertz} Hz are below 0.001 Hz"))
}

/// Returns a rate of samples in millihertz; `None` if it is below 0.001 Hz or too large.
pub(super) fn of_hertz(hertz: f64) -> Option<NonZeroU32> {
    let nanos = Duration::try_from_secs_f64(1.0 / hertz).ok()?.as_nanos();
    let millihertz = (1_000_000_000_000 + nanos / 2).checked_div(nanos)?;
    NonZeroU32::new(u32::try_from(millihertz).ok()?)
}

impl RequestChange {
    /// Changes the request of a subscriber.
    pub(super) fn apply(&self, to: &mut SubscriberPlan) {
        let spec = &mut to.spec;
        match self.field {
            FieldChange::MaxHz(max) => spec.form.rate.max_millihertz = max,
            FieldChange::Every(every) => spec.form.rate.every = every,
            FieldChange::Within(within) => spec.within = within.map(Into::into),
            FieldChange::Loss(loss) => spec.loss = loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_wrong_ones_are_named() {
        let capacity: CapacityChange = "thin=1mbit".parse().unwrap();
        assert_eq!(
            (capacity.link.as_deref(), capacity.capacity.bits_per_s()),
            (Some("thin"), 1_000_000)
        );
        let request: RequestChange = "robot/a.b/*.max_hz=2.5".parse().unwrap();
        assert_eq!(request.tags.as_str(), "robot/a.b/*");
        assert_eq!(request.field, FieldChange::MaxHz(NonZeroU32::new(2_500)));
        let seven: RequestChange = "robot/camera.max_hz=7".parse().unwrap();
        assert_eq!(seven.field, FieldChange::MaxHz(NonZeroU32::new(7_000)));
        let removed: RequestChange = "camera.within=".parse().unwrap();
        assert_eq!(removed.field, FieldChange::Within(None));
        for (text, part) in [
            ("camera", "TAG.FIELD=VALUE"),
            ("camera=3", "TAG.FIELD=VALUE"),
            ("camera.hz=3", "no field 'hz'"),
            ("camera.max_hz=fast", "must be a number"),
            ("camera.within=3", "unit"),
            ("camera.loss=3", "loss"),
        ] {
            let error = text.parse::<RequestChange>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
