//! Accepting connections at a listening socket.

use super::handshakes::Handshake;
use super::shared::Shared;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::sleep;

/// The pause after a failed accept: the process has no file descriptors left, for example.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Accepts connections until the runtime ends, and serves each in a task of its own.
pub(super) async fn accept<S, F>(
    shared: Arc<Shared>,
    mut next: impl FnMut(&mut Context<'_>) -> Poll<io::Result<S>>,
    serve: impl Fn(Arc<Shared>, S, Handshake) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match poll_fn(&mut next).await {
            Ok(socket) => {
                shared.handshakes.begin(|began| serve(shared.clone(), socket, began));
            }
            Err(error) => {
                crate::warn_limited!("link '{}': cannot accept: {error}", shared.link);
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}
