//! What one pull fetches is published here, on a thread that may wait for room.

use super::super::engine::Commands;
use super::carrier::Carrier;
use paceline_media::Format;
use paceline_proto::control::PublisherSpec;
use paceline_proto::pull::private_tag;
use paceline_proto::{Kind, NodeId, PublisherId, Sample, Size};
use paceline_sched::Late;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Pages that wait for the one that is being sent.
const PAGES_MAX: usize = 4;
/// A pull that fetches nothing for so long is over.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How soon a puller that went away is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The news of a puller's subscription takes no longer than this.
const WANTED_WITHIN: Duration = Duration::from_secs(2);

/// Samples of one publisher, in the order of their numbers.
pub(super) struct Page {
    pub(super) publisher: PublisherId,
    pub(super) samples: Vec<Sample>,
}

/// The way to a feeder. It ends when this is dropped, or by itself.
pub(super) struct Feeder {
    pages: SyncSender<Page>,
    alive: Weak<()>,
}

impl Feeder {
    /// Hands it a page; false if it is behind.
    pub(super) fn send(&self, page: Page) -> bool {
        self.pages.try_send(page).is_ok()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive.strong_count() > 0
    }
}

/// Starts the feeder of a pull, which is a number at its puller.
pub(super) fn start(pull: (NodeId, u64), commands: Commands) -> std::io::Result<Feeder> {
    let (pages, inbox) = sync_channel(PAGES_MAX);
    let alive = Arc::new(());
    let weak = Arc::downgrade(&alive);
    let named = std::thread::Builder::new().name("paceline-feed".to_owned());
    named.spawn(move || {
        feed(pull, &commands, &inbox);
        drop(alive);
    })?;
    Ok(Feeder { pages, alive: weak })
}

fn feed(pull: (NodeId, u64), commands: &Commands, inbox: &Receiver<Page>) {
    let mut carrier: Option<(PublisherId, Carrier)> = None;
    let mut idle_since = Instant::now();
    loop {
        match inbox.recv_timeout(LOOK_EVERY) {
            Ok(page) => {
                if !serve(pull, commands, &mut carrier, page) {
                    return;
                }
                idle_since = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let gone = carrier.as_ref().is_some_and(|(_, carrier)| !carrier.is_wanted());
                if gone || idle_since.elapsed() >= IDLE_MAX {
                    return;
                }
            }
        }
    }
}

/// Publishes a page; false if nobody is there for it.
fn serve(
    (puller, pull): (NodeId, u64),
    commands: &Commands,
    place: &mut Option<(PublisherId, Carrier)>,
    Page { publisher, samples }: Page,
) -> bool {
    let Some(first) = samples.first() else { return true };
    // What is asked for again goes on a stream of its own: streams carry numbers upward only.
    let carries =
        |(of, carrier): &(PublisherId, Carrier)| *of == publisher && carrier.takes(first.seq);
    if !place.as_ref().is_some_and(carries) {
        *place = None;
        let Ok(tag) = private_tag(puller, pull, publisher) else { return false };
        let Some(carrier) = Carrier::open(commands, spec(tag, &samples)) else { return false };
        *place = Some((publisher, carrier));
    }
    let Some((_, carrier)) = place else { return false };
    carrier.wait_wanted(WANTED_WITHIN) && samples.into_iter().all(|sample| carrier.put(sample))
}

/// What is declared of samples that are sent again: as much as their scaling needs. None of them is late,
/// and in the background none replaces another.
fn spec(tag: paceline_proto::Tag, samples: &[Sample]) -> PublisherSpec {
    let encoding = samples.first().map(|sample| sample.encoding.clone()).unwrap_or_default();
    let format: Option<Format> = encoding.as_str().parse().ok();
    let size = format.zip(samples.first()).and_then(|(format, sample)| {
        let size = format.picture_size(&sample.payload).ok()?;
        Some(Size { width: size.width, height: size.height })
    });
    PublisherSpec {
        tag,
        kind: match samples.first().map(|sample| sample.kind).unwrap_or_default() {
            kind if kind.is_video() => Kind::VideoI,
            kind => kind,
        },
        encoding,
        period: None,
        late: Late::Send,
        loss: None,
        size,
        bytes_max: samples.iter().map(|sample| sample.payload.len() as u64).max(),
    }
}
