//! The final counts of this node's links.

use paceline::Node;
use paceline::status::by_reason;
use paceline::status::{Drops, LinkCounters, LinkStatus};
use paceline_tool::show;
use serde::Serialize;
use std::time::{Duration, Instant};

/// A link closes a stream shortly after its publisher; this is the longest wait.
const PATIENCE: Duration = Duration::from_millis(1_500);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The last line of `--json`.
#[derive(Serialize)]
struct LinksLine {
    links: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    offered: u64,
    sent: u64,
    late: u64,
    #[serde(serialize_with = "by_reason::serialize")]
    dropped: Drops,
}

/// Prints the counts of each link that carried samples; call it after the publishers are closed.
pub(crate) fn report(node: &Node, json: bool) -> anyhow::Result<()> {
    let links: Vec<Line> = settled(node).iter().map(Line::new).collect();
    let links: Vec<Line> = links.into_iter().filter(|line| line.offered > 0).collect();
    if links.is_empty() {
        return Ok(());
    }
    if json {
        return show::json(&LinksLine { links });
    }
    for Line { name, offered, sent, late, dropped } in &links {
        let dropped = show::drops(dropped);
        show::note(&format!(
            "link {name}: sent {sent} of {offered} samples, {late} late; dropped {dropped}"
        ));
    }
    Ok(())
}

/// Returns this node's links once they have no streams of its publishers.
fn settled(node: &Node) -> Vec<LinkStatus> {
    let until = Instant::now() + PATIENCE;
    loop {
        let status = node.status(LOOK_AGAIN);
        let own = status.into_iter().find(|status| status.id == node.id());
        let links = own.map(|own| own.links).unwrap_or_default();
        let ours = |link: &LinkStatus| link.streams.iter().any(|s| s.publisher.node == node.id());
        if !links.iter().any(ours) || Instant::now() >= until {
            return links;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

impl Line {
    fn new(link: &LinkStatus) -> Self {
        let mut all: LinkCounters = link.closed;
        link.streams.iter().for_each(|stream| all.merge(&stream.counters));
        let LinkCounters { offered, sent, late, dropped, .. } = all;
        Self { name: link.name.clone(), offered, sent, late, dropped }
    }
}
