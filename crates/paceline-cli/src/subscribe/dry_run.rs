//! `paceline sub --dry-run`: queries the admission test without reserving.

use super::{OFFERS_MAX, SubArgs};
use crate::args::WishArgs;
use crate::config::NodeArgs;
use crate::notices;
use crate::status::{PolicyQuery, settle, wait_for};
use paceline::contract::{BestEffort, Grant, GrantedHop, Offer, OppositeStream, Quote, Refusal};
use paceline::status::ReservedHop;
use paceline::{Node, Pattern, SubscriberBuilder};
use paceline_tool::exit::{self, REFUSED};
use paceline_tool::show;
use paceline_tool::stop::Stop;
use serde::Serialize;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Default of the longest wait for a publisher.
const WAIT: Duration = Duration::from_millis(2_500);
/// The time for a publisher to appear before the policies on the path are asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// A request that is checked and not reserved.
struct Query<'a> {
    pattern: &'a Pattern,
    wish: &'a WishArgs,
    /// Adds the other options of the request.
    apply: &'a dyn for<'n> Fn(SubscriberBuilder<'n>) -> SubscriberBuilder<'n>,
    idle: Option<Duration>,
    /// The number of offers to take.
    offers: u32,
    timeout: Duration,
    json: bool,
    node: &'a NodeArgs,
}

/// The answers of the matching publishers, and the offers taken before.
struct Answers {
    quotes: Vec<Quote>,
    taken: Vec<String>,
}

/// The result of waiting for answers.
enum Answered {
    Paths(Answers),
    /// The policy of a node, which does not show its publishers, refuses the request.
    Policy(Box<Refusal>),
}

/// The `--json` line of one publisher.
#[derive(Serialize)]
struct Line {
    tag: String,
    /// `None` if the node's policy hides its publishers.
    publisher: Option<String>,
    node: String,
    granted: bool,
    complete: bool,
    best_effort: bool,
    /// The step of an elastic contract, from 0, and its form.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    within_us: Option<u64>,
    bound_us: Option<u64>,
    /// One period on each hop: an estimate, with and without a contract.
    estimate_us: Option<u64>,
    hops: Vec<ReservedHop>,
    /// The second path of a request with `--spare`.
    spare: Vec<ReservedHop>,
    refusal: Option<RefusalLine>,
    /// The other half of a request with `--with`.
    opposite: Option<OppositeLine>,
    /// The time without a sample after which the reservation would be released.
    idle_us: Option<u64>,
    /// The offers of earlier refusals that this answer includes.
    taken: Vec<String>,
}

