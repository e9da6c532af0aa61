//! `paceline set`: changes a running subscription.

use crate::args::{self, WishArgs};
use crate::config::NodeArgs;
use crate::status::{settle, some_names, wait_for};
use paceline_http::change::{ChangeLine, ChangeResult, change};
use paceline_tool::exit::{self, FAILED, REFUSED};
use paceline_tool::show;
use paceline_tool::stop::Stop;

use paceline::contract::{Proxy, Retransmit};
use paceline::status::SubscriptionView;
use paceline::{Node, Pattern, SubscriberBuilder};

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const AFTER: &str = "\
Options that are not given stay unchanged: --max-hz 5 keeps the size and the delay bound. --every 1 requests every \
sample. --reset clears the whole request first. Delivery continues: the old contract stays in force until the path \
has granted the new one, and after a refusal. With --or-stop, a refusal ends the stream. Exits with code 3 if no \
subscription matches or the path refuses. Exits with code 1 if the path does not answer within --timeout, or if \
another request replaces this one first.";

/// Arguments of `paceline set`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct SetArgs {
    /// Tag or pattern of the subscription as `ls` shows it, or a pattern that matches its tag
    #[arg(value_name = "TAG", value_parser = Pattern::new)]
    pattern: Pattern,
    #[command(flatten)]
    wish: WishArgs,
    /// Resets the request first: every sample as published, best effort
    #[arg(long)]
    reset: bool,
    /// Ends the stream if the path refuses; by default everything stays as before
    #[arg(long)]
    or_stop: bool,
    /// Node that reduces rate and size: publisher, subscriber, node:NAME or auto
    #[arg(long, value_name = "WHERE", value_parser = args::proxy)]
    proxy: Option<Proxy>,
    /// Retransmission of samples lost on QUIC links: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit)]
    retransmit: Option<Retransmit>,
    /// Changes only subscriptions of the node with this name
    #[arg(long, value_name = "NODE")]
    at: Option<String>,
    /// Changes all matching subscriptions; by default exactly one must match
    #[arg(long)]
    all: bool,
    /// Gives up after this time without a matching subscription, and without the path's answer
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "2.5s")]
    timeout: Duration,
    /// Prints a JSON object per subscription
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// Changes the matching subscriptions and waits for the answers.
pub(crate) fn run(args: &SetArgs) -> anyhow::Result<ExitCode> {
    if !args.has_changes() {
        return Err(exit::usage(
            "nothing to change: give --max-hz, --min-hz, --every, --size, --bitrate, --quality, --audio, --within, --loss, \
             --importance, --proxy, --retransmit or --reset",
        ));
    }
    let stop = Stop::on_signals()?;
    let node = args.node.open_guest("set")?;
    // Reports an invalid request even if no subscription matches.
    let builder = node.subscriber(args.pattern.as_str());
    args.apply(builder).check().map_err(exit::usage)?;
    let changed = change_all(args, &node, &stop);
    node.close();
    let changed = changed?;
    let any = |answer| changed.iter().any(|line| line.answer == answer);
    Ok(if any(ChangeResult::Refused) {
        ExitCode::from(REFUSED)
    } else if any(ChangeResult::None) || any(ChangeResult::Replaced) {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    })
}

fn change_all(args: &SetArgs, node: &Node, stop: &Stop) -> anyhow::Result<Vec<ChangeLine>> {
    let mut changed = Vec::new();
    for before in args.find(node, stop)? {
        let line = change(node, &before, args.timeout, |builder| args.apply(builder))?;
        match args.json {
            true => show::json(&line)?,
            false => show::line(&line.to_text(args.timeout))?,
        }
        changed.push(line);
    }
    Ok(changed)
}

impl SetArgs {
    fn has_changes(&self) -> bool {
        let way = self.proxy.is_some() || self.retransmit.is_some();
        self.reset || self.wish.promises() || way || self.wish.has_form()
    }

    fn apply<'a>(&self, mut builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        if self.reset {
            builder = builder.as_published();
        }
        if self.or_stop {
            builder = builder.or_stop();
        }
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(proxy.clone());
        }
        if let Some(retransmit) = self.retransmit {
            builder = builder.retransmit(retransmit);
        }
        self.wish.apply(builder)
    }

    /// Finds the matching subscriptions.
    fn find(&self, node: &Node, stop: &Stop) -> anyhow::Result<Vec<SubscriptionView>> {
        let until = Instant::now() + self.timeout;
        settle(node, self.timeout, stop);
        let why = format!("no subscription to {} yet", self.pattern);
        let found = wait_for(until, stop, &why, || {
            let found = node.subscriptions().into_iter().filter(|it| self.means(it));
            Ok(Some(found.collect::<Vec<_>>()).filter(|found| !found.is_empty()))
        })?;
        let mut found = found.ok_or_else(|| self.nothing(node))?;
        if found.len() > 1 && !self.all {
            found = self.without_buffers(node, found);
        }
        if found.len() > 1 && !self.all {
            return Err(exit::usage(format!(
                "{} subscriptions to {}: at {}; name one node with --at, or give --all",
                found.len(),
                self.pattern,
                found.iter().map(|it| it.node.as_str()).collect::<Vec<_>>().join(", ")
            )));
        }
        Ok(found)
    }

    /// Returns the error without a matching subscription, with those that exist.
    fn nothing(&self, node: &Node) -> anyhow::Error {
        let at = self.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let there = node.subscriptions().into_iter();
        let there: BTreeSet<String> =
            there.map(|it| format!("{} at {}", it.pattern, it.node)).collect();
        let there = match there.is_empty() {
            true => "there are no subscriptions".to_owned(),
            false => format!("subscriptions: {}", some_names(&there)),
        };
        exit::refused(format!("no subscription to {}{at}; {there}", self.pattern))
    }

    /// Prefers subscriptions of applications: returns those that only feed pull buffers if there are no
    /// others.
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
