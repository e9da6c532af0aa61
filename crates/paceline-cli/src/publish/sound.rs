//! The sound of a camera or a film, on a tag of its own next to its pictures.

use super::args::PubArgs;
use super::news::News;
use super::reading::Message;
use super::session::captured;
use crate::playback::{declare_with, declared};
use paceline::{Encoding, Node, Publisher, PutOptions, Tag};
use paceline_media::stream::Properties;
use paceline_tool::show;
use paceline_tool::stop::STOP_SLICE;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Shortest time between two notes on blocks that are left out.
const NOTE_EVERY: Duration = Duration::from_secs(10);

/// The sound of a camera or a film, whose first block may arrive later than the pictures, or never.
pub(super) struct Sound {
    tag: Tag,
    messages: Receiver<Message>,
    news: Arc<News>,
    /// The number of blocks left out that were reported, and the time of that report.
    noted: (u64, Option<Instant>),
    /// Dropped at the end, for a source that waits for it.
    _alive: Option<Arc<()>>,
}

impl Sound {
    /// Returns the sound for a tag.
    pub(super) const fn new(tag: Tag, messages: Receiver<Message>, news: Arc<News>) -> Self {
        Self { tag, messages, news, noted: (0, None), _alive: None }
    }

    /// Drops `alive` when the sound has ended.
    pub(super) fn with_end(self, alive: Arc<()>) -> Self {
        Self { _alive: Some(alive), ..self }
    }

    /// Publishes until the end of the sound, or until the pictures are `over`. Errors become notes: the pictures continue.
    pub(super) fn run(mut self, node: &Node, args: &PubArgs, over: &AtomicBool) {
        if let Err(error) = self.publish(node, args, over) {
            show::note(&format!("{}: {error:#}", self.tag));
        }
        self.note(true);
    }

    fn publish(&mut self, node: &Node, args: &PubArgs, over: &AtomicBool) -> anyhow::Result<()> {
        let mut publisher = None;
        while !over.load(Ordering::Relaxed) {
            match (self.messages.recv_timeout(STOP_SLICE), &mut publisher) {
                (Ok(Message::Head(Some(found))), _) => {
                    publisher = Some(self.declare(node, args, &found)?);
                }
                (Ok(Message::Sample(piece)), Some(publisher)) => {
                    let captured = captured(node, &piece);
                    let options = PutOptions { captured, ..PutOptions::default() };
                    publisher.put_with(piece.payload, options)?;
                }
                (Ok(Message::Failed(error)), _) => return Err(error),
                (Ok(Message::Head(None) | Message::Sample(_)), _)
                | (Err(RecvTimeoutError::Timeout), _) => {}
                (Err(RecvTimeoutError::Disconnected), _) => return Ok(()),
            }
            self.note(false);
        }
        Ok(())
    }

    /// Declares the publisher. Bound, loss tolerance and history are as for the pictures.
    fn declare(
        &self,
        node: &Node,
        args: &PubArgs,
        found: &Properties,
    ) -> anyhow::Result<Publisher> {
        let mut builder =
            node.publisher(self.tag.as_str()).encoding(Encoding::new(&found.encoding));
        if let Some(hz) = found.hz {
            builder = builder.hz(hz);
        }
        if let Some(bound) = args.within {
            builder = builder.within(bound);
        }
        let publisher =
            declare_with(builder, args.late, args.loss, args.history).map_err(declared)?;
        if !args.json {
            let rate = found.hz.map_or_else(String::new, |hz| format!(" at {hz} Hz"));
            show::note(&format!("publishing {}: blocks{rate}, {}", self.tag, found.encoding));
        }
        Ok(publisher)
    }

    /// Reports blocks that are left out: at once, then at most every ten seconds, and at the end.
    fn note(&mut self, ends: bool) {
        let (noted, at) = self.noted;
        let due = ends || at.is_none_or(|at| at.elapsed() >= NOTE_EVERY);
        let count = self.news.count();
        if due && count > noted {
            self.noted = (count, Some(Instant::now()));
            show::note(&self.news.describe());
        }
    }
}
