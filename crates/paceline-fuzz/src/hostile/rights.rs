//! The rights of the hostile neighbour, by seed.

use paceline_proto::Pattern;
use paceline_proto::rights::{AccessPolicy, AccessRule, GrantedTags, PeerName, Quotas, RuleRights};
use std::sync::Arc;

/// The number of kinds of rights.
pub(super) const KINDS: u64 = 4;

/// Returns the identity of the neighbour of this name.
pub(super) fn peer(name: &str) -> PeerName {
    PeerName::Certified(name.to_owned())
}

/// Returns the policy of the node under test: none, few rights of the hostile neighbour, all, or no rule for it.
pub(super) fn policy(seed: u64) -> Option<AccessPolicy> {
    let rule =
        |name: &str, rights| AccessRule { peers: vec![name.into()], rights: Arc::new(rights) };
    let patterns = |text: &str| Pattern::new(text).into_iter().collect();
    let few = || {
        let (publish, subscribe) = (patterns("own/**"), patterns("pub/**"));
        let tags = GrantedTags { publish, subscribe, ..GrantedTags::default() };
        let quotas = Quotas { share_percent: Some(10), ..Quotas::default() };
        RuleRights { tags, quotas, ..RuleRights::default() }
    };
    let of_hostile = match seed % KINDS {
        0 => return None,
        1 => Some(few()),
        2 => Some(RuleRights::all()),
        _ => None,
    };
    let of_hostile = of_hostile.map(|rights| rule("hostile", rights));
    let rules = [rule("good", RuleRights::all())].into_iter().chain(of_hostile).collect();
    Some(AccessPolicy { rules })
}
