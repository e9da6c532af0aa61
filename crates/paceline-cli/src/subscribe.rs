//! `paceline sub`: prints the samples of one subscription, or writes them to a file or standard output.

mod args;
mod dry_run;
mod explain;
mod lines;
mod rates;
mod report;
mod summary;
mod timed;

pub(crate) use args::SubArgs;

use crate::args::RequestedRate;
use crate::notices::{self, Notice, Notices};
use crate::payload::{LatestForm, SampleLine, Sink};
use crate::shortfall::Published;
use crate::status::published_tags;
use crate::tally::Tally;
use explain::Explainer;
use lines::Lines;
use paceline::contract::{BestEffort, Offer, Refusal};
use paceline::status::{Excess, PublisherId, SourceView};
use paceline::{Node, RecvError, Sample, SubscribeError, Subscriber, SubscriberEvent};
use paceline_media::Format;
use paceline_tool::exit;
use paceline_tool::show::{self, Block};
use paceline_tool::stop::{STOP_SLICE, Stop};
use rates::Rates;
use report::Losses;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);
/// The most offers that `--take-offer` takes.
const OFFERS_MAX: u32 = 3;
/// Time to wait for a publisher before printing a note.
const PATIENCE: Duration = Duration::from_secs(2);

/// The reason for the end.
enum End {
    Count,
    Timeout,
    Stopped,
    Refused,
}

/// Subscribes until `--count`, `--timeout` or a signal ends it.
pub(crate) fn run(args: &SubArgs) -> anyhow::Result<ExitCode> {
    args.timing.check()?;
    if args.dry_run {
        return dry_run::run(args);
    }
    let stop = Stop::on_signals()?;
    let sink = match args.play {
        true => Sink::window()?,
        false => Sink::open(args.out.as_deref(), args.force, args.json)?,
    };
    let node = args.node.open("sub", args.pattern.as_str())?;
    args.wish.check(&node, &args.pattern)?;
    let subscriber = declare(&node, args).map_err(|error| {
        if matches!(error, SubscribeError::Closed) { error.into() } else { exit::usage(error) }
    })?;
    let mut sink = sink;
    if let Some(tag) = &args.sound {
        sink.hear(&node, tag, args.wish.within)?;
    }
    let done = std::thread::scope(|scope| {
        let explainer = Explainer::start(scope, &node, &args.pattern);
        Session::new(args, &node, subscriber, sink, explainer).run(&stop)
    });
    node.close();
    done
}

fn declare(node: &Node, args: &SubArgs) -> Result<Subscriber, SubscribeError> {
    let mut builder = args.apply(node.subscriber(args.pattern.as_str())).queue(args.queue);
    if let Some(history) = args.history {
        builder = builder.history(history);
    }
    builder.declare()
}

struct Session<'a> {
    args: &'a SubArgs,
    node: &'a Node,
    subscriber: Subscriber,
    sink: Sink,
    block: Block,
    total: Tally,
    window: Tally,
    latest: LatestForm,
    heard: bool,
    noted: bool,
    noted_key: bool,
    refused: BTreeMap<PublisherId, Refused>,
    granted: BTreeSet<PublisherId>,
    notices: Notices,
    /// The publishers of the events that are being processed, once one of them is needed.
    known: Option<Vec<SourceView>>,
    /// The number of offers that may still be taken.
    offers: u32,
    /// The requested rate, also after a change.
    asked: RequestedRate,
    /// The publishing rates since the start, and in this second.
    published: Published,
    recent: Published,
    losses: Losses,
    explainer: Explainer,
    lines: Lines,
    rates: Rates,
    began: Instant,
    tick: Instant,
}

/// A refused request.
struct Refused {
    /// The publisher, such as `a/b of pub-b`, or the node that refuses for all of them.
    by: String,
    /// `refused`, or the kind of a worse service that `--require` does not accept.
    answer: &'static str,
    why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.by, self.answer, self.why)
    }
}

impl<'a> Session<'a> {
    fn new(
        args: &'a SubArgs,
        node: &'a Node,
        subscriber: Subscriber,
        sink: Sink,
        explainer: Explainer,
    ) -> Self {
        let began = Instant::now();
        Self {
            block: if args.to_stdout() { Block::on_stderr() } else { Block::on_stdout() },
            args,
            node,
            subscriber,
            sink,
            total: Tally::new(),
            window: Tally::new(),
            latest: LatestForm::default(),
            heard: false,
            noted: false,
            noted_key: false,
            refused: BTreeMap::new(),
            granted: BTreeSet::new(),
            notices: Notices::default(),
            known: None,
            offers: OFFERS_MAX,
            asked: args.wish.requested_rate(),
            published: Published::default(),
            recent: Published::default(),
            losses: Losses::default(),
            explainer,
            lines: Lines::of(args),
            rates: Rates::default(),
            began,
            tick: began + TICK,
        }
    }

