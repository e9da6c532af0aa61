//! Delivery by time: the options `--fresh`, `--ordered`, `--hold`, `--spacing`, `--max-jitter` and
//! `--sync-group`.

use paceline::SubscriberBuilder;
use paceline::delivery::{LateArrival, OrderedBy, Otherwise, TimeBuffering};
use paceline_tool::exit;
use std::time::Duration;

/// The options of delivery by time.
#[derive(Debug, clap::Args)]
pub(crate) struct TimingArgs {
    /// Drops commands that may be older than TIME. When the last one reaches it, starts the safe action: hold (the
    /// default) only reports it, zero delivers one sample of zeros
    #[arg(long, value_name = "TIME[:hold|zero]", value_parser = fresh)]
    #[arg(conflicts_with_all = ["ordered", "spacing", "max_jitter", "sync_group"])]
    pub(crate) fresh: Option<FreshSpec>,
    /// Delivers samples in the order of their times: time (of all publishers), publisher (of each one), or none (as
    /// they arrive, the default)
    #[arg(long, value_name = "BY", value_parser = by)]
    #[arg(conflicts_with_all = ["spacing", "max_jitter", "sync_group"])]
    pub(crate) ordered: Option<By>,
    /// The longest wait of a sample with --ordered: TIME, or TIME,samples=N,bytes=SIZE,factor=0.5,late=flag. The buffer
    /// also releases the factor of its content (0.5 to 1) at so many samples or bytes; a late sample is delivered,
    /// flagged or dropped
    #[arg(long, value_name = "LIMITS", value_parser = hold, requires = "ordered")]
    pub(crate) hold: Option<HoldSpec>,
    /// Delivers samples with the spacing of their capture times, delayed by at most TIME
    #[arg(long, value_name = "TIME", value_parser = super::within, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "200ms", conflicts_with_all = ["max_jitter", "sync_group"])]
    pub(crate) spacing: Option<Duration>,
    /// Delivers each sample when its delay bound ends, so that the delay varies by at most TIME
    #[arg(long, value_name = "TIME", value_parser = super::within, requires = "within")]
    #[arg(conflicts_with = "sync_group")]
    pub(crate) max_jitter: Option<Duration>,
    /// Delivers samples at capture time + TIME (200ms by default), at the same instant as all members of this group on
    /// any host whose clock is synchronised
    #[arg(long, value_name = "NAME[=TIME]", value_parser = sync_group)]
    pub(crate) sync_group: Option<SyncSpec>,
}

/// The value of `--sync-group`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SyncSpec {
    pub(crate) name: String,
    pub(crate) delay: Duration,
}

/// The choice of `--ordered`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum By {
    /// As they arrive.
    None,
    /// By their times.
    Order(OrderedBy),
}

/// The value of `--fresh`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FreshSpec {
    pub(crate) limit: Duration,
    /// Deliver zeros as the safe action.
    pub(crate) zero: bool,
}

/// The value of `--hold`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldSpec(TimeBuffering);

const HOLD_DEFAULT: Duration = Duration::from_millis(50);
const HOLD_FIX: &str = "write 50ms, or 50ms,samples=256,bytes=1MB,factor=0.5,late=drop";

const SYNC_FIX: &str = "write stage or stage=200ms";

/// Parses the name of a group and its delay.
fn sync_group(text: &str) -> Result<SyncSpec, String> {
    let (name, delay) = text.rsplit_once('=').unwrap_or((text, "200ms"));
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        return Err(format!("name of 1 to 64 printable characters; {SYNC_FIX}"));
    }
    let range = paceline_sched::Duration::from_micros(1)..=paceline_sched::Duration::from_secs(60);
    let delay = super::duration_in(delay, &range, SYNC_FIX, false)?;
    Ok(SyncSpec { name: name.to_owned(), delay })
}

/// Parses an age limit and its safe action.
pub(crate) fn fresh(text: &str) -> Result<FreshSpec, String> {
    let (limit, action) = text.split_once(':').unwrap_or((text, "hold"));
    let zero = match action {
        "hold" => false,
        "zero" => true,
        other => {
            return Err(format!("safe action '{other}': must be hold or zero, such as 100ms:zero"));
        }
    };
    let range =
        paceline_sched::Duration::from_micros(1)..=paceline_sched::Duration::from_secs(3_600);
    let limit = super::duration_in(limit, &range, "for example 100ms or 100ms:zero", false)?;
    Ok(FreshSpec { limit, zero })
}

fn by(text: &str) -> Result<By, String> {
    match text {
        "time" => Ok(By::Order(OrderedBy::Time)),
        "publisher" => Ok(By::Order(OrderedBy::Publisher)),
        "none" => Ok(By::None),
        other => Err(format!("order '{other}': must be time, publisher or none")),
    }
}

