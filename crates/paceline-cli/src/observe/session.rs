//! An observing session: one subscription per tag that matches the patterns.

use super::args::LookArgs;
use super::choice::{Choice, choose};
use super::meter::Meter;
use super::watch::{Seen, Watch};
use crate::shortfall;
use crate::status::{PolicyQuery, describe_tags};
use paceline::contract::Form;
use paceline::status::{Drops, SourceView};
use paceline::{Node, Pattern, Tag};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);
/// Interval of the search for publishers; the search adds no load to links.
const REFRESH: Duration = Duration::from_millis(250);
/// Time to wait for a publisher before printing a note.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit of the observed tags.
const TAGS_MAX: usize = 256;

/// The output of an observing command.
pub(super) trait Target {
    /// Returns a meter for a new tag.
    fn meter(&self) -> Option<Meter>;
    /// Returns the number of samples to take, `None` for no limit.
    fn count(&self) -> Option<u64>;
    /// Takes a sample; returns true if it counts.
    fn take(&mut self, seen: &Seen, node: &Node) -> anyhow::Result<bool>;
    /// Reports on one tag once per second; `named` requests the tag's name in the output.
    fn report(&mut self, watch: &mut Watch, now: Instant, named: bool) -> anyhow::Result<()>;
    /// Reports on one tag at the end.
    fn end(&mut self, watch: &mut Watch, node: &Node) -> anyhow::Result<()>;
}

enum End {
    Count,
    Duration,
    Stopped,
}

/// Observes tags.
pub(super) struct Session<'a> {
    look: &'a LookArgs,
    stop: Stop,
    node: Node,
    payloads: bool,
    sender: SyncSender<Seen>,
    samples: Receiver<Seen>,
    watches: BTreeMap<Tag, Watch>,
    came: u64,
    noted: BTreeSet<Pattern>,
    /// The questions for patterns without a publisher, and a refusal.
    policies: BTreeMap<Pattern, PolicyQuery>,
    refused: Option<String>,
    full: bool,
    began: Instant,
}

impl<'a> Session<'a> {
    /// Opens a session with a queue of `queue` samples, with or without their payloads.
    pub(super) fn open(look: &'a LookArgs, queue: usize, payloads: bool) -> anyhow::Result<Self> {
        let stop = Stop::on_signals()?;
        let node = look.node.open_guest("watch")?;
        // Reports an impossible request before waiting for a publisher.
        look.ask(&node, "a", Form::FULL).check().map_err(exit::usage)?;
        look.patterns.iter().try_for_each(|pattern| look.wish.check(&node, pattern))?;
        let (sender, samples) = sync_channel(queue);
        Ok(Self {
            look,
            stop,
            node,
            payloads,
            sender,
            samples,
            watches: BTreeMap::new(),
            came: 0,
            noted: BTreeSet::new(),
            policies: BTreeMap::new(),
            refused: None,
            full: false,
            began: Instant::now(),
        })
    }

