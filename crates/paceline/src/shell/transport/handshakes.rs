//! Incoming connections without an introduction. A new one ends the oldest if there are too many, so a flood of
//! connections that say nothing does not keep others out.

use super::lock;
use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// The limit of incoming connections without an introduction.
pub(super) const HANDSHAKES_MAX: usize = 256;

/// The incoming connections without an introduction, by number.
#[derive(Debug, Default)]
pub(super) struct Handshakes(Mutex<Begun>);

#[derive(Debug, Default)]
struct Begun {
    next: u64,
    tasks: VecDeque<(u64, Option<AbortHandle>)>,
}

/// One incoming connection, as long as this exists.
pub(super) struct Handshake {
    number: u64,
    all: Arc<Handshakes>,
}

impl Handshake {
    /// Ends the handshake; returns false if a newer one has ended it before.
    pub(super) fn complete(self) -> bool {
        let mut begun = lock(&self.all.0);
        let before = begun.tasks.len();
        begun.tasks.retain(|(number, _)| *number != self.number);
        begun.tasks.len() < before
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        lock(&self.all.0).tasks.retain(|(number, _)| *number != self.number);
    }
}

impl Handshakes {
    pub(super) fn len(&self) -> usize {
        lock(&self.0).tasks.len()
    }

    /// Starts the task of an incoming connection, which drops its handshake after the introduction.
    pub(super) fn begin<F>(self: &Arc<Self>, task: impl FnOnce(Handshake) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (number, oldest) = {
            let mut begun = lock(&self.0);
            let full = begun.tasks.len() >= HANDSHAKES_MAX;
            let oldest = if full { begun.tasks.pop_front() } else { None };
            begun.next += 1;
            let number = begun.next;
            begun.tasks.push_back((number, None));
            (number, oldest)
        };
        if let Some((_, Some(oldest))) = oldest {
            oldest.abort();
        }
        let started = tokio::spawn(task(Handshake { number, all: self.clone() }));
        let mut begun = lock(&self.0);
        if let Some((_, task)) = begun.tasks.iter_mut().find(|(at, _)| *at == number) {
            *task = Some(started.abort_handle());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[test]
    fn a_flood_ends_the_oldest_and_spares_introduced_ones() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let handshakes = Arc::new(Handshakes::default());
            let (introduced, done) = tokio::sync::oneshot::channel::<()>();
            handshakes.begin(|handshake| async move {
                drop(handshake);
                done.await.unwrap();
            });
            for _ in 0..3 * HANDSHAKES_MAX {
                handshakes.begin(|handshake| async move {
                    let _held = handshake;
                    pending().await
                });
                tokio::task::yield_now().await;
            }
            assert_eq!(handshakes.len(), HANDSHAKES_MAX);
            introduced.send(()).expect("the first task still runs");
        });
    }
}