fn hold(text: &str) -> Result<HoldSpec, String> {
    let mut items = text.split(',').map(str::trim);
    let range = paceline_sched::Duration::from_micros(1)..=paceline_sched::Duration::from_secs(60);
    let time = super::duration_in(items.next().unwrap_or_default(), &range, HOLD_FIX, false)?;
    let mut order = TimeBuffering::by_time(time);
    let number = |key: &str, text: &str, n: u64| {
        usize::try_from(n).map_err(|_| format!("{key} '{text}': is too large; {HOLD_FIX}"))
    };
    for item in items {
        let value = item.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        order = match value {
            Some(("samples", text)) => {
                let n = super::whole(text, 1, 65_536, "such as 256")
                    .map_err(|why| format!("samples: {why}"))?;
                order.entries(number("samples", text, n)?)
            }
            Some(("bytes", text)) => {
                let n = super::bytes_in(text, &(1..=128 << 20), "such as 1MB")
                    .map_err(|why| format!("bytes: {why}"))?;
                order.bytes(number("bytes", text, n)?)
            }
            Some(("factor", text)) => {
                let factor = super::number(text, 0.5, 1.0, "part of the content", "1 releases all");
                order.factor(factor.map_err(|why| format!("factor: {why}"))?)
            }
            Some(("late", "deliver")) => order.late(LateArrival::Deliver),
            Some(("late", "flag")) => order.late(LateArrival::Flag),
            Some(("late", "drop")) => order.late(LateArrival::Drop),
            Some(("late", other)) => {
                return Err(format!("late '{other}': must be deliver, flag or drop; {HOLD_FIX}"));
            }
            Some((key, _)) => {
                return Err(format!(
                    "key '{key}' is not known: the keys are samples, bytes, factor, late"
                ));
            }
            None => return Err(format!("'{item}' has no key; {HOLD_FIX}")),
        };
    }
    order.check().map_err(|error| error.to_string())?;
    Ok(HoldSpec(order))
}

impl TimingArgs {
    /// Refuses a time buffer without an order.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.ordered == Some(By::None) && self.hold.is_some() {
            return Err(exit::usage(
                "--hold with --ordered none: nothing waits; use --ordered time or --ordered publisher, or leave \
                 --hold out",
            ));
        }
        Ok(())
    }

    /// Applies the options.
    pub(crate) fn apply<'a>(&self, builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        let mut builder = builder;
        if let Some(FreshSpec { limit, zero }) = self.fresh {
            builder =
                builder.fresh_within(limit, if zero { Otherwise::Zero } else { Otherwise::Hold });
        }
        if let Some(By::Order(by)) = self.ordered {
            let order =
                self.hold.map_or_else(|| TimeBuffering::by_time(HOLD_DEFAULT), |hold| hold.0);
            builder = builder.ordered(order.by(by));
        }
        if let Some(longest) = self.spacing {
            builder = builder.spacing(Duration::ZERO..=longest);
        }
        if let Some(jitter) = self.max_jitter {
            builder = builder.max_jitter(jitter);
        }
        if let Some(SyncSpec { name, delay }) = &self.sync_group {
            builder = builder.sync_group(name, *delay);
        }
        builder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused_with_the_reason() {
        let limit = Duration::from_millis(100);
        assert_eq!(fresh("100ms"), Ok(FreshSpec { limit, zero: false }));
        assert_eq!(fresh("100ms:zero"), Ok(FreshSpec { limit, zero: true }));
        let order = TimeBuffering::by_time(Duration::from_millis(50));
        assert_eq!(hold("50ms"), Ok(HoldSpec(order)));
        let all = order.entries(8).bytes(2_000).factor(0.5).late(LateArrival::Drop);
        assert_eq!(hold("50ms, samples=8,bytes=2kB,factor=0.5,late=drop"), Ok(HoldSpec(all)));
        let stage = |delay| SyncSpec { name: "stage".to_owned(), delay };
        assert_eq!(sync_group("stage"), Ok(stage(Duration::from_millis(200))));
        assert_eq!(sync_group("stage=40ms"), Ok(stage(Duration::from_millis(40))));
        let (fresh, sync) = (|text| fresh(text).map(drop), |text| sync_group(text).map(drop));
        let hold = |text| hold(text).map(drop);
        for (result, part) in [
            (fresh("100ms:brake"), "safe action 'brake': must be hold or zero"),
            (fresh("0s"), "for example 100ms"),
            (fresh("2h"), "for example 100ms"),
            (sync("=40ms"), "name of 1 to 64"),
            (sync("stage=0s"), "write stage or stage=200ms"),
            (sync("stage=61s"), "write stage or stage=200ms"),
            (hold("1000h"), "write 50ms"),
            (hold("0ms"), "write 50ms"),
            (hold("50ms,samples=0"), "samples: must be a whole number from 1 to 65536"),
            (hold("50ms,bytes=0B"), "bytes: "),
            (hold("50ms,factor=0.4"), "factor: must be a number from 0.5 to 1"),
            (hold("50ms,factor=nan"), "factor: "),
            (hold("50ms,late=never"), "late 'never': must be deliver, flag or drop"),
            (hold("50ms,colour=red"), "key 'colour' is not known"),
            (hold("50ms,8"), "'8' has no key"),
            (by("size").map(drop), "order 'size': must be time, publisher or none"),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
