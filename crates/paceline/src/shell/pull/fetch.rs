//! The second phase of a pull: fetches the found samples page by page and delivers them in order.

use super::super::command::{Command, Commands, Holders, PullCommand, Reply};
use super::super::sink::Sink;
use super::Pipe;
use super::ledger::{Key, Ledger};
use super::lookup::{Lookup, Wanted};
use crate::Sample;
use crate::event::SubscriberEvent;
use crate::summary::{MissingReason, PullError, PullSummary};
use event_listener::Listener;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::pull::{
    Answer, Answered, Fetch as Asked, Making, NEXT_MAX, Page, Question, private_pattern,
    publisher_of,
};
use paceline_proto::{Form, NodeId, PublisherId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The largest number of samples in a page.
const PAGE_SAMPLES: usize = 16;
/// The largest payload of a page in bytes, unless a single sample is larger.
const PAGE_BYTES: u64 = 4 << 20;
/// The queue of the private subscription: one page and its duplicates.
const QUEUE_SAMPLES: usize = 8 * PAGE_SAMPLES;
/// The largest number of retries for the missing samples of a page.
const AGAIN_MAX: u32 = 3;
/// The number of consecutive failed pages after which a node is not asked again.
const BARREN_MAX: u32 = 2;
/// The reaction time to answers and to the end of the pull.
const SLICE: Duration = Duration::from_millis(50);
/// The interval of reachability checks while nothing arrives.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A node unreachable for this long is given up, or earlier if another node has the samples.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// The result of a page.
enum Outcome {
    /// All samples arrived, or are requested from other nodes.
    Done,
    /// Nothing arrived before the timeout.
    Silent,
    /// The node does not provide the samples.
    Failed(MissingReason),
    /// The reader has left, or the pull has timed out.
    Stopped,
}

/// A page and the number of its retries.
struct Work {
    page: Page,
    again: u32,
}

/// The state of fetching a plan.
pub(super) struct Fetch<'a> {
    commands: &'a Commands,
    wanted: &'a Wanted,
    pipe: &'a Pipe,
    pull: u64,
    sink: Arc<Sink>,
    subscription: SubscriptionId,
    replies: Sender<Reply>,
    inbox: Receiver<Reply>,
    asked: u64,
    holders: Holders,
    answers: Vec<Answered>,
    ledger: Ledger,
    work: VecDeque<Work>,
    /// The nodes that do not provide a publisher's samples, with the reason.
    failed: BTreeMap<(NodeId, PublisherId), MissingReason>,
    /// The number of consecutive pages without any sample.
    barren: u32,
    contacted: BTreeSet<NodeId>,
    /// Publishers whose video is re-encoded.
    coded: BTreeSet<PublisherId>,
    /// The node and publisher of the encoding to which the last page belongs.
    coding: Option<(NodeId, PublisherId)>,
}

impl<'a> Fetch<'a> {
    /// Subscribes to the private tags of the pull.
    pub(super) fn new(
        commands: &'a Commands,
        wanted: &'a Wanted,
        pipe: &'a Pipe,
        lookup: Lookup,
    ) -> Result<Self, PullError> {
        let (reply, number) = channel();
        commands.send(Command::Pull(PullCommand::Number(reply)));
        let (me, pull) = number.recv().map_err(|_| PullError::Closed)?;
        let (sink, subscription) = subscribe(commands, me, pull)?;
        let Lookup { plan, answers, holders, silent } = lookup;
        let (replies, inbox) = channel();
        let pages = plan.pages(PAGE_SAMPLES, PAGE_BYTES).into_iter();
        let silent = silent.iter().map(|node| holders.name(*node)).collect();
        let other = || MissingReason::Refused("it is buffered in another coding".to_owned());
        let failed = plan.apart.iter().map(|apart| (*apart, other())).collect();
        Ok(Self {
            commands,
            wanted,
            pipe,
            pull,
            sink,
            subscription,
            replies,
            inbox,
            asked: 0,
            holders,
            answers,
            ledger: Ledger::new(&plan, silent),
            work: pages.map(|page| Work { page, again: 0 }).collect(),
            failed,
            barren: 0,
            contacted: BTreeSet::new(),
            coded: plan.coded,
            coding: None,
        })
    }

