//! The chosen delivery by time, and its checks.

use crate::delivery::{Otherwise, TimeBuffering};
use crate::error::SubscribeError;
use crate::shell::pacer;
use crate::shell::sink::{self, Timed};
use paceline_node::deliver::{DeliveryTiming, Fresh, SafeAction, Staged};
use paceline_time::spacing::Depth;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of an age limit.
const FRESH_MIN: Duration = Duration::from_micros(1);
const FRESH_MAX: Duration = Duration::from_secs(3_600);
/// The limit of an added delay, and of a delay bound with a largest jitter.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// A chosen delivery by time.
pub(super) enum Choice {
    Fresh(Duration, Otherwise),
    Ordered(TimeBuffering),
    Spaced(RangeInclusive<Duration>),
    MaxJitter(Duration),
    /// The name of a group, and its delay.
    SyncGroup(String, Duration),
}

/// The longest name of a group, in bytes.
const GROUP_BYTES: usize = 64;

impl Choice {
    /// Returns the name of the setter.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Fresh(..) => "fresh_within",
            Self::Ordered(_) => "ordered",
            Self::Spaced(_) => "spacing",
            Self::MaxJitter(_) => "max_jitter",
            Self::SyncGroup(..) => "sync_group",
        }
    }

    /// Returns true if it uses only samples with proved ages.
    pub(super) const fn proves(&self) -> bool {
        match self {
            Self::Fresh(..) | Self::Ordered(_) | Self::MaxJitter(_) => true,
            Self::Spaced(_) | Self::SyncGroup(..) => false,
        }
    }

    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), SubscribeError> {
        match self {
            Self::Fresh(limit, _) if !(FRESH_MIN..=FRESH_MAX).contains(limit) => {
                Err(SubscribeError::FreshWithin(*limit))
            }
            Self::Ordered(order) => Ok(order.check()?),
            Self::Spaced(depth) if depth.start() > depth.end() || *depth.end() > DELAY_MAX => {
                Err(SubscribeError::Spacing { min: *depth.start(), max: *depth.end() })
            }
            Self::MaxJitter(jitter) if jitter.is_zero() || *jitter > DELAY_MAX => {
                Err(SubscribeError::MaxJitter(*jitter))
            }
            Self::SyncGroup(group, delay)
                if !(1..=GROUP_BYTES).contains(&group.len())
                    || delay.is_zero()
                    || *delay > DELAY_MAX =>
            {
                Err(SubscribeError::SyncGroup { group: group.clone(), delay: *delay })
            }
            Self::Fresh(..) | Self::Spaced(_) | Self::MaxJitter(_) | Self::SyncGroup(..) => Ok(()),
        }
    }

    /// Refuses a choice that the delay bound contradicts.
    pub(super) fn check_bound(&self, within: Option<Duration>) -> Result<(), SubscribeError> {
        match (self, within) {
            (Self::MaxJitter(_), None) => Err(SubscribeError::MaxJitterWithoutBound),
            (Self::MaxJitter(_), Some(bound)) if bound > DELAY_MAX => {
                Err(SubscribeError::MaxJitter(bound))
            }
            (Self::SyncGroup(_, delay), Some(within)) if within > *delay => {
                Err(SubscribeError::SyncBound { delay: *delay, within })
            }
            (
                Self::Fresh(..)
                | Self::Ordered(_)
                | Self::Spaced(_)
                | Self::MaxJitter(_)
                | Self::SyncGroup(..),
                _,
            ) => Ok(()),
        }
    }

    /// Refuses a jitter that the wake-ups of this host cannot keep, as measured now. Blocks for some 15 ms.
    pub(super) fn admit(&self, realtime: bool) -> Result<(), SubscribeError> {
        let Self::MaxJitter(jitter) = self else { return Ok(()) };
        if realtime {
            pacer::use_realtime();
        }
        let Some(achievable) = pacer::measure_wakeups().map(Duration::from) else { return Ok(()) };
        if *jitter < achievable {
            let jitter = *jitter;
            return Err(SubscribeError::MaxJitterRefused { jitter, achievable });
        }
        Ok(())
    }

    /// Returns the delivery of a request with this delay bound.
    pub(super) fn into_method(self, within: Option<Duration>) -> Result<Timed, SubscribeError> {
        let staged = match self {
            Self::Fresh(limit, otherwise) => {
                let action = match otherwise {
                    Otherwise::Hold => SafeAction::Hold,
                    Otherwise::Zero => SafeAction::Zero,
                    Otherwise::Call(_) => SafeAction::Call,
                };
                let timing = DeliveryTiming::Fresh(Fresh::new(limit.into(), action));
                return Ok(Timed { timing, otherwise });
            }
            Self::Ordered(order) => Staged::ordered(order)?,
            Self::Spaced(depth) => {
                let (min, max) = depth.into_inner();
                let depth = Depth { min: min.into(), max: max.into(), ..Depth::default() };
                Staged::spaced(depth)
            }
            Self::MaxJitter(jitter) => {
                let delay = within.unwrap_or_default();
                Staged::delayed(delay.into(), jitter.into())
            }
            Self::SyncGroup(group, delay) => Staged::together(sink::join(&group, delay.into())?),
        };
        Ok(Timed { timing: DeliveryTiming::Staged(staged), otherwise: Otherwise::Hold })
    }
}
