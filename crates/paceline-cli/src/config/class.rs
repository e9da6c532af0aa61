//! Parses `[[link.class]]`: the classes of a link.

use super::section::{Problems, Section};
use super::value::{text, truth, whole};
use crate::args;
use paceline::class::{ClassPolice, ClassTree, Curves, LinkClass, Match};
use paceline::{Capacity, Pattern};
use paceline_sched::police::Police;
use paceline_tool::describe::curves;
use paceline_tool::describe::json::Json;
use serde_json::Number;
use toml::de::DeValue;

/// The error for a wrong discipline, of a class or a link.
pub(super) const POLICY: &str = "must be the name of a discipline, such as \"vds\", \"dwcs\" or \
     \"fifo\"; docs/reference/cli.md lists all; leave it out for vds";

/// The keys of a class.
pub(super) const CLASS_KEYS: [&str; 13] = [
    "name",
    "parent",
    "share",
    "real_time",
    "link_share",
    "upper_limit",
    "discipline",
    "peers",
    "nodes",
    "tags",
    "best_effort",
    "per_peer",
    "police",
];

/// The largest number of entries in a list of names or tags.
const LIST_MAX: usize = 64;

const NAME: &str = "must be text of 1 to 64 bytes without control characters, such as \"video\"";
const PARENT: &str = "must be the name of another class of the link; leave it out for a class \
     directly below the link";
const SHARE: &str = "must be a whole number from 1 to 100, percent of the bandwidth of the class \
     above; leave it out for an equal share of the rest";
const NAMES: &str = "must be a list of 1 to 64 names of nodes, such as [\"operator\"]; leave it \
     out for any";
const TAGS: &str = "must be a list of 1 to 64 tags or patterns, such as [\"robot/**\"]; leave it \
     out for any";
const BEST_EFFORT: &str = "must be true for streams without a contract, or false for streams with \
     one; leave it out for both";
const PER_PEER: &str = "must be true or false; true gives each next hop its own class below this \
     one";
const POLICE: &str = "must be text such as \"leaky:20kB,400kbit + leaky:100p,500p/s else drop\"; \
     docs/concepts/policing.md lists all forms; leave it out for no limit";

/// Reads the classes of `link`, which has this capacity.
pub(super) fn read(
    link: &Section<'_, '_>,
    capacity: Option<Capacity>,
    problems: &mut Problems<'_>,
) -> Vec<LinkClass> {
    let tables = link.tables("class", &CLASS_KEYS, problems);
    let classes: Vec<LinkClass> = tables.iter().map(|table| class(table, problems)).collect();
    if classes.is_empty() || !problems.is_empty() {
        return classes; // a class that cannot be read would cause misleading errors
    }
    if let Err(error) = ClassTree::new(classes.clone(), capacity) {
        let named = classes.iter().rposition(|class| class.name == error.class);
        let span = named.and_then(|place| tables.get(place)).map(|table| table.span_of(error.key));
        problems.add(&span.unwrap_or_else(|| link.span.clone()), format!("{}{error}", link.place));
    }
    classes
}

fn class(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> LinkClass {
    if table.is_without("name") {
        problems.add(&table.span, format!("{}name is missing: it {NAME}", table.place));
    }
    let name = |value: &DeValue<'_>, rule: &str| text(value, rule, |text| Ok(text.to_owned()));
    let list = |key, problems: &mut Problems<'_>| {
        table.read_list(key, LIST_MAX, NAMES, problems, |name| Ok(name.to_owned()))
    };
    let tag = |text: &str| Pattern::new(text).map_err(|error| error.to_string());
    let best_effort = table.read("best_effort", problems, |value| truth(value, BEST_EFFORT));
    LinkClass {
        name: table.read("name", problems, |value| name(value, NAME)).unwrap_or_default(),
        parent: table.read("parent", problems, |value| name(value, PARENT)),
        share: table
            .read("share", problems, |value| whole(value, 100, SHARE))
            .and_then(|share| u32::try_from(share).ok()),
        curves: Curves {
            real_time: curve(table, "real_time", problems),
            link_share: curve(table, "link_share", problems),
            upper_limit: curve(table, "upper_limit", problems),
        },
        policy: table.read("discipline", problems, |value| {
            text(value, POLICY, |name| args::policy(name).map_err(|_| POLICY.to_owned()))
        }),
        wants: Match {
            peers: list("peers", problems),
            nodes: list("nodes", problems),
            tags: table.read_list("tags", LIST_MAX, TAGS, problems, tag),
            contracted: best_effort.map(|best_effort| !best_effort),
        },
        per_peer: table.read("per_peer", problems, |value| truth(value, PER_PEER)) == Some(true),
        police: table.read("police", problems, |value| {
            text(value, POLICE, |text| {
                let police = text.parse::<Police>().map_err(|error| error.to_string())?;
                Ok(ClassPolice::from(&police))
            })
        }),
    }
}

/// Reads a service curve in the same form as `paceline-lab schedule`.
fn curve(
    table: &Section<'_, '_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<paceline::class::Curve> {
    table.read(key, problems, |value| curves::value_of("the curve", json(value)))
}

/// Converts a TOML value to JSON.
fn json(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => Json::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = |radix| i64::from_str_radix(number.as_str(), radix).ok();
            digits(number.radix()).map_or(Json::Null, |number| {
                Json::Number(u64::try_from(number).map_or_else(|_| number.into(), Number::from))
            })
        }
        DeValue::Float(number) => {
            let float = number.as_str().parse().ok().and_then(Number::from_f64);
            float.map_or(Json::Null, Json::Number)
        }
        DeValue::Boolean(truth) => Json::Bool(*truth),
        DeValue::Datetime(time) => Json::Text(time.to_string()),
        DeValue::Array(list) => Json::List(list.iter().map(|item| json(item.get_ref())).collect()),
        DeValue::Table(table) => {
            let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| entry(key, value);
            Json::Object(table.iter().map(entry).collect())
        }
    }
}

fn entry(
    key: &toml::Spanned<std::borrow::Cow<'_, str>>,
    value: &toml::Spanned<DeValue<'_>>,
) -> (String, Json) {
    (key.get_ref().to_string(), json(value.get_ref()))
}
