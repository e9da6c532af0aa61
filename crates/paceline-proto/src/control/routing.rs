//! The streams that subscriptions request from publishers, and their paths: the shortest ones, those through proxies, the
//! places of proxies, and second paths. It knows nothing of contracts.

pub(super) mod auto;
pub(super) mod detour;
mod disjoint;
pub(super) mod spare;
pub(super) mod wanted;

/// The previous decisions and searches of this node.
#[derive(Debug, Default)]
pub(super) struct Routing {
    pub(super) places: auto::State,
    pub(super) second_paths: spare::KnownPaths,
}
