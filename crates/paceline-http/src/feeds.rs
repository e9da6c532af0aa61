//! The samples of tags for players of RTSP and viewers of WebRTC: equal requests share one subscription, whose samples are cut into
//! packets once. A receiver that joins late gets the pictures since the newest key picture first, and one that is too slow loses
//! whole pictures.

mod fault;
mod feed;
mod hub;
mod outlet;
mod stage;
mod tally;
mod unit;

pub(crate) use fault::{FeedFault, FeedFaultKind};
pub(crate) use hub::{ANSWER_WITHIN, Accepted, FeedLease, FeedWish, Hub};
pub(crate) use outlet::Outlet;
pub(crate) use stage::FeedStage;
pub(crate) use tally::LeftOut;
pub(crate) use unit::{MediaUnit, UnitRole};