    /// Fetches until every sample has arrived or is given up.
    pub(super) fn run(&mut self) {
        while let Some(Work { page, again }) = self.work.pop_front() {
            let mut left: BTreeSet<u64> = page.seqs.iter().copied().collect();
            let outcome = match self.failed.get(&(page.holder, page.publisher)) {
                Some(reason) => Outcome::Failed(reason.clone()),
                None => self.fetch(&page, again, &mut left),
            };
            match outcome {
                Outcome::Done => {}
                Outcome::Silent if again < AGAIN_MAX => {
                    let left = self.again(&page, left);
                    let page = Page { seqs: left.into_iter().collect(), ..page };
                    self.work.push_front(Work { page, again: again + 1 });
                }
                Outcome::Silent => {
                    self.coding = None;
                    let reason = MissingReason::NotArrived { asked: again + 1 };
                    self.barren += 1;
                    if self.barren >= BARREN_MAX {
                        self.failed.insert((page.holder, page.publisher), reason.clone());
                    }
                    self.look_elsewhere(&page, left, &reason);
                }
                Outcome::Failed(reason) => {
                    self.failed.insert((page.holder, page.publisher), reason.clone());
                    self.look_elsewhere(&page, left, &reason);
                }
                Outcome::Stopped => break,
            }
            self.ledger.hand_on(self.pipe);
        }
        self.ledger.give_up();
        self.ledger.hand_on(self.pipe);
    }

