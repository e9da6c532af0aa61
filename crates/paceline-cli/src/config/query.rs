//! Parses `[[query]]`: queries from plain Zenoh programs at one node to programs at another.

use super::section::{Problems, Section};
use super::units;
use super::value::{hertz, text, text_error, truth, whole};
use paceline::Pattern;
use paceline_plain::{KeyPattern, MESSAGE_BYTES_MAX, QUERIES_MAX, QueryRule};
use std::time::Duration;

/// The keys of the table.
pub(super) const QUERY_KEYS: [&str; 9] =
    ["key", "tag", "asks", "answers", "timeout", "max_bytes", "at_once", "within", "hz"];

/// The size limit of the tag. The node appends a chunk with the purpose and its id.
const TAG_BYTES_MAX: usize = 200;

const KEY: &str = "must be text: a key expression of Zenoh, such as \"robot/**\"";
const TAG: &str = "must be text of at most 200 bytes without wildcards: the tag of queries \
     between nodes, the same on all of them; leave it out for \"queries\"";
const ASKS: &str = "must be true or false; false blocks queries from programs here to programs \
     elsewhere";
const ANSWERS: &str = "must be true or false; false blocks queries from programs elsewhere to \
     programs here";
const TIMEOUT: &str = "must be from 1ms to 24h, the time limit of a query; leave it out for 10s";
const MAX_BYTES: &str =
    "must be from 1kB to 67MB, the size limit of a query and of an answer; leave it out for 1MB";
const AT_ONCE: &str =
    "must be a whole number from 1 to 4096, the limit of concurrent queries; leave it out for 64";
const WITHIN: &str = "must be from 1ms to 24h, the delay bound of each query and each answer, \
     such as \"50ms\"; leave it out for no bound";
const HZ: &str = "must be a number from 0.001 to 1000000, the queries or answers per second that \
     the delay bound covers; leave it out if the rate is unknown";

pub(super) fn query(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<QueryRule> {
    if table.is_without("key") {
        problems.add(&table.span, format!("{}key is missing: it {KEY}", table.place));
    }
    let key =
        table.read("key", problems, |value| text(value, KEY, |it| text_error(KeyPattern::new(it))));
    let tag = table.read("tag", problems, |value| {
        text(value, TAG, |it| {
            let pattern = text_error(Pattern::new(it))?;
            let fits = pattern.is_tag() && !pattern.is_private() && it.len() <= TAG_BYTES_MAX;
            fits.then(|| it.to_owned()).ok_or_else(|| TAG.to_owned())
        })
    });
    let asks = table.read("asks", problems, |value| truth(value, ASKS));
    let answers = table.read("answers", problems, |value| truth(value, ANSWERS));
    if (asks, answers) == (Some(false), Some(false)) {
        let what = format!(
            "{}asks and answers are both false, so the rule carries nothing: set \
             one to true",
            table.place
        );
        problems.add(&table.span_of("answers"), what);
    }
    let timeout = table.read("timeout", problems, |value| units::time(value, TIMEOUT));
    let within = table.read("within", problems, |value| units::time(value, WITHIN));
    let bytes_max = table.read("max_bytes", problems, |value| {
        let most = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
        units::size(value, &(1_000..=most), MAX_BYTES)
    });
    let most = u64::try_from(QUERIES_MAX).unwrap_or(u64::MAX);
    let at_once = table.read("at_once", problems, |value| whole(value, most, AT_ONCE));
    let hz = table.read("hz", problems, |value| hertz(value, HZ));
    let rule = QueryRule::new(key?);
    Some(QueryRule {
        tag: tag.unwrap_or(rule.tag),
        asks: asks.unwrap_or(rule.asks),
        answers: answers.unwrap_or(rule.answers),
        patience: timeout.unwrap_or(rule.patience),
        bytes_max: bytes_max.unwrap_or(rule.bytes_max),
        at_once: at_once.and_then(|n| usize::try_from(n).ok()).unwrap_or(rule.at_once),
        within,
        period: hz.map(|hz| Duration::from_secs_f64(1.0 / hz)),
        key: rule.key,
    })
}
