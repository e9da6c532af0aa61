//! The plain data that the parts of [`Control`](super::Control) exchange: declarations, requests, paths, answers, and
//! their encodings. It imports none of the parts.

pub(super) mod best_effort;
pub(super) mod codec;
pub(super) mod elastic;
pub(super) mod forms;
pub(super) mod grant;
pub(super) mod ids;
pub(super) mod least;
pub(super) mod opposite;
pub(super) mod output;
pub(super) mod refusal;
pub(super) mod route;
pub(super) mod scaled;
pub(super) mod second;
pub(super) mod spec;
pub(super) mod split;
pub(super) mod trial;
pub(super) mod warning;
