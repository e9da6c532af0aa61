//! The subscription to one observed tag, and its results.

use super::args::LookArgs;
use super::choice::{Choice, Thin};
use super::line::{Asked, Delivered, Granted, Line, line};
use super::meter::Meter;
use crate::tally::Tally;
use anyhow::Context as _;
use bytes::Bytes;
use paceline::contract::Form;
use paceline::status::{DropReason, Drops, PublisherId};
use paceline::{Node, Sample, SubscribeError, SubscriberEvent, Subscription, Tag};
use paceline_tool::show;
use paceline_tool::stats::round3;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

/// A received sample.
pub(crate) struct Seen {
    /// Delivery time.
    pub(super) at: Instant,
    /// Payload size in bytes.
    pub(super) bytes: usize,
    /// The sample; without its payload if only its size is used.
    pub(super) delivery: Sample,
}

/// The current subscription.
struct Asking {
    form: Form,
    asked: Asked,
    subscription: Subscription,
    /// Samples dropped because the queue was full.
    missed: Arc<AtomicU64>,
}

/// The last sequence number and clock reading of a publisher, at the last report and now.
#[derive(Clone, Copy)]
struct Published {
    then: (u64, u64),
    now: (u64, u64),
    hz: Option<f64>,
}

/// An observed tag.
pub(crate) struct Watch {
    tag: Tag,
    asking: Option<Asking>,
    meter: Option<Meter>,
    published: BTreeMap<PublisherId, Published>,
    refused: BTreeMap<PublisherId, String>,
    /// The publishers that have granted a contract.
    contracts: BTreeSet<PublisherId>,
    /// Counts since the last report, and since the start.
    second: Tally,
    total: Tally,
    /// Drops of earlier subscriptions.
    dropped: Drops,
    noted: Option<Thin>,
}

impl Watch {
    pub(super) fn new(tag: Tag, meter: Option<Meter>) -> Self {
        Self {
            tag,
            asking: None,
            meter,
            published: BTreeMap::new(),
            refused: BTreeMap::new(),
            contracts: BTreeSet::new(),
            second: Tally::new(),
            total: Tally::new(),
            dropped: Drops::default(),
            noted: None,
        }
    }

    /// Returns the form of the current subscription.
    pub(super) fn form(&self) -> Option<Form> {
        self.asking.as_ref().map(|asking| asking.form)
    }

    /// Explains why there is no subscription.
    pub(super) fn why_not(&self) -> Option<String> {
        self.noted.as_ref().map(|thin| {
            format!(
                "{} would arrive over link {} ({}), and no other subscriber receives it there; \
                 try --max-hz 1 for one sample per second, or --every 1 for all",
                self.tag, thin.link, thin.capacity
            )
        })
    }

    /// Applies a choice: subscribes, keeps the subscription, or ends it.
    pub(super) fn follow(
        &mut self,
        choice: Choice,
        look: &LookArgs,
        node: &Node,
        to: &SyncSender<Seen>,
        payloads: bool,
    ) -> anyhow::Result<()> {
        match choice {
            Choice::Take(form) if self.form() == Some(form) => {}
            Choice::Take(form) => {
                self.leave();
                self.noted = None;
                let asking = self.ask(form, look, node, to.clone(), payloads);
                let asking = asking.with_context(|| format!("cannot subscribe to {}", self.tag))?;
                show::note(&format!("subscribed to [{}]: {}", self.tag, asking.asked.form));
                self.asking = Some(asking);
            }
            Choice::Nobody => {
                if self.asking.is_some() {
                    show::note(&format!("[{}]: its publisher has gone; still waiting", self.tag));
                }
                self.leave();
            }
            Choice::Leave(thin) => {
                self.leave();
                if self.noted.as_ref() != Some(&thin) {
                    self.noted = Some(thin);
                    let why = self.why_not().unwrap_or_default();
                    show::note(&format!("not subscribed to [{}]: {why}", self.tag));
                }
            }
        }
        Ok(())
    }

