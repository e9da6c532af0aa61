//! `paceline set`: a subscription asks for something else while it runs.

use crate::args::{self, NodeArgs, WishArgs};
use crate::exit::{self, REFUSED};
use crate::ls::settle;
use crate::show;
use crate::stop::Stop;
use anyhow::bail;
use paceline::{Node, Pattern, Proxy, Retransmit, SubscribeError, SubscriberBuilder};
use paceline::{SubscriptionStatus, SubscriptionView};
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(100);
/// How soon a path answers that answers at all, and brings something.
const PROMPT: Duration = Duration::from_secs(1);

const AFTER: &str = "\
What is not said stays as it is: --max-hz 5 leaves size and delay bound alone, --every 1 is every sample, --reset takes all of it back \
first. What comes goes on coming until the path has promised the other. Ends with 3 if no subscription matches, or what is asked \
for now is refused: then nothing comes before it asks for less.";

/// `paceline set`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct SetArgs {
    /// What the subscription is for: its tag or its pattern as `ls` shows it, or a pattern that its tag matches
    #[arg(value_name = "TAG", value_parser = Pattern::new)]
    pattern: Pattern,
    #[command(flatten)]
    wish: WishArgs,
    /// Takes back what was asked for before: every sample as it is published, best effort
    #[arg(long)]
    reset: bool,
    /// Where rate and size are reduced: publisher or subscriber
    #[arg(long, value_name = "WHERE", value_parser = args::proxy)]
    proxy: Option<Proxy>,
    /// What is done about samples lost on links over UDP: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit)]
    retransmit: Option<Retransmit>,
    /// Only subscriptions of the node of this name
    #[arg(long, value_name = "NODE")]
    at: Option<String>,
    /// All that match; without it there must be one
    #[arg(long)]
    all: bool,
    /// How long to wait for such a subscription, and then for its path's answer, in milliseconds
    #[arg(long, value_name = "MS", value_parser = args::wait_millis, default_value = "2500")]
    timeout: Duration,
    /// Prints a JSON object for each subscription
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// One subscription's line of `--json`.
#[derive(Serialize)]
struct Line {
    subscription: String,
    pattern: String,
    node: String,
    before: String,
    after: String,
    granted: Vec<String>,
    refused: Vec<String>,
}

/// Changes it, and waits for what becomes of that.
pub(crate) fn run(args: &SetArgs) -> anyhow::Result<ExitCode> {
    if !args.says_something() {
        return Err(exit::usage(
            "nothing to change: say --max-hz, --every, --size, --audio, --within, --loss, --proxy, --retransmit or --reset",
        ));
    }
    let stop = Stop::on_signals()?;
    let node = args.node.open_guest()?;
    // What cannot be is told whether or not there is such a subscription.
    let builder = node.subscriber(args.pattern.as_str()).map_err(exit::usage)?;
    drop(args.apply(builder).map_err(exit::usage)?);
    let changed = change_all(args, &node, &stop);
    node.close();
    let refused = changed?.iter().any(|line| !line.refused.is_empty());
    Ok(if refused { ExitCode::from(REFUSED) } else { ExitCode::SUCCESS })
}

fn change_all(args: &SetArgs, node: &Node, stop: &Stop) -> anyhow::Result<Vec<Line>> {
    let mut changed = Vec::new();
    for before in args.find(node, stop)? {
        let id = before.id;
        node.change(id, |builder| args.apply(builder))?;
        let Some((after, granted)) = outcome(args, node, &before, stop) else {
            bail!("{} at {} has ended meanwhile", before.pattern, before.node);
        };
        let line = Line {
            subscription: id.to_string(),
            pattern: before.pattern.to_string(),
            node: before.node,
            before: show::asked(before.form, before.within, before.loss),
            after: show::asked(after.form, after.within, loss(&after)),
            granted,
            refused: after.refusals,
        };
        match args.json {
            true => show::json(&line)?,
            false => show::line(&line.told())?,
        }
        changed.push(line);
    }
    Ok(changed)
}

