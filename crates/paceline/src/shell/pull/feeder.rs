//! The thread that transforms and publishes the samples of one pull. It may block for room.

use super::super::command::{Command, Commands, PullCommand};
use super::carrier::Carrier;
use super::making::{Maker, Missed, Units};
use paceline_proto::control::PublisherSpec;
use paceline_proto::pull::{Answer, Fetch, Making, private_tag};
use paceline_proto::{Kind, NodeId, PublisherId, RawSample, Tag};
use paceline_sched::Late;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The limit of queued pages.
const PAGES_MAX: usize = 4;
/// A pull that requests nothing for this long is over.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The interval of checks for a puller that has left.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest time until a puller's subscription is known.
const WANTED_WITHIN: Duration = Duration::from_secs(2);

/// The requested samples of one publisher, with the buffers that store them.
pub(super) struct Page {
    /// The request, answered when all samples have been sent.
    pub(super) request: u64,
    pub(super) fetch: Fetch,
    pub(super) units: Units,
}

/// A handle of a feeder thread. The thread ends when this is dropped, or by itself.
pub(super) struct Feeder {
    pages: SyncSender<Page>,
    thread: Ending,
}

/// A feeder without further pages. Its thread runs until the last page has been sent.
pub(super) struct Ending(Weak<()>);

impl Ending {
    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Feeder {
    /// Queues a page; returns false if the queue is full.
    pub(super) fn send(&self, page: Page) -> bool {
        self.pages.try_send(page).is_ok()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.thread.is_alive()
    }

    /// Ends the feeder after its queued pages.
    pub(super) fn end(self) -> Ending {
        self.thread
    }
}

/// Starts the feeder of a pull, identified by the puller and its number of the pull.
pub(super) fn start(pull: (NodeId, u64), commands: Commands) -> std::io::Result<Feeder> {
    let (pages, inbox) = sync_channel(PAGES_MAX);
    let alive = Arc::new(());
    let weak = Arc::downgrade(&alive);
    let named = std::thread::Builder::new().name("paceline-feed".to_owned());
    named.spawn(move || {
        Feed { pull, commands, carrier: None, maker: None }.run(&inbox);
        drop(alive);
    })?;
    Ok(Feeder { pages, thread: Ending(weak) })
}

struct Feed {
    pull: (NodeId, u64),
    commands: Commands,
    carrier: Option<(PublisherId, Carrier)>,
    maker: Option<(PublisherId, Making, Maker)>,
}

impl Feed {
    fn run(mut self, inbox: &Receiver<Page>) {
        let mut idle_since = Instant::now();
        loop {
            match inbox.recv_timeout(LOOK_EVERY) {
                Ok(page) => {
                    // A repeated request replaces the earlier one.
                    let page = inbox.try_iter().fold(page, |before, mut page| {
                        page.fetch.fresh |= before.fetch.fresh;
                        page
                    });
                    if !self.serve(&page) {
                        return;
                    }
                    idle_since = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let gone =
                        self.carrier.as_ref().is_some_and(|(_, carrier)| !carrier.is_wanted());
                    if gone || idle_since.elapsed() >= IDLE_MAX {
                        return;
                    }
                }
            }
        }
    }

    /// Transforms and publishes a page, and reports the missing samples; returns false if the
    /// puller has left.
    fn serve(&mut self, page: &Page) -> bool {
        let Page { request, fetch, units } = page;
        let (mut missing, mut failed, mut why) = (Vec::new(), Vec::new(), String::new());
        self.prepare(page);
        for &seq in &fetch.seqs {
            let Some((_, _, maker)) = &mut self.maker else { return false };
            match maker.make(units, seq) {
                Ok(sample) => {
                    if !self.put(fetch.publisher, sample) {
                        return false;
                    }
                }
                Err(Missed::Gone) => missing.push(seq),
                Err(Missed::Failed(reason)) => {
                    if failed.is_empty() {
                        why = reason;
                    }
                    failed.push(seq);
                }
            }
        }
        let answer = Answer::Fetching { missing, failed, why };
        let (to, _) = self.pull;
        let answer = PullCommand::Answer { request: *request, to, answer };
        self.commands.send(Command::Pull(answer))
    }

    /// Prepares the maker, and keeps it for further samples of the same publisher.
    fn prepare(&mut self, Page { fetch, units, .. }: &Page) {
        let is = |(publisher, making, _): &(PublisherId, Making, Maker)| {
            (*publisher, *making) == (fetch.publisher, fetch.making)
        };
        if !self.maker.as_ref().is_some_and(is) {
            let first = fetch.seqs.iter().find_map(|seq| units.get(*seq));
            let maker = Maker::new(fetch.making, first.as_ref());
            self.maker = Some((fetch.publisher, fetch.making, maker));
        }
        if let Some((_, _, maker)) = &mut self.maker {
            maker.ask(fetch, units);
        }
    }

    fn put(&mut self, publisher: PublisherId, sample: RawSample) -> bool {
        // A repeated sample needs a new stream, because streams require increasing sequence
        // numbers.
        let carries =
            |(of, carrier): &(PublisherId, Carrier)| *of == publisher && carrier.takes(sample.seq);
        if !self.carrier.as_ref().is_some_and(carries) {
            self.carrier = None;
            let (puller, pull) = self.pull;
            let Ok(tag) = private_tag(puller, pull, publisher) else { return false };
            let Some(carrier) = Carrier::open(&self.commands, spec(tag, &sample)) else {
                return false;
            };
            if !carrier.wait_wanted(WANTED_WITHIN) {
                return false;
            }
            self.carrier = Some((publisher, carrier));
        }
        self.carrier.as_mut().is_some_and(|(_, carrier)| carrier.put(sample))
    }
}

/// Returns the declaration of a publisher for stored samples in their final form. The samples never
/// expire, and in the background none replaces another.
fn spec(tag: Tag, sample: &RawSample) -> PublisherSpec {
    PublisherSpec {
        tag,
        kind: match sample.kind {
            kind if kind.is_video() => Kind::VideoI,
            kind => kind,
        },
        encoding: sample.encoding.clone(),
        period: None,
        late: Late::Send,
        loss: None,
        size: None,
        bytes_max: None,
        envelope: None,
        waits: true,
        latch: false,
        unscalable: None,
        key_interval: None,
        structure: None,
        scaled: Vec::new(),
        within: None,
    }
}