    fn ask(
        &self,
        form: Form,
        look: &LookArgs,
        node: &Node,
        to: SyncSender<Seen>,
        payloads: bool,
    ) -> Result<Asking, SubscribeError> {
        let missed = Arc::new(AtomicU64::new(0));
        let full = Arc::clone(&missed);
        let builder = look.ask(node, self.tag.as_str(), form);
        let subscription = builder.callback(move |mut delivery| {
            let (at, bytes) = (Instant::now(), delivery.payload.len());
            if !payloads {
                delivery.payload = Bytes::new();
            }
            if to.try_send(Seen { at, bytes, delivery }).is_err() {
                full.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        Ok(Asking { form, asked: Asked::new(look, form), subscription, missed })
    }

    /// Ends the subscription and restarts all measurements.
    fn leave(&mut self) {
        if let Some(asking) = self.asking.take() {
            for (reason, count) in asking.drops().iter() {
                self.dropped.add(reason, count);
            }
            if let Some(meter) = &mut self.meter {
                meter.begin_anew();
            }
            self.published.clear();
            self.refused.clear();
            self.contracts.clear();
        }
    }

    /// Counts a sample.
    pub(super) fn take(&mut self, seen: &Seen) {
        let delivery = &seen.delivery;
        self.refused.remove(&delivery.publisher);
        self.second.add_sized(delivery, seen.bytes, seen.at);
        self.total.add_sized(delivery, seen.bytes, seen.at);
        if let Some(meter) = &mut self.meter {
            meter.add(seen.at, seen.bytes, delivery.age);
        }
        let now = (delivery.seq, delivery.captured.nanos);
        let fresh = Published { then: now, now, hz: None };
        self.published.entry(delivery.publisher).or_insert(fresh).now = now;
    }

    /// Processes the subscription's events.
    pub(super) fn hear(&mut self) {
        let Some(asking) = &self.asking else { return };
        while let Some(event) = asking.subscription.try_event() {
            match event {
                SubscriberEvent::Publishers(heard) => {
                    self.refused.retain(|publisher, _| !heard.contains(publisher));
                    self.published.retain(|publisher, _| heard.contains(publisher));
                    self.contracts.retain(|publisher| heard.contains(publisher));
                }
                SubscriberEvent::Granted(grant) => _ = self.contracts.insert(grant.publisher),
                SubscriberEvent::BestEffort(publisher, _) => {
                    self.contracts.remove(&publisher);
                }
                // The delivered samples show whether a contract is kept.
                SubscriberEvent::NoSpare(_)
                | SubscriberEvent::Excess { .. }
                | SubscriberEvent::Silent(_)
                | SubscriberEvent::Resumed(_)
                | SubscriberEvent::ChangeRefused { .. }
                | SubscriberEvent::Changed { .. }
                | SubscriberEvent::Adapted { .. }
                | SubscriberEvent::Warned(..) => {}
                SubscriberEvent::Withdrawn(publisher) => {
                    self.refused.remove(&publisher);
                    self.contracts.remove(&publisher);
                }
                SubscriberEvent::Refused(publisher, refusal) => {
                    let why = refusal.to_string();
                    if self.refused.get(&publisher) != Some(&why) {
                        show::note(&format!("[{}]: refused: {why}", self.tag));
                        self.refused.insert(publisher, why);
                    }
                }
                // An event of a later version.
                _ => {}
            }
        }
    }

    /// Returns the first refusal.
    pub(super) fn refusal(&self) -> Option<&String> {
        self.refused.values().next()
    }

    fn granted(&mut self, asked: &Asked) -> Granted {
        for rate in self.published.values_mut() {
            let (numbers, nanos) =
                (rate.now.0.checked_sub(rate.then.0), rate.now.1.checked_sub(rate.then.1));
            if let (Some(numbers @ 1..), Some(nanos @ 1..)) = (numbers, nanos) {
                #[expect(clippy::cast_precision_loss, reason = "displayed only")]
                let hz = numbers as f64 * 1e9 / nanos as f64;
                (rate.then, rate.hz) = (rate.now, Some(hz));
            }
        }
        let rates: Vec<f64> = self.published.values().filter_map(|rate| rate.hz).collect();
        let published: Option<f64> = (!rates.is_empty()).then(|| rates.iter().sum());
        Granted {
            rate_hz: published.map(|hz| round3(asked.of(hz))),
            published_hz: published.map(round3),
            promised: !self.published.is_empty()
                && self.published.keys().all(|publisher| self.contracts.contains(publisher)),
            refused: self.refused.values().cloned().collect(),
        }
    }

    /// Returns the samples dropped at this node.
    pub(super) fn drops(&self) -> Drops {
        let mut dropped = self.dropped;
        self.asking.iter().for_each(|asking| dropped.merge(&asking.drops()));
        dropped
    }

    fn delivered(&self) -> Delivered {
        Delivered {
            samples: self.total.delivered,
            bytes: self.total.bytes,
            rate_hz: self.second.rate_hz(),
            late: self.total.late,
            dropped: self.drops(),
        }
    }

    /// Prints the report of a second as text; prints nothing until a sample has arrived.
    pub(super) fn print(&mut self, now: Instant, named: bool) -> anyhow::Result<()> {
        let figures = self.meter.as_ref().and_then(|meter| meter.figures(now));
        let (Some(asked), Some(figures)) = (self.request(), figures) else { return Ok(()) };
        let name = if named { format!("[{}]\n", self.tag) } else { String::new() };
        let figures = match self.second.delivered {
            0 => "no new messages".to_owned(),
            _ => figures.lines(),
        };
        let three = line(&asked, &self.granted(&asked), &self.delivered());
        self.second = self.second.next();
        show::line(&format!("{name}{figures}\n\t{three}"))
    }

    /// Prints the report of a second as a line of JSON.
    pub(super) fn print_json(&mut self, now: Instant) -> anyhow::Result<()> {
        let Some(asked) = self.request() else { return Ok(()) };
        let figures = self.meter.as_ref().and_then(|meter| meter.figures(now));
        let (granted, delivered) = (self.granted(&asked), self.delivered());
        self.second = self.second.next();
        show::json(&Line { tag: self.tag.as_str(), figures, asked: &asked, granted, delivered })
    }

    /// Returns the line of requested, granted and delivered service since the start.
    pub(super) fn sum(&mut self) -> Option<String> {
        let asked = self.request()?;
        let (granted, delivered) = (self.granted(&asked), self.delivered());
        let delivered = Delivered { rate_hz: self.total.rate_hz(), ..delivered };
        Some(format!("[{}] {}", self.tag, line(&asked, &granted, &delivered)))
    }

    /// Returns the requested form in words.
    pub(super) fn form_in_words(&self) -> Option<String> {
        self.request().map(|asked| asked.form)
    }

    /// Returns true if samples arrived since the last report.
    pub(super) const fn has_news(&self) -> bool {
        self.second.delivered > 0
    }

    fn request(&self) -> Option<Asked> {
        self.asking.as_ref().map(|asking| asking.asked.clone())
    }
}

impl Asking {
    /// Returns the samples dropped here, including those that found the queue full.
    fn drops(&self) -> Drops {
        let mut drops = self.subscription.drops();
        drops.add(DropReason::SubscriberFull, self.missed.load(Ordering::Relaxed));
        drops
    }
}
