//! Browsers as nodes of the network, without I/O.
//!
//! A browser cannot run a node: it has neither threads for one nor room in a page. Its node runs here, next to the node that
//! serves it, and the browser is only the place where its frames arrive. [`BrowserHub`] has one node, the *gate*, that is a
//! neighbour of the serving node, and one node for each browser, behind a link of its own from the gate:
//!
//! ```text
//! serving node ═══ gate ─ link (measured) ─► browser's node   frames wait for the acknowledgement of the browser
//!                   └──── message ─────────► browser          the parts of samples in these frames
//! ```
//!
//! A frame for a browser's node is sent to the browser as a message ([`frame`]), and handed to the node when the browser has
//! acknowledged the message. So the round trip, the losses and the capacity that the gate measures are those of the browser's path,
//! and everything that a node has holds for the browser too: contracts and refusals, admission on its link, elastic steps,
//! accounting, rights. The browser's node counts a sample when the acknowledgement of its last part arrives, up to half a
//! round trip after the browser has it.
//!
//! Samples that a browser publishes pass to its node at once, with the age that they have by then.

mod event;
pub mod frame;
mod hub;
mod session;
#[cfg(test)]
mod tests;

pub use event::{BrowserEvent, BrowserLink, StreamReaders};
pub use frame::BrowserSample;
pub use hub::{BrowserHub, HubOutput, SESSIONS_MAX};
pub use session::SessionId;
