//! The dominant reason of lost samples while they are lost.

use crate::shortfall::LossReading;
use paceline::status::Drops;
use paceline::{Node, Pattern};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::Scope;

/// Reads the counters of the nodes on the path in a thread of its own: waiting for their answers here would make samples
/// late.
pub(super) struct Explainer {
    to: SyncSender<Drops>,
    answers: Receiver<Option<String>>,
    is_waiting: bool,
    reason: Option<String>,
}

impl Explainer {
    /// Starts the thread, which ends when this value is dropped.
    pub(super) fn start<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        node: &'env Node,
        pattern: &'env Pattern,
    ) -> Self {
        let (to, questions) = sync_channel::<Drops>(1);
        let (answer, answers) = channel();
        scope.spawn(move || {
            let mut before = LossReading::default();
            for local in questions {
                let reading = LossReading::read(node, &node.sources(pattern), &local);
                if answer.send(reading.since(&before)).is_err() {
                    return;
                }
                before = reading;
            }
        });
        Self { to, answers, is_waiting: false, reason: None }
    }

    /// Returns the largest loss between the last two answers, and asks again while samples are lost. `local` are the
    /// subscription's own drops.
    pub(super) fn next(&mut self, is_losing: bool, local: &Drops) -> Option<String> {
        while let Ok(answer) = self.answers.try_recv() {
            (self.is_waiting, self.reason) = (false, answer);
        }
        if !is_losing {
            self.reason = None;
        } else if !self.is_waiting {
            self.is_waiting = self.to.try_send(*local).is_ok();
        }
        self.reason.clone()
    }
}
