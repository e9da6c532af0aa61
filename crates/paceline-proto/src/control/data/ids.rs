//! Keys of pairs, and limits of names and paths.

use crate::form::Proxy;
use crate::ids::{PublisherId, SubscriptionId};

/// A subscription and a publisher.
pub(crate) type PairKey = (SubscriptionId, PublisherId);

/// The longest name of a node or link, in bytes.
pub const NAME_BYTES_MAX: usize = Proxy::NAME_BYTES_MAX;
/// The most hops of a path.
pub const HOPS_MAX: usize = 16;
