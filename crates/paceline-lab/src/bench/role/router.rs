//! A plain Zenoh router.

use super::{send, wait_for_stop};
use crate::bench::protocol::Message;
use crate::bench::zenoh;
use ::zenoh::Wait as _;
use anyhow::Result;

/// The session limit, equal to a node's limit for plain programs.
const SESSIONS_MAX: (&str, &str) = ("transport/unicast/max_sessions", "4096");

pub(super) fn run(listen: &str) -> Result<()> {
    let session = zenoh::open("router", &[listen.to_owned()], &[], &[SESSIONS_MAX])?;
    send(&Message::Ready);
    wait_for_stop();
    // An error at the very end does not matter.
    drop(session.close().wait());
    Ok(())
}