    fn run(mut self, stop: &Stop) -> anyhow::Result<ExitCode> {
        let deadline = self.args.timeout.map(|timeout| self.began + timeout);
        let end = loop {
            if self.args.count.is_some_and(|count| self.total.delivered >= count) {
                break End::Count;
            }
            let now = Instant::now();
            if stop.requested() {
                break End::Stopped;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                break End::Timeout;
            }
            self.hear()?;
            let lines = self.notices.due(now);
            self.print(&lines);
            if self.args.require && !self.refused.is_empty() {
                break End::Refused;
            }
            self.tick(now)?;
            self.sink.poll()?;
            let until = deadline.unwrap_or(self.tick).min(self.tick).min(now + STOP_SLICE);
            match self.subscriber.recv_timeout(until.saturating_duration_since(now)) {
                Ok(delivery) => self.take(&delivery)?,
                Err(RecvError::Timeout) => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.hear()?;
        self.sink.end()?;
        let lines = self.notices.rest(Instant::now());
        self.print(&lines);
        let reason = self.reason(&end);
        self.summary(reason.as_deref())?;
        self.verdict(&end, reason)
    }

    fn take(&mut self, delivery: &Sample) -> anyhow::Result<()> {
        let now = Instant::now();
        self.heard = true;
        self.published.add(delivery);
        self.recent.add(delivery);
        self.compare(delivery);
        self.total.add(delivery, now);
        self.window.add(delivery, now);
        if self.args.json {
            show::json(&SampleLine::new(delivery, self.args.read_card))?;
        } else if !self.lines.print(delivery)? {
            self.latest.take(delivery);
        }
        self.sink.write(delivery, self.args.wish.requested_rate(), self.node)
    }

    /// Processes the subscriber's events.
    fn hear(&mut self) -> anyhow::Result<()> {
        self.known = None;
        while let Some(event) = self.subscriber.try_event() {
            match event {
                // A refusal also empties this list, but is reported by its own event.
                SubscriberEvent::Publishers(publishers)
                    if publishers.is_empty() && self.heard && self.sources().is_empty() =>
                {
                    let pattern = &self.args.pattern;
                    show::note(&format!(
                        "no publisher on {pattern} any more; still waiting (Ctrl-C ends)"
                    ));
                }
                SubscriberEvent::Publishers(publishers) => {
                    self.heard |= !publishers.is_empty();
                    self.recent.retain(&publishers);
                    self.args.wish.check(self.node, &self.args.pattern)?;
                }
                SubscriberEvent::Granted(grant) => {
                    self.notice(Notice::Granted, grant.publisher, grant.to_string());
                    self.granted.insert(grant.publisher);
                }
                SubscriberEvent::NoSpare(refusal) => {
                    self.notice(Notice::NoSpare, refusal.publisher, refusal.to_string());
                }
                SubscriberEvent::Withdrawn(publisher) => {
                    self.refused.remove(&publisher);
                    if self.granted.remove(&publisher) {
                        let text = "the contract no longer applies".to_owned();
                        self.notice(Notice::Ended, publisher, text);
                    }
                }
                SubscriberEvent::BestEffort(publisher, why) => {
                    self.report_best_effort(publisher, why)
                }
                SubscriberEvent::Excess { publisher, node_name, excess, .. } => {
                    self.report_excess(publisher, &node_name, excess);
                }
                SubscriberEvent::Changed { form, within, loss, .. } => {
                    self.refused.clear();
                    self.asked = RequestedRate::of(form.rate);
                    let asked = show::requested(form, within, loss);
                    show::note(&format!("the request changed: {asked}"));
                }
                SubscriberEvent::Warned(publisher, warning) => {
                    let name = self.name(publisher);
                    show::note(&format!("{name}: {warning}"));
                }
                SubscriberEvent::Adapted { form, adaptation, .. } => {
                    self.refused.clear();
                    self.asked = RequestedRate::of(form.rate);
                    show::note(&format!("changed to {form}, {adaptation}"));
                }
                SubscriberEvent::ChangeRefused { refusals, form, within, loss } => {
                    let asked = show::requested(form, within, loss);
                    self.report_refused_change(&refusals, &asked);
                }
                SubscriberEvent::Refused(publisher, refusal) => {
                    self.report_refusal(publisher, &refusal);
                }
                SubscriberEvent::Silent(silence) => self.report_silence(&silence),
                SubscriberEvent::Resumed(resumption) => self.report_resumption(&resumption),
                // An event of a later version.
                other => show::note(&format!("{other:?}")),
            }
        }
        Ok(())
    }

    /// Takes an offer of a refused change, or reports the request that stays in force.
    fn report_refused_change(&mut self, refusals: &[Refusal], asked: &str) {
        for refusal in refusals {
            show::note(&format!("refused: {}: {refusal}", self.name_of(refusal)));
        }
        if !refusals.iter().any(|refusal| self.take_offer(&refusal.offer)) {
            show::note(&format!("the change was refused; the request is unchanged: {asked}"));
        }
    }

    /// Reduces the request to an offer with `--take-offer`. Returns true if the request has changed.
    fn take_offer(&mut self, offer: &Offer) -> bool {
        let flags = offer.flags();
        let Some(first) = flags.first().filter(|_| self.args.take_offer && self.offers > 0) else {
            return false;
        };
        self.offers -= 1;
        let changed = self.subscriber.change(|request| request.offered(offer));
        match &changed {
            Ok(()) => show::note(&format!("taking the offer: {first}")),
            Err(error) => show::note(&format!("the offer {first} cannot be taken: {error}")),
        }
        changed.is_ok()
    }

    fn tick(&mut self, now: Instant) -> anyhow::Result<()> {
        if now < self.tick {
            return Ok(());
        }
        while self.tick <= now {
            self.tick += TICK;
        }
        if !self.heard && !self.noted && now >= self.began + PATIENCE {
            self.noted = true;
            let there = published_tags(self.node);
            show::note(&format!(
                "no publisher on {} yet; {there}; still waiting (Ctrl-C ends)",
                self.args.pattern
            ));
        }
        if !self.noted_key && self.total.delivered == 0 && self.refused.is_empty() {
            self.note_key_picture();
        }
        self.report_second(now)?;
        self.window = self.window.next();
        self.recent = self.recent.next();
        Ok(())
    }

    /// Prints the line about the last second, or the losses of payloads that are printed.
    fn report_second(&mut self, now: Instant) -> anyhow::Result<()> {
        if self.args.json || self.total.delivered == 0 {
            return Ok(());
        }
        let lost = self.lost(now);
        self.losses.reason = self.explainer.next(lost.is_any(), &self.subscriber.drops());
        let text = self.second(&lost);
        match self.lines.are_printed() {
            true if lost.are_counted() => show::note(&text),
            true => {}
            false => self.block.update(&text)?,
        }
        Ok(())
    }

    /// Notes that the first picture of a video has not arrived, and the longest time until it does.
    fn note_key_picture(&mut self) {
        let sources = self.sources();
        let video = |source: &&SourceView| Format::codec_of(source.encoding.as_str()).is_some();
        let Some(source) = sources.iter().find(video) else { return };
        self.noted_key = true;
        let until = match source.key_interval {
            Some(longest) => format!(", up to {:.1} s", longest.as_secs_f64()),
            None => String::new(),
        };
        show::note(&format!("waiting for a key picture of {}{until}", source.tag));
    }

    fn report_refusal(&mut self, publisher: PublisherId, refusal: &Refusal) {
        self.heard = true;
        let (by, why) = (self.name_of(refusal), refusal.to_string());
        self.notices.add(Notice::Refused, by.clone(), why.clone(), Instant::now());
        if !self.take_offer(&refusal.offer) {
            self.refused.insert(publisher, Refused { by, answer: "refused", why });
        }
    }

    /// Notes that a publisher is carried without the requested promise. With `--require` this counts as a
    /// refusal if a link of the path would have to make the promise. An unknown size is not reported: the
    /// first sample resolves it.
    fn report_best_effort(&mut self, publisher: PublisherId, why: BestEffort) {
        if why == BestEffort::SizeUnknown {
            return;
        }
        let source = self.known().iter().find(|it| it.publisher == publisher);
        let local = source.is_some_and(|source| notices::is_local(&source.hops));
        let text = notices::reason(why, local);
        self.notice(Notice::BestEffort, publisher, text);
        if why.is_no() && self.args.require {
            let by = self.name(publisher);
            let (answer, why) = ("granted no contract", why.to_string());
            self.refused.insert(publisher, Refused { by, answer, why });
        }
    }

    fn report_excess(&mut self, publisher: PublisherId, node_name: &str, excess: Excess) {
        let Excess { early, long } = excess;
        let text = format!(
            "{early} samples arrived too early and {long} were too large at node '{node_name}'; they are sent after \
             all contracts"
        );
        self.notice(Notice::Excess, publisher, text);
    }

    /// Reports a publisher that does not keep its declared rate.
    fn compare(&mut self, delivery: &Sample) {
        let publisher = delivery.publisher;
        if !self.rates.has(publisher) {
            let source = self.known().iter().find(|source| source.publisher == publisher);
            if let Some(period) = source.map(|source| source.period) {
                self.rates.add(publisher, period);
            }
        }
        if let Some(news) = self.rates.note(delivery) {
            self.notice(Notice::Rate, publisher, news.to_string());
        }
    }

    fn notice(&mut self, notice: Notice, publisher: PublisherId, text: String) {
        let name = self.name(publisher);
        self.notices.add(notice, name, text, Instant::now());
    }

    /// Returns the name of a publisher.
    fn name(&mut self, publisher: PublisherId) -> String {
        let node = self.node;
        notices::publisher(node, self.known(), publisher)
    }

    /// Returns the publisher that a refusal concerns, or the node that refuses for all publishers.
    fn name_of(&mut self, refusal: &Refusal) -> String {
        if refusal.is_for_all() { refusal.node_name.clone() } else { self.name(refusal.publisher) }
    }

    fn known(&mut self) -> &[SourceView] {
        let (node, pattern) = (self.node, &self.args.pattern);
        self.known.get_or_insert_with(|| node.sources(pattern))
    }

    fn print(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| show::note(line));
    }
}
