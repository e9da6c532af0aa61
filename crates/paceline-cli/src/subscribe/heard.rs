//! The publishers that a subscriber hears, and of which of them nothing is promised.

use super::SubArgs;
use crate::ask::UNKNOWN;
use paceline::{Node, Prospect, PublisherId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a path may take to answer before it is asked why a publisher is heard without a promise.
const UNPROMISED: Duration = Duration::from_secs(1);

/// Why nothing is promised where nothing is in the way.
const FREE: &str = "no link of its path has a capacity";

/// A publisher that is heard.
struct Publisher {
    since: Instant,
    /// A sample of it came.
    came: bool,
    /// Why nothing is promised was said.
    said: bool,
}

/// Those that are heard, and what was granted of them.
#[derive(Default)]
pub(super) struct Heard {
    publishers: BTreeMap<PublisherId, Publisher>,
    granted: BTreeSet<PublisherId>,
}

/// Why nothing is promised of a publisher.
pub(super) struct Unpromised {
    pub(super) publisher: PublisherId,
    pub(super) why: &'static str,
    /// A link of its path may be too thin for it: whoever requires a promise was told no.
    pub(super) refused: bool,
}

impl Heard {
    /// These are heard now.
    pub(super) fn hear(&mut self, publishers: &[PublisherId]) {
        let since = Instant::now();
        self.publishers.retain(|publisher, _| publishers.contains(publisher));
        for publisher in publishers {
            let new = Publisher { since, came: false, said: false };
            self.publishers.entry(*publisher).or_insert(new);
        }
    }

    pub(super) fn grant(&mut self, publisher: PublisherId) {
        self.granted.insert(publisher);
    }

    /// What was granted is so no longer; false if nothing was.
    pub(super) fn end(&mut self, publisher: PublisherId) -> bool {
        let was = self.granted.remove(&publisher);
        if let Some(heard) = self.publishers.get_mut(&publisher).filter(|_| was) {
            heard.since = Instant::now();
        }
        was
    }

    pub(super) fn came(&mut self, publisher: PublisherId) {
        if let Some(heard) = self.publishers.get_mut(&publisher) {
            heard.came = true;
        }
    }

    /// Those of which nothing is promised although it was asked for, each once. A publisher whose rate and size nobody
    /// knows yet is asked about again until a sample of it has come.
    pub(super) fn unpromised(
        &mut self,
        now: Instant,
        node: &Node,
        args: &SubArgs,
    ) -> Vec<Unpromised> {
        let promises = args.wish.promises();
        let open = |(id, heard): (&PublisherId, &Publisher)| {
            promises && !heard.said && now > heard.since + UNPROMISED && !self.granted.contains(id)
        };
        if !self.publishers.iter().any(open) {
            return Vec::new();
        }
        let prospects = ask(node, args);
        let mut unpromised = Vec::new();
        for (&publisher, heard) in &mut self.publishers {
            if !open((&publisher, heard)) {
                continue;
            }
            let prospect = prospects.iter().find(|it| it.publisher == publisher);
            let Some(prospect) = prospect.filter(|it| it.complete && it.refusal.is_none()) else {
                continue;
            };
            let why = match &prospect.grant {
                None if heard.came => UNKNOWN,
                Some(grant) if grant.hops.iter().all(|hop| hop.capacity.is_none()) => FREE,
                // No sample has said yet how long it is, or its path is about to answer.
                None | Some(_) => continue,
            };
            heard.said = true;
            let refused = prospect.grant.is_none();
            unpromised.push(Unpromised { publisher, why, refused });
        }
        unpromised
    }
}

/// What the paths would say.
fn ask(node: &Node, args: &SubArgs) -> Vec<Prospect> {
    let builder = node.subscriber(args.pattern.as_str()).map(|builder| builder.proxy(args.proxy));
    let builder = builder.and_then(|builder| args.wish.apply(builder));
    builder.and_then(|builder| builder.ask()).unwrap_or_default()
}