    /// Runs until `--count`, `--duration` or a signal ends it.
    pub(super) fn run(mut self, mut target: impl Target) -> anyhow::Result<ExitCode> {
        let deadline = self.look.duration.map(|duration| self.began + duration);
        let (mut tick, mut refresh) = (self.began + TICK, self.began);
        let end = loop {
            let now = Instant::now();
            if target.count().is_some_and(|count| self.came >= count) {
                break End::Count;
            }
            if self.stop.requested() {
                break End::Stopped;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                break End::Duration;
            }
            if now >= refresh {
                self.refresh(now, &target)?;
                refresh = now + REFRESH;
            }
            if now >= tick {
                self.report(now, &mut target)?;
                tick = now + TICK;
            }
            let until = deadline.unwrap_or(tick).min(tick).min(refresh).min(now + STOP_SLICE);
            match self.samples.recv_timeout(until.saturating_duration_since(now)) {
                Ok(seen) => self.take(&seen, &mut target)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        };
        self.end(&end, &mut target)
    }

    fn take(&mut self, seen: &Seen, target: &mut impl Target) -> anyhow::Result<()> {
        // The queue may still contain samples of a subscription that has ended.
        let Some(watch) = self.watches.get_mut(&seen.delivery.tag) else { return Ok(()) };
        watch.take(seen);
        self.came += u64::from(target.take(seen, &self.node)?);
        Ok(())
    }

    /// Searches for publishers and subscribes to their tags.
    fn refresh(&mut self, now: Instant, target: &impl Target) -> anyhow::Result<()> {
        let mut sources: BTreeMap<Tag, Vec<SourceView>> = BTreeMap::new();
        for pattern in &self.look.patterns {
            let found = self.node.sources(pattern);
            self.look.wish.check(&self.node, pattern)?;
            if found.is_empty() && now >= self.began + PATIENCE / 2 {
                let policy = self.policies.entry(pattern.clone()).or_default();
                if let Some(refusal) = policy.refusal(&self.node, pattern) {
                    self.noted.insert(pattern.clone());
                    show::note(&format!("[{pattern}]: refused: {refusal}"));
                    self.refused = Some(refusal.to_string());
                }
            }
            if found.is_empty()
                && now >= self.began + PATIENCE
                && self.noted.insert(pattern.clone())
            {
                let there = self.there();
                show::note(&format!(
                    "no publisher on {pattern} yet; {there}; still waiting (Ctrl-C ends)"
                ));
            }
            for source in found {
                let at = sources.entry(source.tag.clone()).or_default();
                if !at.iter().any(|other| other.publisher == source.publisher) {
                    at.push(source);
                }
            }
        }
        for tag in sources.keys() {
            if self.watches.contains_key(tag) {
                continue;
            }
            if self.watches.len() >= TAGS_MAX {
                if !std::mem::replace(&mut self.full, true) {
                    show::note(&format!(
                        "more than {TAGS_MAX} tags; {tag} and others are left out: give a narrower \
                         pattern"
                    ));
                }
                break;
            }
            self.watches.insert(tag.clone(), Watch::new(tag.clone(), target.meter()));
        }
        for (tag, watch) in &mut self.watches {
            watch.hear();
            let publishers = sources.get(tag).map_or(&[][..], Vec::as_slice);
            let choice = match self.look.has_form() {
                true if publishers.is_empty() => Choice::Nobody,
                true => Choice::Take(Form::FULL),
                false => choose(publishers, watch.form()),
            };
            watch.follow(choice, self.look, &self.node, &self.sender, self.payloads)?;
        }
        Ok(())
    }

    fn report(&mut self, now: Instant, target: &mut impl Target) -> anyhow::Result<()> {
        let named = self.look.names_several();
        self.watches.values_mut().try_for_each(|watch| target.report(watch, now, named))
    }

    fn end(mut self, end: &End, target: &mut impl Target) -> anyhow::Result<ExitCode> {
        let now = Instant::now();
        let named = self.look.names_several();
        for watch in self.watches.values_mut() {
            watch.hear();
            if watch.has_news() {
                target.report(watch, now, named)?;
            }
            target.end(watch, &self.node)?;
        }
        let verdict = self.verdict(end, target.count());
        self.watches.clear();
        self.policies.clear();
        self.node.close();
        verdict
    }

    fn verdict(&self, end: &End, wanted: Option<u64>) -> anyhow::Result<ExitCode> {
        match end {
            End::Count => return Ok(ExitCode::SUCCESS),
            End::Stopped if wanted.is_some() => return Ok(ExitCode::from(INTERRUPTED)),
            End::Stopped => return Ok(ExitCode::SUCCESS),
            End::Duration if wanted.is_none() && self.came > 0 => return Ok(ExitCode::SUCCESS),
            End::Duration => {}
        }
        let asked = wanted
            .map_or_else(|| "no sample".to_owned(), |n| format!("{} of {n} samples", self.came));
        let duration = self.look.duration.unwrap_or_default().as_secs_f64();
        let refusal = self.watches.values().find_map(Watch::refusal).cloned();
        let refusal = refusal.or_else(|| self.refused.clone());
        let why = refusal.map(|why| format!("refused: {why}"));
        let why = why.or_else(|| self.watches.values().find_map(Watch::why_not));
        let why = why.unwrap_or_else(|| match self.watches.is_empty() {
            true => {
                let patterns: Vec<&str> = self.look.patterns.iter().map(Pattern::as_str).collect();
                let there = self.there();
                format!(
                    "no publisher on {}; {there}; check the tag or start a publisher",
                    patterns.join(", ")
                )
            }
            false => self.shortfall(),
        });
        Err(exit::refused(format!("{asked} within --duration {duration}s: {why}")))
    }

    /// Explains why fewer samples arrived than requested.
    fn shortfall(&self) -> String {
        let sources: Vec<SourceView> =
            self.look.patterns.iter().flat_map(|pattern| self.node.sources(pattern)).collect();
        let mut drops = Drops::default();
        self.watches.values().for_each(|watch| drops.merge(&watch.drops()));
        let asked = self.look.wish.requested_rate();
        shortfall::reason(&self.node, &sources, &drops, asked, "--duration")
    }

    /// Lists all published tags in words.
    fn there(&self) -> String {
        let all = Pattern::new("**").map(|all| self.node.sources(&all)).unwrap_or_default();
        describe_tags(&all.iter().map(|source| source.tag.to_string()).collect())
    }
}
