//! The puller's second half: what was found is fetched page by page, and handed on in order.

use super::super::engine::{Command, Commands};
use super::super::sink::Sink;
use super::ledger::{Key, Ledger};
use super::lookup::{Lookup, Wanted};
use super::{Holders, Pipe, PullCommand, Reply};
use crate::pull::{MissingReason, PullError, PullSummary};
use crate::subscriber::{Delivery, SubscriberEvent};
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

/// Samples of a page.
const PAGE_SAMPLES: usize = 16;
/// Payload bytes of a page, unless one sample has more.
const PAGE_BYTES: u64 = 4 << 20;
/// Samples that the private subscription holds: a page, and what comes twice.
const QUEUE_SAMPLES: usize = 8 * PAGE_SAMPLES;
/// How often the missing ones of a page are asked for again.
const AGAIN_MAX: u32 = 3;
/// After so many pages in a row that did not come a holder is not asked any more.
const BARREN_MAX: u32 = 2;
/// How soon answers and the end of the pull are noticed.
const SLICE: Duration = Duration::from_millis(50);
/// How often it is looked whether the holder is still there, while nothing comes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A holder that cannot be reached for so long is gone, if no other can take its place sooner.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// What became of a page.
enum Outcome {
    /// Everything came, or is gone at this holder and was looked for elsewhere.
    Done,
    /// Nothing came for too long.
    Silent,
    /// The holder gives it not.
    Failed(MissingReason),
    /// Nobody reads any more, or the time is over.
    Stopped,
}

/// A page and how often it was asked for.
struct Work {
    page: Page,
    again: u32,
}

/// The samples of a plan on their way.
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
    /// Holders that do not give a publisher's samples, and why.
    failed: BTreeMap<(NodeId, PublisherId), MissingReason>,
    /// Pages of which nothing came at last, since something did.
    barren: u32,
    contacted: BTreeSet<NodeId>,
    /// Publishers whose video is coded anew.
    coded: BTreeSet<PublisherId>,
    /// Whose coding of what the last page that came is part of.
    coding: Option<(NodeId, PublisherId)>,
}

impl<'a> Fetch<'a> {
    /// Subscribes to what is going to be fetched.
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
        let other = || MissingReason::Refused("it is held in another coding".to_owned());
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

    /// Fetches until everything has come, or will not.
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

    /// Asks for what is left of a page, and takes what comes.
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
                // Nothing can come while it is away.
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

    /// The numbers behind a page that the same holder will be asked for.
    fn next_of(&self, page: &Page) -> Vec<u64> {
        let same =
            |work: &&Work| (work.page.holder, work.page.publisher) == (page.holder, page.publisher);
        let behind = self.work.iter().take_while(same).flat_map(|work| &work.page.seqs);
        behind.copied().take(NEXT_MAX).collect()
    }

    /// What is asked for again of a page of which `left` did not come: of what is coded anew all from the
    /// first of them on, since another coding may begin there.
    fn again(&mut self, page: &Page, left: BTreeSet<u64>) -> BTreeSet<u64> {
        if !self.coded.contains(&page.publisher) {
            return left;
        }
        let first = left.first().copied().unwrap_or(u64::MAX);
        let behind = page.seqs.iter().copied().filter(|seq| *seq >= first);
        behind.filter(|seq| self.ledger.forget((page.publisher, *seq))).collect()
    }

    /// Looks whether the holder is still there, and since when it is `away`. What to do if it is gone,
    /// or has come back.
    fn look_for(
        &mut self,
        page: &Page,
        left: &BTreeSet<u64>,
        away: &mut Option<Instant>,
    ) -> Option<Outcome> {
        if self.is_there(page.holder) {
            // One that was away knows nothing of what it was sending.
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
        // Something may have come before we listened.
        if !self.sink.has_something() {
            arrival.wait_deadline(self.wanted.until(SLICE).min(until));
        }
    }

    /// True if a node can still be reached.
    fn is_there(&mut self, node: NodeId) -> bool {
        let Ok(now) = Holders::now(self.commands, &self.wanted.find) else { return false };
        let there = now.reaches(node);
        // Names of nodes that are gone are still to be told.
        self.holders.thinnest = now.thinnest;
        there
    }

    /// Takes answers and refusals; what to do if this holder does not give what was asked for.
    fn hear(&mut self, page: &Page, left: &mut BTreeSet<u64>) -> Option<Outcome> {
        while let Ok(reply) = self.inbox.try_recv() {
            if reply.token != self.asked {
                continue;
            }
            match reply.answer {
                Answer::Fetching { missing, failed, why } => {
                    // Whoever else holds it holds the same.
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
                Answer::Held(_) => {}
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

    /// Takes a sample; false if none waits.
    fn take(&mut self, page: &Page, left: &mut BTreeSet<u64>) -> bool {
        let Some(delivery) = self.sink.pop() else { return false };
        let publisher = publisher_of(&delivery.tag);
        let sender = delivery.publisher.node;
        // Of two codings of one film only the one that is being read goes together.
        let strange = sender != page.holder && self.coded.contains(&page.publisher);
        // What was asked for twice may come twice.
        if publisher == Some(page.publisher) && !strange && left.remove(&delivery.seq) {
            let (key, tag) = ((page.publisher, delivery.seq), self.wanted.find.tag.clone());
            let delivery = Delivery { tag, publisher: page.publisher, ..delivery };
            self.ledger.take(key, sender, delivery);
            self.barren = 0;
            self.ledger.hand_on(self.pipe);
        }
        true
    }

    /// Looks for another holder of samples that one does not give; they are missing if there is none.
    /// Tells what will come of others.
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
            // What is behind it follows from it.
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

    /// The nearest holder of a sample that was not tried: those behind `tried` in their order.
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
    /// Tells the holders that the pull is over, and what became of it.
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

/// The private subscription of a pull: what is fetched comes through it.
fn subscribe(
    commands: &Commands,
    me: NodeId,
    pull: u64,
) -> Result<(Arc<Sink>, SubscriptionId), PullError> {
    let spec = SubscriptionSpec::all_of(private_pattern(me, pull)?);
    let sink = Arc::new(Sink::with_queue(&spec, QUEUE_SAMPLES));
    let (reply, id) = channel();
    commands.send(Command::Subscribe(spec, sink.clone(), reply));
    Ok((sink, id.recv().map_err(|_| PullError::Closed)?))
}
