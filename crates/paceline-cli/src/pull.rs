//! `paceline pull`: prints samples from pull buffers, or writes them to a file or standard output.

mod args;
mod range;

pub(crate) use range::rfc3339_of;

pub(crate) use args::PullArgs;

use crate::payload::{SampleLine, Sink, picture_size};
use paceline::pull::{Missing, PullBuilder, PullError, PullSummary, Pulled};
use paceline::{Node, RecvError, Sample};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::host::unix_micros;
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Limits of the wait for other nodes, over links and on this host.
const SETTLE: Duration = Duration::from_millis(2_500);
const SETTLE_HERE: Duration = Duration::from_millis(1_200);
/// Limit of the listed reasons.
const REASONS_SHOWN: usize = 5;

/// The last line of `--json`.
#[derive(Serialize)]
struct SummaryLine {
    summary: Summary,
}

#[derive(Serialize)]
struct Summary {
    found: u64,
    delivered: u64,
    bytes: u64,
    missing: Vec<MissingLine>,
    nodes: Vec<NodeLine>,
    silent: Vec<String>,
    more: bool,
}

#[derive(Serialize)]
struct MissingLine {
    publisher: String,
    seq: u64,
    reason: String,
}

#[derive(Serialize)]
struct NodeLine {
    id: String,
    name: String,
    delivered: u64,
}

/// Pulls the selected samples.
pub(crate) fn run(args: &PullArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let now = unix_micros().saturating_mul(1_000);
    let times = args.times().map(|times| times.nanos(now)).transpose();
    let times = times.map_err(|error| exit::usage(format!("--from: {error}")))?;
    let sink = Sink::open(args.out.as_deref(), args.force, args.json)?;
    let node = args.node.open_guest("pull")?;
    let here = args.node.link.is_empty() && args.node.config.is_none();
    let begun = requested(&node, args, times).and_then(|pull| {
        crate::status::settle(&node, if here { SETTLE_HERE } else { SETTLE }, &stop);
        if node.nodes().len() <= 1 && args.at.is_none() && args.hold_at.is_none() {
            // No other node was found. A pull would still wait for buffer announcements.
            return Err(PullError::NoBuffer(args.tag.clone()));
        }
        pull.run()
    });
    let done = match begun {
        Ok(pulled) => take_all(args, &node, pulled, sink, &stop),
        Err(error) => Err(failed(&error)),
    };
    node.close();
    done
}

/// Builds the pull from the arguments; reports wrong values before waiting for nodes.
fn requested<'a>(
    node: &'a Node,
    args: &PullArgs,
    times: Option<std::ops::RangeInclusive<u64>>,
) -> Result<PullBuilder<'a>, PullError> {
    let mut pull = node.pull(args.tag.as_str());
    if let Some(n) = args.newest {
        pull = pull.newest(n);
    }
    if let Some(n) = args.nth {
        pull = pull.nth(n);
    }
    if let Some(seqs) = &args.seq {
        pull = pull.seq(seqs.clone());
    }
    if let Some(times) = times {
        pull = pull.time(times);
    }
    if let Some(at) = &args.at {
        pull = pull.from(at);
    }
    if let Some(node) = &args.hold_at {
        pull = pull.hold_at(node, args.samples);
    }
    if let Some(publisher) = args.publisher {
        pull = pull.publisher(publisher);
    }
    if let Some(size) = args.size {
        pull = pull.size(size.width, size.height);
    }
    if let Some((rate, channels)) = args.audio {
        pull = pull.audio(rate, channels);
    }
    if let Some(n) = args.every {
        pull = pull.every(n);
    }
    if let Some(hz) = args.max_hz {
        pull = pull.max_hz(hz);
    }
    if let Some(timeout) = args.timeout {
        pull = pull.timeout(timeout);
    }
    pull.check()?;
    // The command has waited until the registry is complete.
    Ok(pull.at_once())
}

/// Maps wrong arguments to a usage error, and missing samples to "not delivered".
fn failed(error: &PullError) -> anyhow::Error {
    if error.is_usage() {
        exit::usage(error)
    } else if matches!(error, PullError::Closed) {
        anyhow::anyhow!("{error}")
    } else {
        exit::refused(error)
    }
}

