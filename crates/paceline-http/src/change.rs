//! Changes of running subscriptions, for `paceline set` and the API.

use clap::Parser as _;
use paceline::contract::ChangeOutcome;
use paceline::status::SubscriptionView;
use paceline::{Node, SubscriberBuilder};
use paceline_tool::args::WishArgs;
use paceline_tool::exit;
use paceline_tool::show;
use serde::Serialize;
use std::time::Duration;

/// One line of `--json`.
#[derive(Serialize)]
pub struct ChangeLine {
    subscription: String,
    pattern: String,
    node: String,
    before: String,
    asked: String,
    after: String,
    /// The result.
    pub answer: ChangeResult,
    granted: Vec<String>,
    refused: Vec<String>,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeResult {
    /// The path granted a promise.
    Granted,
    /// The request is in force as best effort.
    BestEffort,
    /// The path refused the request.
    Refused,
    /// A later request replaced it before the path answered.
    Replaced,
    /// The path did not answer in time.
    None,
}

/// Changes one subscription. Returns the answer to this request, independent of concurrent requests.
pub fn change(
    node: &Node,
    before: &SubscriptionView,
    timeout: Duration,
    apply: impl for<'a> Fn(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
) -> anyhow::Result<ChangeLine> {
    let (mut asked, mut promises) = (String::new(), false);
    let outcome = node.change_and_wait(before.id, timeout, |builder| {
        let builder = apply(builder);
        if let Ok((form, within, loss)) = builder.request() {
            asked = show::requested(form, within, loss);
            promises = within.is_some() || loss.is_some();
        }
        builder
    })?;
    let was = show::requested(before.form, before.within, before.loss);
    let (mut granted, mut refused, mut after) = (Vec::new(), Vec::new(), asked.clone());
    let answer = match outcome {
        ChangeOutcome::InForce { grants } => {
            // Best effort needs no answer of the path, which may still hold the previous contract.
            let grants = grants.iter().filter(|_| promises);
            granted = grants.map(ToString::to_string).collect();
            if granted.is_empty() { ChangeResult::BestEffort } else { ChangeResult::Granted }
        }
        ChangeOutcome::Refused { refusals, kept } => {
            refused = refusals.iter().map(ToString::to_string).collect();
            if kept {
                after.clone_from(&was);
            }
            ChangeResult::Refused
        }
        ChangeOutcome::Replaced => ChangeResult::Replaced,
        ChangeOutcome::Pending | ChangeOutcome::Unknown => ChangeResult::None,
    };
    Ok(ChangeLine {
        subscription: before.id.to_string(),
        pattern: before.pattern.to_string(),
        node: before.node.clone(),
        before: was,
        asked,
        after,
        answer,
        granted,
        refused,
    })
}

/// The options of a change in one line, as in `--max-hz 5 --size 160x120`.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    wish: WishArgs,
}

/// Changes the subscription with this id to the options in `words`; waits at most `timeout` for the path.
///
/// # Errors
/// Errors if the options are wrong, the node has no such subscription, or the request is invalid.
pub fn change_one(
    node: &Node,
    id: &str,
    words: &str,
    timeout: Duration,
) -> anyhow::Result<ChangeLine> {
    let (wish, before) = wanted(node, id, words)?;
    let builder = wish.apply(node.subscriber(before.pattern.as_str()));
    builder.check().map_err(exit::usage)?;
    change(node, &before, timeout, |builder| wish.apply(builder))
}

/// Asks the paths whether they would grant the changed request in place of the present one. Changes nothing.
///
/// # Errors
/// The errors of [`change_one`].
pub fn try_one(node: &Node, id: &str, words: &str) -> anyhow::Result<ChangeLine> {
    let (wish, before) = wanted(node, id, words)?;
    let mut asked = String::new();
    let quotes = node.quote_change(before.id, |builder| {
        let builder = wish.apply(builder);
        if let Ok((form, within, loss)) = builder.request() {
            asked = show::requested(form, within, loss);
        }
        builder
    })?;
    let refused: Vec<String> =
        quotes.iter().filter_map(|quote| quote.refusal.as_ref()).map(ToString::to_string).collect();
    let granted: Vec<String> =
        quotes.iter().filter_map(|quote| quote.grant.as_ref()).map(ToString::to_string).collect();
    let answer = match () {
        () if !refused.is_empty() => ChangeResult::Refused,
        () if quotes.iter().any(|quote| !quote.complete) => ChangeResult::None,
        () if granted.is_empty() => ChangeResult::BestEffort,
        () => ChangeResult::Granted,
    };
    let was = show::requested(before.form, before.within, before.loss);
    let (subscription, pattern) = (before.id.to_string(), before.pattern.to_string());
    let (node, after) = (before.node, was.clone());
    Ok(ChangeLine {
        subscription,
        pattern,
        node,
        before: was,
        asked,
        after,
        answer,
        granted,
        refused,
    })
}

/// Returns the options in `words`.
///
/// # Errors
/// Returns the reason if an option is unknown, or its value is wrong.
pub(crate) fn wish_in(words: &str) -> Result<WishArgs, String> {
    let read = Words::try_parse_from(words.split_whitespace());
    read.map(|Words { wish }| wish).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Returns the options in `words` and the subscription with this id.
fn wanted(node: &Node, id: &str, words: &str) -> anyhow::Result<(WishArgs, SubscriptionView)> {
    let wish = wish_in(words).map_err(exit::usage)?;
    if !wish.promises() && !wish.has_form() && !wish.is_elastic() {
        return Err(exit::usage(
            "\"set\" is empty: give --max-hz, --min-hz, --every, --size, --audio, --bitrate, --quality, --within, --loss or --importance",
        ));
    }
    let all = node.subscriptions();
    let Some(before) = all.into_iter().find(|it| it.id.to_string() == id) else {
        return Err(exit::refused(format!("there is no subscription {id}")));
    };
    Ok((wish, before))
}

impl ChangeLine {
    /// Returns the answer in words. `timeout` is the time for which the command waited.
    pub fn to_text(&self, timeout: Duration) -> String {
        let Self { pattern, node, before, asked, after, granted, refused, .. } = self;
        let answer = match self.answer {
            ChangeResult::BestEffort => String::new(),
            ChangeResult::Granted => format!("\n\tgranted: {}", granted.join("; ")),
            ChangeResult::Refused if after == before => {
                format!("\n\trefused: {}\n\tthe request is unchanged: {before}", refused.join("; "))
            }
            ChangeResult::Refused => {
                format!(
                    "\n\trefused: {}\n\tit receives nothing until there is room",
                    refused.join("; ")
                )
            }
            ChangeResult::Replaced => {
                "\n\treplaced: another request replaced it before the path answered".to_owned()
            }
            ChangeResult::None => format!(
                "\n\tno answer: the path did not answer within --timeout {}ms; the request is \
                 unchanged until it does",
                timeout.as_millis()
            ),
        };
        format!("{pattern} at {node}: {before} -> {asked}{answer}")
    }
}
