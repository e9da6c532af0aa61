//! `paceline sub --dry-run`: queries the admission test without reserving.

use super::SubArgs;
use crate::args::{self, WishArgs};
use crate::config::NodeArgs;
use crate::exit::{self, REFUSED};
use crate::notices;
use crate::show;
use crate::status::{ReservedHop, settle};
use crate::stop::Stop;
use paceline::contract::{BestEffort, Grant, Proxy, Quote, Refusal, Retransmit};
use paceline::{Node, Pattern};
use serde::Serialize;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(100);

/// Default of the longest wait for a publisher.
const WAIT: Duration = Duration::from_millis(2_500);

const AFTER: &str = "\
Nothing is reserved, so another subscriber may take the bandwidth first. The answer is valid for this place: run it \
on the subscriber's host, with its --link flags. Exits with 0 if every matching publisher would grant the request, \
with 3 otherwise.";

/// Options of `paceline ask`, the old name of `paceline sub --dry-run`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct AskArgs {
    /// A tag, or a pattern in which * matches one chunk and ** any number: robot/**
    #[arg(value_name = "TAG", value_parser = Pattern::new)]
    pattern: Pattern,
    #[command(flatten)]
    wish: WishArgs,
    /// Node that reduces rate and size: publisher, subscriber, node:NAME or auto
    #[arg(long, value_name = "WHERE", value_parser = args::proxy, default_value = "publisher")]
    proxy: Proxy,
    /// Gives up after this time without a publisher
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "2.5s")]
    timeout: Duration,
    /// Prints a JSON object for each publisher
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// A request that is checked and not reserved.
struct Query<'a> {
    pattern: &'a Pattern,
    wish: &'a WishArgs,
    proxy: Proxy,
    retransmit: Retransmit,
    priority: Option<u32>,
    timeout: Duration,
    json: bool,
    node: &'a NodeArgs,
}

/// The `--json` line of one publisher.
#[derive(Serialize)]
struct Line {
    tag: String,
    publisher: String,
    node: String,
    granted: bool,
    complete: bool,
    best_effort: bool,
    within_us: Option<u64>,
    bound_us: Option<u64>,
    /// One period on each hop: an estimate, with and without a contract.
    estimate_us: Option<u64>,
    hops: Vec<ReservedHop>,
    refusal: Option<RefusalLine>,
}

/// The reason for a refusal and the best alternative.
#[derive(Serialize)]
struct RefusalLine {
    node: String,
    link: String,
    text: String,
    needed_bytes_per_s: u64,
    available_bytes_per_s: u64,
    offer: OfferLine,
}

#[derive(Serialize)]
struct OfferLine {
    max_hz: Option<f64>,
    size: Option<String>,
    together: bool,
    bitrate: Option<u32>,
    bytes: Option<u64>,
    within_us: Option<u64>,
    loss: Option<String>,
}

/// Checks the request of `paceline sub --dry-run`.
pub(super) fn run(args: &SubArgs) -> anyhow::Result<ExitCode> {
    let query = Query {
        pattern: &args.pattern,
        wish: &args.wish,
        proxy: args.proxy.clone(),
        retransmit: args.retransmit,
        priority: args.priority,
        timeout: args.timeout.unwrap_or(WAIT),
        json: args.json,
        node: &args.node,
    };
    query.run()
}

/// Checks the request of `paceline ask`.
pub(crate) fn run_ask(args: &AskArgs) -> anyhow::Result<ExitCode> {
    let query = Query {
        pattern: &args.pattern,
        wish: &args.wish,
        proxy: args.proxy.clone(),
        retransmit: Retransmit::default(),
        priority: None,
        timeout: args.timeout,
        json: args.json,
        node: &args.node,
    };
    query.run()
}

impl Query<'_> {
    /// Runs the query once and prints the answers.
    fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let node = self.node.open_guest("sub")?;
        settle(&node, self.timeout, &stop);
        self.wish.check(&node, self.pattern)?;
        let until = Instant::now() + self.timeout;
        let mut quotes = self.ask(&node)?;
        while quotes.is_empty() && Instant::now() < until && !stop.requested() {
            std::thread::sleep(STEP);
            quotes = self.ask(&node)?;
        }
        node.close();
        if quotes.is_empty() {
            let waited = self.timeout.as_millis();
            return Err(exit::refused(format!(
                "no publisher of {} within {waited} ms; ls lists the tags",
                self.pattern
            )));
        }
        let promises = self.wish.promises();
        for quote in &quotes {
            match self.json {
                true => show::json(&Line::new(quote, promises))?,
                false => show::line(&describe(quote, promises))?,
            }
        }
        let granted = quotes.iter().all(|quote| is_granted(quote, promises));
        Ok(if granted { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
    }

    fn ask(&self, node: &Node) -> anyhow::Result<Vec<Quote>> {
        let builder = node.subscriber(self.pattern.as_str());
        let builder = builder.proxy(self.proxy.clone()).retransmit(self.retransmit);
        let builder = match self.priority {
            Some(level) => builder.priority(level),
            None => builder,
        };
        self.wish.apply(builder).quotes().map_err(exit::usage)
    }
}

/// Returns true if the publisher would satisfy the request. With `promises` the request has a
/// contract, so best effort does not satisfy it.
const fn is_granted(quote: &Quote, promises: bool) -> bool {
    quote.is_granted() && (quote.grant.is_some() || !promises)
}

