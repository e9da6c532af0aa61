//! Adaptive quality: lowers the picture quality while any subscriber receives less than it requested.

use paceline::Node;
use paceline::status::{Feedback, PublisherId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The feedback counters are per second, so one evaluation per second is enough.
const EVERY: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);
/// Lower limit of the quality: below it a test card is unreadable.
const QUALITY_MIN: u8 = 5;
/// Seconds without a shortfall before the quality rises, and seconds between two reductions: samples sent
/// before a reduction have to arrive first.
const CALM: u32 = 3;
const PATIENCE: u32 = 2;

/// A JPEG quality that one thread sets and another reads.
#[derive(Clone, Debug)]
pub(crate) struct Quality(Arc<AtomicU8>);

impl Quality {
    pub(crate) fn new(quality: u8) -> Self {
        Self(Arc::new(AtomicU8::new(quality)))
    }

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Multiplicative decrease by a quarter and additive increase, as in TCP congestion control: publishers that
/// share a link converge to fair shares.
#[derive(Debug)]
struct Control {
    best: u8,
    now: u8,
    calm: u32,
    since_worse: u32,
    /// Samples delivered and late of each subscription, one second ago.
    before: BTreeMap<String, (u64, u64)>,
}

impl Control {
    const fn new(best: u8) -> Self {
        Self { best, now: best, calm: 0, since_worse: PATIENCE, before: BTreeMap::new() }
    }

    /// Evaluates one second of feedback and returns the new quality.
    fn step(&mut self, feedback: &[Feedback]) -> u8 {
        let lacks = feedback.iter().any(|it| self.lacks(it));
        self.before = feedback.iter().filter_map(counted).collect();
        self.since_worse += 1;
        if !lacks {
            self.calm += 1;
            if self.calm >= CALM && !self.before.is_empty() {
                self.now = self.now.saturating_add(2).min(self.best);
            }
        } else if self.since_worse >= PATIENCE {
            (self.calm, self.since_worse) = (0, 0);
            self.now = (self.now - self.now / 4).max(QUALITY_MIN.min(self.best));
        } else {
            self.calm = 0;
        }
        self.now
    }

    /// Returns true if a subscription received less than nine tenths of its samples in the last second, or
    /// more than one in a hundred late. Ignores a subscription that is new in this second.
    fn lacks(&self, feedback: &Feedback) -> bool {
        let (Some((id, (delivered, late))), Some(period)) = (counted(feedback), feedback.period)
        else {
            return false;
        };
        let Some(&(delivered_before, late_before)) = self.before.get(&id) else { return false };
        let got = delivered.saturating_sub(delivered_before);
        let should = EVERY.as_nanos() / period.as_nanos().max(1);
        u128::from(got) * 10 < should * 9 || (late.saturating_sub(late_before)) * 100 > got
    }
}

/// Returns the samples delivered and late so far, if the subscription's node answered and granted it. Samples that waited in
/// the subscriber's process do not count: a lower quality would not bring them earlier.
fn counted(feedback: &Feedback) -> Option<(String, (u64, u64))> {
    let measured = feedback.measured.filter(|_| feedback.refusal.is_none())?;
    let late = measured.late.saturating_sub(measured.overdue);
    Some((feedback.subscription.to_string(), (measured.delivered, late)))
}

/// A thread that evaluates feedback once per second and sets the quality, until it is dropped.
pub(super) struct Adapter {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Adapter {
    pub(super) fn start(node: &Node, publisher: PublisherId, quality: &Quality) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (node, quality, ends) = (node.clone(), quality.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            let mut control = Control::new(quality.get());
            while !ends.load(Ordering::Relaxed) {
                let feedback = node.feedback(publisher, EVERY / 2);
                quality.0.store(control.step(&feedback), Ordering::Relaxed);
                let mut waited = Duration::ZERO;
                while waited < EVERY && !ends.load(Ordering::Relaxed) {
                    std::thread::sleep(STEP);
                    waited += STEP;
                }
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic of the thread has no further consequences.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::contract::Form;
    use paceline::status::{Measured, NodeId, SubscriptionId};

    #[test]
    fn samples_that_waited_in_the_subscriber_do_not_count() {
        let mut feedback = got(1, 100, 40);
        let measured = feedback.measured.as_mut().unwrap();
        measured.overdue = 30;
        assert_eq!(counted(&feedback).map(|(_, counts)| counts), Some((100, 10)));
    }

    /// A subscription to 10 samples per second.
    fn got(index: u32, delivered: u64, late: u64) -> Feedback {
        let measured = Measured { delivered, late, ..Measured::default() };
        Feedback {
            subscription: SubscriptionId { node: NodeId(1), index },
            node: "operator".to_owned(),
            form: Form::FULL,
            period: Some(Duration::from_millis(100)),
            within: None,
            loss: None,
            grant: None,
            refusal: None,
            excess: paceline::status::Excess::default(),
            measured: Some(measured),
        }
    }

    #[test]
    fn quality_falls_while_a_subscriber_misses_samples_and_rises_otherwise() {
        let mut control = Control::new(80);
        assert_eq!(control.step(&[got(1, 0, 0), got(2, 50, 0)]), 80, "nothing to compare with");
        // One of two subscriptions receives 4 of 10 samples.
        assert_eq!(control.step(&[got(1, 4, 0), got(2, 60, 0)]), 60);
        assert_eq!(control.step(&[got(1, 8, 0), got(2, 70, 0)]), 60, "it may not have arrived yet");
        assert_eq!(control.step(&[got(1, 12, 0), got(2, 80, 0)]), 45);
        let mut delivered = 12;
        let qualities: Vec<u8> = (0..20)
            .map(|_| {
                delivered += 9;
                control.step(&[got(1, delivered, 0)])
            })
            .collect();
        assert_eq!(qualities[..5], [45, 45, 47, 49, 51]);
        assert_eq!(*qualities.last().unwrap(), 80, "no better than requested");
        assert_eq!(control.step(&[got(1, delivered + 10, 1)]), 60, "late counts as well");
    }

    #[test]
    fn without_answers_quality_stays_and_it_has_a_minimum() {
        let mut control = Control::new(50);
        let silent = Feedback { measured: None, ..got(1, 0, 0) };
        let unknown = |delivered| Feedback { period: None, ..got(1, delivered, 0) };
        for second in 0..10 {
            assert_eq!(control.step(std::slice::from_ref(&silent)), 50);
            assert_eq!(control.step(&[unknown(second)]), 50);
            assert_eq!(control.step(&[]), 50);
        }
        let least = (0..100).map(|_| control.step(&[got(1, 7, 0)])).last();
        assert_eq!(least, Some(QUALITY_MIN));
        let mut poor = Control::new(2);
        assert!((0..100).all(|_| poor.step(&[got(1, 7, 0)]) == 2), "it was requested");
    }
}
