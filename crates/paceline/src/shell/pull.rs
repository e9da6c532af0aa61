//! Pull: the buffers of this node, the thread that answers requests for them, and the threads of
//! pulls.
//!
//! ```text
//! holder: sink ──► HeldBuffer ◄── paceline-pull: requests ──► paceline-feed, one per pull: Carrier
//! puller: paceline-fetch, one per pull: lookup, then page by page ──► Pipe ──► Pulled
//! ```
//!
//! The engine forwards requests and answers, and never blocks on these threads.

mod carrier;
mod feeder;
mod fetch;
mod holder;
mod ledger;
mod lookup;
mod making;
mod order;
mod pipe;
mod puller;

pub(crate) use holder::Holder;
pub(crate) use lookup::Wanted;
pub(crate) use pipe::{Pipe, PullEvent};
pub(crate) use puller::{pull_into, start};
