//! Runs the scalers of a node.

use crate::outlet::Outlets;
use crate::pool::{Job, Scaler};
use paceline_node::install::ScalerId;
use paceline_proto::ingress::OutputKey;
use paceline_proto::reason::DropReason;
use paceline_proto::sample::RawSample;

impl Outlets<'_> {
    /// Queues a sample for a scaler.
    pub(super) fn submit(&mut self, place: ScalerId, key: OutputKey, sample: RawSample) {
        let Some(mut scaler) = self.scalers.remove(&place) else { return };
        if let Some(older) = scaler.submit(key, sample) {
            self.lose(&mut scaler, &older, DropReason::ScalerBusy);
        }
        self.pool.queue(place, &mut scaler);
        self.scalers.insert(place, scaler);
    }

    fn lose(&mut self, scaler: &mut Scaler, job: &Job, reason: DropReason) {
        for key in &job.keys {
            if let Some(destination) = scaler.destination(*key, job.sample.seq) {
                self.count_on(destination, reason, 1);
            }
        }
    }

    /// Runs every scaler up to now. Returns true if any made progress.
    pub(super) fn scale(&mut self) -> bool {
        let now = self.now;
        let done = |scaler: &Scaler| scaler.busy.as_ref().is_some_and(|(until, _)| *until <= now);
        let places: Vec<ScalerId> =
            self.scalers.iter().filter(|(_, it)| done(it)).map(|(place, _)| *place).collect();
        let mut moved = !places.is_empty();
        for place in places {
            let Some(mut scaler) = self.scalers.remove(&place) else { continue };
            if let Some((_, job)) = scaler.busy.take() {
                self.serve(&mut scaler, &job, place);
                scaler.forget_closed(job.sample.seq);
            }
            self.pool.queue(place, &mut scaler);
            if !scaler.is_over() {
                self.scalers.insert(place, scaler);
            }
        }
        let mut busy = self.scalers.values().filter(|it| it.busy.is_some()).count();
        while self.pool.workers.is_none_or(|workers| busy < workers) {
            let Some(place) = self.pool.next() else { break };
            let Some(scaler) = self.scalers.get_mut(&place) else { continue };
            if let Some(job) = scaler.take() {
                let time = self.pool.time(scaler, job.sample.seq);
                scaler.busy = Some((now + time, job));
                (busy, moved) = (busy + 1, true);
            }
        }
        moved
    }

    /// Scales a picture: with the model of its encoder, or with the toy algorithm, by which a picture of w×h is the
    /// first w·h bytes of a larger one.
    fn serve(&mut self, scaler: &mut Scaler, job: &Job, ScalerId { form, .. }: ScalerId) {
        let sample = &job.sample;
        let pixels = form.size.map_or(0, |size| size.pixels());
        let bytes = usize::try_from(pixels).unwrap_or(usize::MAX);
        let payload = match scaler.coding {
            Some(coding) => coding.result(sample.seq),
            None if sample.payload.len() < bytes => {
                self.lose(scaler, job, DropReason::CannotScale);
                return;
            }
            None => sample.payload.slice(..bytes),
        };
        let scaled = RawSample { payload, ..sample.clone() };
        for key in &job.keys {
            if let Some(destination) = scaler.destination(*key, sample.seq) {
                let _ = self.leave(destination, scaled.clone());
            }
        }
    }
}