fn take_all(
    args: &PullArgs,
    node: &Node,
    mut pulled: Pulled,
    mut sink: Sink,
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    loop {
        if stop.requested() {
            sink.end()?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        match pulled.next_timeout(STOP_SLICE) {
            Ok(Some(delivery)) => {
                if args.json {
                    show::json(&SampleLine::new(&delivery, false))?;
                } else if args.out.is_none() {
                    show::line(&describe(&delivery))?;
                }
                sink.write(&delivery, args.requested_rate(), node)?;
                sink.poll()?;
            }
            Ok(None) => break,
            Err(RecvError::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
    }
    sink.end()?;
    let summary = pulled.summary().cloned().unwrap_or_default();
    print(args, &summary)?;
    verdict(&summary)
}

/// Describes a sample in one line.
fn describe(delivery: &Sample) -> String {
    let size = picture_size(delivery).map(|size| format!(" {size}")).unwrap_or_default();
    format!(
        "{} {} seq {} captured {} age {} s  {} {}{size}  {} bytes",
        delivery.tag,
        delivery.publisher,
        delivery.seq,
        rfc3339_of(delivery.captured.nanos),
        show::millis(u64::try_from(delivery.age.as_millis()).unwrap_or(u64::MAX)),
        delivery.kind,
        delivery.encoding,
        delivery.payload.len(),
    )
}

fn print(args: &PullArgs, summary: &PullSummary) -> anyhow::Result<()> {
    if args.json {
        return show::json(&SummaryLine { summary: Summary::new(summary) });
    }
    let from: Vec<String> =
        summary.nodes.iter().map(|node| format!("{} from {}", node.delivered, node.name)).collect();
    let mut text = format!(
        "found {}, delivered {}, {} bytes",
        summary.found, summary.delivered, summary.bytes
    );
    if !from.is_empty() {
        text.push_str(&format!(": {}", from.join(", ")));
    }
    if args.to_stdout() {
        show::note(&text)
    } else {
        show::line(&text)?
    }
    if summary.more {
        show::note("the selection exceeds one pull; pull the rest with --seq or --from");
    }
    for node in &summary.silent {
        show::note(&format!("node {node} did not answer: its samples were left out"));
    }
    Ok(())
}

impl Summary {
    fn new(summary: &PullSummary) -> Self {
        let missing = summary.missing.iter().map(|missing| MissingLine {
            publisher: missing.publisher.to_string(),
            seq: missing.seq,
            reason: missing.reason.to_string(),
        });
        let nodes = summary.nodes.iter().map(|node| NodeLine {
            id: node.id.to_string(),
            name: node.name.clone(),
            delivered: node.delivered,
        });
        Self {
            found: summary.found,
            delivered: summary.delivered,
            bytes: summary.bytes,
            missing: missing.collect(),
            nodes: nodes.collect(),
            silent: summary.silent.clone(),
            more: summary.more,
        }
    }
}

fn verdict(summary: &PullSummary) -> anyhow::Result<ExitCode> {
    if summary.missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(exit::refused(format!(
        "{} of {} samples did not arrive: {}",
        summary.missing.len(),
        summary.found,
        reasons(&summary.missing)
    )))
}

/// Lists the missing samples, grouped by reason.
fn reasons(missing: &[Missing]) -> String {
    let mut by_reason: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for missing in missing {
        by_reason.entry(missing.reason.to_string()).or_default().push(missing.seq);
    }
    let one = |(reason, seqs): (&String, &Vec<u64>)| match seqs.as_slice() {
        [] => reason.clone(),
        [seq] => format!("seq {seq}: {reason}"),
        [first, .., last] => format!("{} from seq {first} to {last}: {reason}", seqs.len()),
    };
    let shown: Vec<String> = by_reason.iter().take(REASONS_SHOWN).map(one).collect();
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::pull::MissingReason;
    use paceline::status::{NodeId, PublisherId};

    #[test]
    fn missing_samples_are_grouped_by_reason() {
        let publisher = PublisherId { node: NodeId(1), index: 0 };
        let missing = |seq, reason| Missing { publisher, seq, reason };
        let all = [
            missing(3, MissingReason::Expired),
            missing(4, MissingReason::Expired),
            missing(9, MissingReason::TimeIsOver),
        ];
        let text = reasons(&all);
        assert!(text.contains("2 from seq 3 to 4: "), "{text}");
        assert!(text.contains("; seq 9: "), "{text}");
    }
}
