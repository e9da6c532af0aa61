//! A Zenoh router and nothing else.

use super::{Message, tell, wait_for_stop};
use crate::bench::zenoh;
use ::zenoh::Wait as _;
use anyhow::Result;

/// Room for as many programs as a node takes on its plain side.
const SESSIONS_MAX: (&str, &str) = ("transport/unicast/max_sessions", "4096");

pub(super) fn run(listen: &str) -> Result<()> {
    let session = zenoh::open("router", &[listen.to_owned()], &[], &[SESSIONS_MAX])?;
    tell(&Message::Ready);
    wait_for_stop();
    // Nobody is left to be told of an error at the very end.
    drop(session.close().wait());
    Ok(())
}