/// The stream of `--with`.
#[derive(Serialize)]
struct OppositeLine {
    tag: String,
    bound_us: Option<u64>,
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
        apply: &|builder| args.apply(builder),
        idle: args.idle,
        offers: if args.take_offer { OFFERS_MAX } else { 0 },
        timeout: args.timeout.unwrap_or(WAIT),
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
        let why = format!("no publisher on {} yet", self.pattern);
        let mut policies = PolicyQuery::default();
        // The question for a policy subscribes to the pattern, which other programs see.
        let patience = Instant::now() + PATIENCE.min(self.timeout / 2);
        let answers = wait_for(until, &stop, &why, || {
            let answers = self.ask(&node)?;
            if !answers.quotes.is_empty() {
                return Ok(Some(Answered::Paths(answers)));
            }
            if Instant::now() < patience {
                return Ok(None);
            }
            let refusal = policies.refusal(&node, self.pattern);
            Ok(refusal.map(|refusal| Answered::Policy(Box::new(refusal))))
        })?;
        drop(policies);
        node.close();
        match answers {
            Some(Answered::Paths(answers)) => self.print(&answers),
            Some(Answered::Policy(refusal)) => self.print_refusal(&refusal),
            None => {
                let waited = self.timeout.as_millis();
                Err(exit::refused(format!(
                    "no publisher of {} within {waited} ms; ls lists the tags",
                    self.pattern
                )))
            }
        }
    }

    /// Prints the refusal of a node that shows no publisher.
    fn print_refusal(&self, refusal: &Refusal) -> anyhow::Result<ExitCode> {
        match self.json {
            true => show::json(&Line::refused(self.pattern, refusal))?,
            false => show::line(&format!("{}: no: {refusal}", self.pattern))?,
        }
        Ok(ExitCode::from(REFUSED))
    }

    fn print(&self, Answers { quotes, taken }: &Answers) -> anyhow::Result<ExitCode> {
        let promises = self.wish.promises();
        for offer in taken.iter().filter(|_| !self.json) {
            show::line(&format!("taking the offer: {offer}"))?;
        }
        for quote in quotes {
            match self.json {
                true => show::json(&Line::new(quote, promises, self.idle, taken))?,
                false => show::line(&describe(quote, promises, self.idle))?,
            }
        }
        let granted = quotes.iter().all(|quote| is_granted(quote, promises));
        Ok(if granted { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
    }

    /// Asks the paths, and again with the first offer of a refusal while offers may be taken.
    fn ask(&self, node: &Node) -> anyhow::Result<Answers> {
        let mut taken: Vec<Offer> = Vec::new();
        loop {
            let builder = (self.apply)(node.subscriber(self.pattern.as_str()));
            let builder = taken.iter().fold(builder, |builder, offer| builder.offered(offer));
            let quotes = builder.quotes().map_err(exit::usage)?;
            let offers = quotes.iter().filter_map(|quote| Some(quote.refusal.as_ref()?.offer));
            let offer = offers.into_iter().find(|offer| !offer.flags().is_empty());
            match offer.filter(|_| taken.len() < self.offers as usize) {
                Some(offer) => taken.push(offer),
                None => {
                    let first = taken.iter().filter_map(|it| it.flags().into_iter().next());
                    return Ok(Answers { quotes, taken: first.collect() });
                }
            }
        }
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

/// Formats one publisher's answer. `promises` is true if the request has a contract, which `idle` without a sample ends.
fn describe(quote: &Quote, promises: bool, idle: Option<Duration>) -> String {
    let Quote { tag, node, .. } = quote;
    let answer = match (&quote.refusal, &quote.grant) {
        (Some(refusal), _) => format!("no: {refusal}"),
        (None, _) if !quote.complete => {
            "some nodes of its path did not answer: try again".to_owned()
        }
        (None, Some(grant)) if is_reserved(grant) => match quote.step {
            Some(step) => format!("yes: {} (step {}), {grant}", grant.form, step + 1),
            None => format!("yes: {grant}"),
        },
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
    // The other hops of a refused path reserve nothing.
    let grant = quote.grant.as_ref().filter(|_| quote.is_granted());
    describe_hops(&mut text, grant, |grant| &grant.hops);
    if grant.is_some_and(|grant| !grant.spare.is_empty()) {
        text.push_str("\n  the spare:");
        describe_hops(&mut text, grant, |grant| &grant.spare);
    }
    if let Some(idle) = idle.filter(|_| quote.is_granted() && promises) {
        text.push_str(&format!(
            "\n  released after {idle:?} without a sample, and requested again by the next one"
        ));
    }
    text.push_str(&described_opposite(quote));
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

/// Formats the answer for the stream of `--with`; empty without one.
fn described_opposite(quote: &Quote) -> String {
    let Some(OppositeStream { tag, grant, refusal }) = &quote.opposite else {
        return String::new();
    };
    let answer = match (refusal, grant) {
        (Some(refusal), _) => format!("no: {refusal}"),
        (None, Some(grant)) if is_reserved(grant) => format!("yes: {grant}"),
        (None, Some(_)) => "yes, as best effort: no link of its path has a capacity".to_owned(),
        (None, None) => "no: its publishing rate or sample size is unknown".to_owned(),
    };
    let mut text = format!("\n  with {tag}: {answer}");
    if refusal.is_none() {
        describe_hops(&mut text, grant.as_ref(), |grant| &grant.hops);
    }
    text
}

/// Adds a line for each hop of a path of a contract that reserves something.
fn describe_hops(text: &mut String, grant: Option<&Grant>, path: impl Fn(&Grant) -> &[GrantedHop]) {
    for hop in grant.into_iter().filter(|it| is_reserved(it)).flat_map(path) {
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
}

fn reserved_hops(grant: Option<&Grant>) -> Vec<ReservedHop> {
    ReservedHop::of_path(grant.map_or(&[], |grant| &grant.hops))
}

impl Line {
    fn new(quote: &Quote, promises: bool, idle: Option<Duration>, taken: &[String]) -> Self {
        let grant = quote.grant.as_ref();
        let opposite = quote.opposite.as_ref().map(|it| OppositeLine {
            tag: it.tag.to_string(),
            bound_us: it.grant.as_ref().map(|grant| show::micros(grant.bound.into())),
            hops: reserved_hops(it.grant.as_ref()),
            refusal: it.refusal.as_ref().map(RefusalLine::new),
        });
        Self {
            tag: quote.tag.to_string(),
            publisher: Some(quote.publisher.to_string()),
            node: quote.node.clone(),
            granted: is_granted(quote, promises),
            complete: quote.complete,
            best_effort: !grant.is_some_and(is_reserved),
            step: quote.step,
            form: quote.step.and(grant).map(|grant| grant.form.to_string()),
            within_us: grant.and_then(|grant| Some(show::micros(grant.within?.into()))),
            bound_us: grant.map(|grant| show::micros(grant.bound.into())),
            estimate_us: quote.estimate.map(|it| show::micros(it.delay().into())),
            hops: reserved_hops(grant),
            spare: ReservedHop::of_path(grant.map_or(&[], |grant| &grant.spare)),
            refusal: quote.refusal.as_ref().map(RefusalLine::new),
            opposite,
            idle_us: idle.map(show::micros),
            taken: taken.to_vec(),
        }
    }
}

impl Line {
    /// Returns the line of a node that refuses the request for all its publishers.
    fn refused(pattern: &Pattern, refusal: &Refusal) -> Self {
        Self {
            tag: pattern.to_string(),
            publisher: None,
            node: refusal.node_name.clone(),
            granted: false,
            complete: true,
            best_effort: false,
            step: None,
            form: None,
            within_us: None,
            bound_us: None,
            estimate_us: None,
            hops: Vec::new(),
            spare: Vec::new(),
            refusal: Some(RefusalLine::new(refusal)),
            opposite: None,
            idle_us: None,
            taken: Vec::new(),
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
            step: None,
            refusal: None,
            opposite: None,
            estimate: None,
        }
    }

    #[test]
    fn best_effort_is_explained_with_a_fix() {
        let silent = describe(&quote(false, None), true, None);
        assert_eq!(silent, "cam of robot: some nodes of its path did not answer: try again");
        let unknown = describe(&quote(true, None), true, None);
        assert!(
            unknown.starts_with(
                "cam of robot: no, only as best effort: its publishing rate is unknown"
            ),
            "{unknown}"
        );
        let unasked = describe(&quote(true, None), false, None);
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
            let line = Line::new(&quote(complete, None), promises, None, &[]);
            assert_eq!((line.granted, line.complete, line.best_effort), (granted, complete, true));
        }
    }
}
