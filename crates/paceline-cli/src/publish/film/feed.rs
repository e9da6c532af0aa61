//! The samples of a film at their times.

use super::plan::TrackPlan;
use super::reader::FilmReader;
use super::units::TrackSamples;
use crate::publish::input::Place;
use crate::publish::news::News;
use crate::publish::reading::{Message, Streamed};
use crate::publish::source::{Next, Piece, Source};
use paceline_edge::Captured;
use paceline_media::film::FilmFormat;
use paceline_tool::stop::STOP_SLICE;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The instant at which a film starts: all its tracks keep time from then on.
#[derive(Default)]
pub(in crate::publish) struct Start {
    at: Mutex<Option<Instant>>,
    set: Condvar,
}

impl Start {
    /// Starts the film, once.
    fn begin(&self) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.get_or_insert_with(|| {
            self.set.notify_all();
            Instant::now()
        });
    }

    /// Blocks until the film starts.
    fn wait(&self) -> Instant {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = *at {
                return at;
            }
            at = self.set.wait(at).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One track on its way to a publisher.
pub(super) struct Lane {
    pub(super) place: Place,
    pub(super) format: FilmFormat,
    pub(super) track: TrackPlan,
    pub(super) news: Arc<News>,
    pub(super) start: Arc<Start>,
    pub(super) length_ns: i64,
    pub(super) repeat: bool,
}

impl Lane {
    /// Gives each sample at its time, until the end of the film or of the publisher. `states` gives the properties first.
    pub(super) fn run(mut self, to: &SyncSender<Message>, states: bool) -> anyhow::Result<()> {
        if states && to.send(Message::Head(Some(self.track.properties()))).is_err() {
            return Ok(());
        }
        let mut begin_ns = 0_i64;
        while self.once(begin_ns, to)? && self.repeat {
            begin_ns = begin_ns.saturating_add(self.length_ns);
        }
        Ok(())
    }

    /// Gives the samples of the film once, from `begin_ns` on. Returns false if nobody takes them.
    fn once(&mut self, begin_ns: i64, to: &SyncSender<Message>) -> anyhow::Result<bool> {
        let name = self.place.name();
        let mut reader = FilmReader::file(&self.place, self.format)?;
        reader.demuxer.select(self.track.track);
        // With --loop the film ends where the survey ended.
        reader.waits = !self.repeat;
        let mut samples = TrackSamples::default();
        let mut number = 0;
        loop {
            let unit = reader.next()?;
            samples.report(&reader, &self.news);
            let Some(unit) = unit else { return Ok(true) };
            let Some(sample) = samples.take(&unit, &mut reader, &name)? else { continue };
            let due = self.track.due(number, &sample);
            number += 1;
            let Some(due) = due else { continue };
            let depart = u64::try_from(begin_ns.saturating_add(due.depart_ns)).unwrap_or(0);
            let at = self.start.wait() + Duration::from_nanos(depart);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let captured = Some(Captured { before_ns: due.age_ns, bound_ns: 0 });
            let payload = sample.bytes.into();
            let piece = Piece { payload, arrived: Some(at), captured, room: None };
            if to.send(Message::Sample(piece)).is_err() {
                return Ok(false);
            }
        }
    }
}

/// The pictures of a film, which starts with the first request for one.
pub(in crate::publish) struct FilmFeed {
    pub(in crate::publish) streamed: Streamed,
    pub(in crate::publish) start: Arc<Start>,
    /// Gone when the sound has ended.
    pub(in crate::publish) rest: Option<Weak<()>>,
}

impl Source for FilmFeed {
    fn next(&mut self, number: u64) -> anyhow::Result<Next> {
        self.start.begin();
        match self.streamed.next(number)? {
            // The sound may be longer.
            Next::End if self.rest.as_ref().is_some_and(|rest| rest.strong_count() > 0) => {
                std::thread::sleep(STOP_SLICE);
                Ok(Next::Wait)
            }
            next @ (Next::Sample(_) | Next::Wait | Next::End) => Ok(next),
        }
    }

    fn has_end(&self) -> bool {
        self.streamed.has_end()
    }
}