    /// Requests the rest of a page and receives its samples.
    fn fetch(&mut self, page: &Page, again: u32, left: &mut BTreeSet<u64>) -> Outcome {
        if !self.ask(page, again, left) {
            return Outcome::Stopped;
        }
        let mut heard = Instant::now();
        let mut looked = heard;
        let mut away: Option<Instant> = None;
        while !left.is_empty() {
            if self.pipe.is_closed() || self.wanted.is_over() {
                return Outcome::Stopped;
            }
            if let Some(failed) = self.hear(page, left) {
                return failed;
            }
            if self.take(page, left) {
                heard = Instant::now();
                continue;
            }
            let bytes = left.iter().map(|seq| self.ledger.bytes((page.publisher, *seq)));
            let patience = self.holders.patience(bytes.max().unwrap_or_default());
            let until = heard + patience.saturating_mul(again + 1);
            if Instant::now() >= until {
                return Outcome::Silent;
            }
            self.wait(until);
            if heard.max(looked).elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                if let Some(outcome) = self.look_for(page, left, &mut away) {
                    return outcome;
                }
                // Do not count the time while the node is unreachable.
                heard = away.map_or(heard, |_| looked);
            }
        }
        Outcome::Done
    }

    fn ask(&mut self, page: &Page, again: u32, left: &BTreeSet<u64>) -> bool {
        while self.sink.pop_event().is_some() {}
        self.asked += 1;
        self.contacted.insert(page.holder);
        let Form { size, audio, .. } = self.wanted.form;
        let coded = self.coded.contains(&page.publisher);
        let coding = Some((page.holder, page.publisher));
        let fresh = coded && again == 0 && self.coding != coding;
        self.coding = coding;
        let question = Question::Fetch(Asked {
            pull: self.pull,
            tag: self.wanted.find.tag.clone(),
            publisher: page.publisher,
            making: Making { size, audio, coded },
            seqs: left.iter().copied().collect(),
            next: if coded { self.next_of(page) } else { Vec::new() },
            fresh,
        });
        let (token, reply) = (self.asked, Some(self.replies.clone()));
        let ask = PullCommand::Ask { to: page.holder, question, token, reply };
        self.commands.send(Command::Pull(ask))
    }

    /// Returns the sequence numbers after a page that the same node will be asked for.
    fn next_of(&self, page: &Page) -> Vec<u64> {
        let same =
            |work: &&Work| (work.page.holder, work.page.publisher) == (page.holder, page.publisher);
        let behind = self.work.iter().take_while(same).flat_map(|work| &work.page.seqs);
        behind.copied().take(NEXT_MAX).collect()
    }

    /// Returns the samples to request again if `left` of a page did not arrive. For re-encoded
    /// video these are all from the first missing one on, because a new encoding may start there.
    fn again(&mut self, page: &Page, left: BTreeSet<u64>) -> BTreeSet<u64> {
        if !self.coded.contains(&page.publisher) {
            return left;
        }
        let first = left.first().copied().unwrap_or(u64::MAX);
        let behind = page.seqs.iter().copied().filter(|seq| *seq >= first);
        behind.filter(|seq| self.ledger.forget((page.publisher, *seq))).collect()
    }

    /// Checks whether the node is reachable, and since when it is `away`. Returns the result of the
    /// page if the node is given up or has returned.
    fn look_for(
        &mut self,
        page: &Page,
        left: &BTreeSet<u64>,
        away: &mut Option<Instant>,
    ) -> Option<Outcome> {
        if self.is_there(page.holder) {
            // After a disconnection the node no longer knows what it was sending.
            return away.map(|_| Outcome::Silent);
        }
        let since = *away.get_or_insert_with(Instant::now);
        let mut keys = left.iter().map(|seq| (page.publisher, *seq));
        let elsewhere = keys.any(|key| self.other_holder(page.holder, key).is_some());
        (elsewhere || since.elapsed() >= GONE_AFTER)
            .then(|| Outcome::Failed(MissingReason::HolderGone(self.holders.name(page.holder))))
    }

    /// Waits a while for a sample or an event.
    fn wait(&self, until: Instant) {
        let arrival = self.sink.arrival.listen();
        // Something may have arrived before the listener existed.
        if !self.sink.has_something() {
            arrival.wait_deadline(self.wanted.until(SLICE).min(until));
        }
    }

    /// Returns true if a node is reachable.
    fn is_there(&mut self, node: NodeId) -> bool {
        let Ok(now) = Holders::now(self.commands, &self.wanted.find) else { return false };
        let there = now.reaches(node);
        // Keep the names of unreachable nodes for messages.
        self.holders.thinnest = now.thinnest;
        there
    }

    /// Processes answers and refusals; returns the result of the page if the node does not provide
    /// it.
    fn hear(&mut self, page: &Page, left: &mut BTreeSet<u64>) -> Option<Outcome> {
        while let Ok(reply) = self.inbox.try_recv() {
            if reply.token != self.asked {
                continue;
            }
            match reply.answer {
                Answer::Fetching { missing, failed, why } => {
                    // Other nodes store the same sample, so they cannot scale it either.
                    for seq in failed.into_iter().filter(|seq| left.remove(seq)) {
                        let reason = MissingReason::CannotScale(why.clone());
                        self.ledger.lose((page.publisher, seq), reason);
                    }
                    let gone: BTreeSet<u64> =
                        missing.into_iter().filter(|s| left.remove(s)).collect();
                    if !gone.is_empty() {
                        self.coding = None;
                        let moved = self.look_elsewhere(page, gone, &MissingReason::Expired);
                        left.retain(|seq| !moved.contains(seq));
                    }
                }
                Answer::Refused(why) => return Some(Outcome::Failed(MissingReason::Refused(why))),
                Answer::Held(_) | Answer::Ordered => {}
            }
        }
        while let Some(event) = self.sink.pop_event() {
            if let SubscriberEvent::Refused(_, refusal) = event {
                let why = refusal.to_string();
                return Some(Outcome::Failed(MissingReason::Refused(why)));
            }
        }
        None
    }

    /// Receives a sample; returns false if none is queued.
    fn take(&mut self, page: &Page, left: &mut BTreeSet<u64>) -> bool {
        let Some(delivery) = self.sink.pop() else { return false };
        let publisher = publisher_of(&delivery.tag);
        let sender = delivery.publisher.node;
        // Two encodings of one video cannot be mixed.
        let strange = sender != page.holder && self.coded.contains(&page.publisher);
        // A repeated request may produce duplicates.
        if publisher == Some(page.publisher) && !strange && left.remove(&delivery.seq) {
            let (key, tag) = ((page.publisher, delivery.seq), self.wanted.find.tag.clone());
            let delivery = Sample { tag, publisher: page.publisher, ..delivery };
            self.ledger.take(key, sender, delivery);
            self.barren = 0;
            self.ledger.hand_on(self.pipe);
        }
        true
    }

    /// Requests samples from another node, or marks them as missing if there is none. Returns the
    /// samples that another node will send.
    fn look_elsewhere(
        &mut self,
        page: &Page,
        left: BTreeSet<u64>,
        reason: &MissingReason,
    ) -> BTreeSet<u64> {
        let other = |fetch: &Self, seq| fetch.other_holder(page.holder, (page.publisher, seq));
        let mut left = left;
        if self.coded.contains(&page.publisher)
            && let Some(first) = left.iter().copied().find(|seq| other(self, *seq).is_some())
        {
            // The later pictures of a re-encoded video depend on it.
            left.extend(self.again(page, BTreeSet::from([first])));
        }
        let mut pages: Vec<Page> = Vec::new();
        for &seq in &left {
            let key = (page.publisher, seq);
            let Some(holder) = other(self, seq) else {
                self.ledger.lose(key, reason.clone());
                continue;
            };
            let bytes = self.ledger.bytes(key);
            match pages.last_mut() {
                Some(last) if last.holder == holder => {
                    last.seqs.push(seq);
                    last.bytes += bytes;
                }
                Some(_) | None => {
                    pages.push(Page { holder, publisher: page.publisher, seqs: vec![seq], bytes });
                }
            }
        }
        for page in pages.into_iter().rev() {
            self.work.push_front(Work { page, again: 0 });
        }
        left
    }

    /// Returns the nearest node after `tried` that stores a sample and has not failed.
    fn other_holder(&self, tried: NodeId, (publisher, seq): Key) -> Option<NodeId> {
        let mut nearest: Vec<&Answered> = self.answers.iter().collect();
        nearest.sort_unstable_by_key(|answered| (answered.hops, answered.node));
        let behind = nearest.iter().skip_while(|answered| answered.node != tried).skip(1);
        let has = |answered: &&&&Answered| {
            let mut holdings = answered.found.holdings.iter();
            let of = holdings.find(|holding| holding.publisher == publisher);
            of.is_some_and(|of| of.items.binary_search_by_key(&seq, |item| item.seq).is_ok())
        };
        let works = |answered: &&&&Answered| !self.failed.contains_key(&(answered.node, publisher));
        behind.filter(|a| works(&a) && has(&a)).map(|answered| answered.node).next()
    }
}

impl Fetch<'_> {
    /// Notifies the nodes of the end of the pull, and returns the summary.
    pub(super) fn finish(self) -> PullSummary {
        for &to in &self.contacted {
            let question = Question::Done { pull: self.pull };
            let done = PullCommand::Ask { to, question, token: 0, reply: None };
            self.commands.send(Command::Pull(done));
        }
        self.sink.close();
        self.commands.send(Command::Unsubscribe(self.subscription));
        self.ledger.into_summary(&self.holders)
    }
}

/// Creates the private subscription that receives the samples of a pull.
fn subscribe(
    commands: &Commands,
    me: NodeId,
    pull: u64,
) -> Result<(Arc<Sink>, SubscriptionId), PullError> {
    let spec = SubscriptionSpec::all_of(private_pattern(me, pull)?);
    let sink = Arc::new(Sink::with_queue(&spec, QUEUE_SAMPLES));
    let (reply, id) = channel();
    commands.send(Command::Subscribe(spec, sink.clone(), reply));
    let id = id.recv().map_err(|_| PullError::Closed)?;
    Ok((sink, id.ok_or(PullError::TooMany)?))
}