/// What a subscription asks for now, and what its paths have promised for that; waits until there is an
/// answer where one is due. `None` if it is gone.
fn outcome(
    args: &SetArgs,
    node: &Node,
    before: &SubscriptionView,
    stop: &Stop,
) -> Option<(SubscriptionStatus, Vec<String>)> {
    let began = Instant::now();
    loop {
        let mut found = node.status_of(&[before.id.node], args.timeout);
        let status = found.pop()?;
        let after = status.subscriptions.into_iter().find(|it| it.id == before.id)?;
        let mine = status.reservations.iter().filter(|it| it.subscription == before.id);
        let grants = mine.filter(|grant| grant.within.map(Into::into) == after.within);
        let granted: Vec<String> = grants.map(ToString::to_string).collect();
        let promised = after.within.is_some() || after.loss.is_some();
        let answered = !granted.is_empty() || !after.refusals.is_empty();
        // Where no link has a capacity nothing is promised, and there is no answer to wait for.
        let heard = !after.publishers.is_empty() && began.elapsed() >= PROMPT;
        let over = heard || began.elapsed() >= args.timeout || stop.requested();
        if !promised || answered || over {
            return Some((after, granted));
        }
        std::thread::sleep(STEP);
    }
}

fn loss(status: &SubscriptionStatus) -> Option<paceline::LossTolerance> {
    status.loss.and_then(|(x, y)| paceline::LossTolerance::new(x, y).ok())
}

impl Line {
    fn told(&self) -> String {
        let Self { pattern, node, before, after, granted, refused, .. } = self;
        let answer = match (refused.first(), granted.first()) {
            (Some(refusal), _) => format!("\n\trefused: {refusal}"),
            (None, Some(grant)) => format!("\n\tgranted: {grant}"),
            (None, None) => String::new(),
        };
        format!("{pattern} at {node}: {before} -> {after}{answer}")
    }
}

impl SetArgs {
    fn says_something(&self) -> bool {
        let way = self.proxy.is_some() || self.retransmit.is_some();
        self.reset || self.wish.promises() || way || self.wish.says_form()
    }

    fn apply<'a>(
        &self,
        mut builder: SubscriberBuilder<'a>,
    ) -> Result<SubscriberBuilder<'a>, SubscribeError> {
        if self.reset {
            builder = builder.as_published();
        }
        if let Some(proxy) = self.proxy {
            builder = builder.proxy(proxy);
        }
        if let Some(retransmit) = self.retransmit {
            builder = builder.retransmit(retransmit);
        }
        self.wish.apply(builder)
    }

    /// The subscriptions that are meant.
    fn find(&self, node: &Node, stop: &Stop) -> anyhow::Result<Vec<SubscriptionView>> {
        let until = Instant::now() + self.timeout;
        settle(node, self.timeout, stop);
        loop {
            let found: Vec<_> =
                node.subscriptions().into_iter().filter(|it| self.means(it)).collect();
            if found.is_empty() && Instant::now() < until && !stop.requested() {
                std::thread::sleep(STEP);
                continue;
            }
            let found = if found.len() > 1 && !self.all {
                self.without_buffers(node, found)
            } else {
                found
            };
            return match found.len() {
                0 => Err(exit::refused(format!(
                    "no subscription to {}{}; ls shows those there are",
                    self.pattern,
                    self.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default()
                ))),
                1 => Ok(found),
                _ if self.all => Ok(found),
                many => Err(exit::usage(format!(
                    "{many} subscriptions to {}: at {}; name one node with --at, or say --all",
                    self.pattern,
                    found.iter().map(|it| it.node.as_str()).collect::<Vec<_>>().join(", ")
                ))),
            };
        }
    }

    /// Who asks for something else thinks of those who watch, not of what a publisher holds of itself: subscriptions
    /// that only feed buffers are meant where nothing else is.
    fn without_buffers(&self, node: &Node, found: Vec<SubscriptionView>) -> Vec<SubscriptionView> {
        let nodes: Vec<_> = found.iter().map(|it| it.id.node).collect();
        let status = node.status_of(&nodes, self.timeout);
        let feeds = |it: &SubscriptionView| {
            status.iter().flat_map(|node| &node.buffers).any(|buffer| buffer.id == it.id)
        };
        let (buffers, others): (Vec<_>, Vec<_>) = found.into_iter().partition(feeds);
        if others.is_empty() { buffers } else { others }
    }

    fn means(&self, subscription: &SubscriptionView) -> bool {
        let here = self.at.as_ref().is_none_or(|at| *at == subscription.node);
        let theirs = &subscription.pattern;
        let tag = paceline::Tag::new(theirs.as_str());
        here && (*theirs == self.pattern || tag.is_ok_and(|tag| self.pattern.matches(&tag)))
    }
}