/// Returns true if a link of the path would reserve capacity. Otherwise nothing limits the stream, and
/// there is no contract.
fn is_reserved(grant: &Grant) -> bool {
    grant.hops.iter().any(|hop| hop.capacity.is_some())
}

/// Formats one publisher's answer. `promises` is true if the request has a contract.
fn describe(quote: &Quote, promises: bool) -> String {
    let Quote { tag, node, .. } = quote;
    let answer = match (&quote.refusal, &quote.grant) {
        (Some(refusal), _) => format!("no: {refusal}"),
        (None, _) if !quote.complete => {
            "some nodes of its path did not answer: try again".to_owned()
        }
        (None, Some(grant)) if is_reserved(grant) => format!("yes: {grant}"),
        (None, Some(grant)) => {
            let mut hops = grant.hops.iter();
            let local = hops.all(|hop| notices::stays_on_host(&hop.link, hop.capacity));
            format!("yes, as best effort: {}", notices::reason(BestEffort::NoCapacity, local))
        }
        (None, None) if promises => {
            format!("no, only as best effort: {}", BestEffort::RateUnknown)
        }
        (None, None) => "yes, as best effort: --within or --loss requests a contract".to_owned(),
    };
    let mut text = format!("{tag} of {node}: {answer}");
    for hop in quote.grant.iter().filter(|it| is_reserved(it)).flat_map(|grant| &grant.hops) {
        let bound = show::millis(show::micros(hop.bound.into()));
        text.push_str(&format!("\n  {} -{}->: {bound} ms", hop.node_name, hop.link));
        let bits = hop.bytes_per_s.saturating_mul(8);
        match hop.capacity {
            Some(capacity) => text.push_str(&format!(
                ", reserves {} of {}, {} bytes at once",
                show::bits(bits),
                show::bits(capacity.bits_per_s()),
                hop.burst
            )),
            None => text.push_str(", estimate: the link has no capacity"),
        }
    }
    if let Some(estimate) = quote.estimate.filter(|it| it.hops > 0) {
        let time = |time: paceline_sched::Duration| show::millis(show::micros(time.into()));
        let (delay, period) = (time(estimate.delay()), time(estimate.period));
        let hops = if estimate.hops == 1 { "1 hop" } else { &format!("{} hops", estimate.hops) };
        text.push_str(&format!(
            "\n  estimate by its period: {delay} ms, {hops} of {period} ms each"
        ));
    }
    text
}

impl Line {
    fn new(quote: &Quote, promises: bool) -> Self {
        let grant = quote.grant.as_ref();
        Self {
            tag: quote.tag.to_string(),
            publisher: quote.publisher.to_string(),
            node: quote.node.clone(),
            granted: is_granted(quote, promises),
            complete: quote.complete,
            best_effort: !grant.is_some_and(is_reserved),
            within_us: grant.and_then(|grant| Some(show::micros(grant.within?.into()))),
            bound_us: grant.map(|grant| show::micros(grant.bound.into())),
            estimate_us: quote.estimate.map(|it| show::micros(it.delay().into())),
            hops: grant.map_or_else(Vec::new, |it| it.hops.iter().map(ReservedHop::new).collect()),
            refusal: quote.refusal.as_ref().map(RefusalLine::new),
        }
    }
}

impl RefusalLine {
    fn new(refusal: &Refusal) -> Self {
        let offer = &refusal.offer;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 thousandths of a hertz")]
        let max_hz = offer.max_millihertz.map(|millihertz| millihertz as f64 / 1e3);
        Self {
            node: refusal.node_name.clone(),
            link: refusal.link.clone(),
            text: refusal.to_string(),
            needed_bytes_per_s: refusal.needed_bytes_per_s,
            available_bytes_per_s: refusal.available_bytes_per_s,
            offer: OfferLine {
                max_hz,
                size: offer.size.map(|size| size.to_string()),
                together: offer.together,
                bitrate: offer.bitrate.map(NonZeroU32::get),
                bytes: offer.bytes,
                within_us: offer.within.map(|within| show::micros(within.into())),
                loss: offer.loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Tag;
    use paceline::status::{NodeId, PublisherId};

    fn quote(complete: bool, grant: Option<Grant>) -> Quote {
        Quote {
            publisher: PublisherId { node: NodeId(1), index: 2 },
            tag: Tag::new("cam").unwrap(),
            node: "robot".to_owned(),
            complete,
            grant,
            refusal: None,
            estimate: None,
        }
    }

    #[test]
    fn best_effort_is_explained_with_a_fix() {
        let silent = describe(&quote(false, None), true);
        assert_eq!(silent, "cam of robot: some nodes of its path did not answer: try again");
        let unknown = describe(&quote(true, None), true);
        assert!(
            unknown.starts_with(
                "cam of robot: no, only as best effort: its publishing rate is unknown"
            ),
            "{unknown}"
        );
        let unasked = describe(&quote(true, None), false);
        assert_eq!(
            unasked,
            "cam of robot: yes, as best effort: --within or --loss requests a contract"
        );
    }

    #[test]
    fn an_incomplete_answer_is_not_granted() {
        for (complete, promises, granted) in
            [(true, false, true), (false, false, false), (true, true, false)]
        {
            let line = Line::new(&quote(complete, None), promises);
            assert_eq!((line.granted, line.complete, line.best_effort), (granted, complete, true));
        }
    }
}
