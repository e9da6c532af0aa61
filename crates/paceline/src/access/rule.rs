//! The fields of a rule, in policy files and in the claims of tokens.

use paceline_proto::Pattern;
use paceline_proto::control::IMPORTANCE_MAX;
use paceline_proto::rights::{GrantedTags, Quotas, RuleRights};
use paceline_sched::{Duration, units};
use serde_json::{Map, Value};

/// The most tags or peers in one list.
const LIST_MAX: usize = 1_024;

/// The fields of a table. Each is taken once, and none may be left over.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) const fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Takes a field and reads it; `None` if it is missing.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str, Value) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.0.remove(name).map(|value| read(name, value)).transpose()
    }

    /// Errors if a field is left.
    pub(super) fn finish(self, known: &str) -> Result<(), String> {
        match self.0.keys().next() {
            Some(unknown) => Err(format!("{unknown} is unknown; the fields are {known}")),
            None => Ok(()),
        }
    }
}

fn wrong(name: &str, value: &Value, rule: &str) -> String {
    format!("{name} = {value}: must be {rule}")
}

pub(super) fn text(name: &str, value: Value) -> Result<String, String> {
    let text = value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text.ok_or_else(|| wrong(name, &value, "text in quotes"))
}

/// Reads a list of texts; a single text is a list of one.
pub(super) fn texts(name: &str, value: Value) -> Result<Vec<String>, String> {
    let Value::Array(list) = value else { return Ok(vec![text(name, value)?]) };
    if list.len() > LIST_MAX {
        return Err(format!("{name}: {} entries; must be at most {LIST_MAX}", list.len()));
    }
    list.into_iter().map(|value| text(name, value)).collect()
}

fn patterns(name: &str, value: Value) -> Result<Vec<Pattern>, String> {
    let each = |text: String| {
        let pattern = Pattern::new(&text).map_err(|error| format!("{name}: {error}"))?;
        if pattern.is_private() {
            return Err(format!("{name} = \"{text}\": tags that begin with @ are internal"));
        }
        Ok(pattern)
    };
    texts(name, value)?.into_iter().map(each).collect()
}

fn truth(name: &str, value: Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wrong(name, &value, "true or false"))
}

fn whole(name: &str, value: Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| wrong(name, &value, "a whole number, such as 8"))
}

fn importance(name: &str, value: Value) -> Result<u8, String> {
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
    let number = number.filter(|number| *number <= IMPORTANCE_MAX);
    number.ok_or_else(|| wrong(name, &value, "a whole number from 0 to 100, such as 60"))
}

fn hertz(name: &str, value: Value) -> Result<u64, String> {
    let rule = "a rate above 0, such as \"30Hz\"";
    let text = value.as_str().ok_or_else(|| wrong(name, &value, rule))?;
    let number = text.trim().strip_suffix("Hz").unwrap_or(text).trim();
    match units::scaled(number, 1_000) {
        Some((millihertz, _)) if millihertz > 0 => Ok(millihertz),
        _ => Err(wrong(name, &value, rule)),
    }
}

fn bits(name: &str, value: Value) -> Result<u64, String> {
    let text =
        value.as_str().ok_or_else(|| wrong(name, &value, "a bit rate, such as \"2mbit\""))?;
    let bits = units::rate(text).map_err(|error| format!("{name}: {error}"))?;
    Ok(bits / 8)
}

fn percent(name: &str, value: Value) -> Result<u8, String> {
    let text = value.as_str().and_then(|text| text.trim().strip_suffix('%')).map(str::trim);
    let number = text.and_then(|text| text.parse().ok()).filter(|number| *number <= 100);
    number.ok_or_else(|| wrong(name, &value, "a part of a link, from \"0%\" to \"100%\""))
}

fn time(name: &str, value: Value) -> Result<Duration, String> {
    let text = value.as_str().ok_or_else(|| wrong(name, &value, "a time, such as \"20ms\""))?;
    units::duration(text).map_err(|error| format!("{name}: {error}"))
}

/// The names of the fields of a rule, for error messages.
const FIELDS: &str = "peers, publish, subscribe, pull, set, observe, relay, rate, bandwidth, share, within, \
                      streams and importance";

/// Reads the rights of a rule.
pub(super) fn rule(mut fields: Fields) -> Result<RuleRights, String> {
    let tags = GrantedTags {
        publish: fields.take("publish", patterns)?.unwrap_or_default(),
        subscribe: fields.take("subscribe", patterns)?.unwrap_or_default(),
        pull: fields.take("pull", patterns)?.unwrap_or_default(),
        set: fields.take("set", patterns)?.unwrap_or_default(),
    };
    let observe = fields.take("observe", truth)?.unwrap_or_default();
    let relay = fields.take("relay", truth)?.unwrap_or_default();
    let quotas = Quotas {
        max_millihertz: fields.take("rate", hertz)?,
        bytes_per_s: fields.take("bandwidth", bits)?,
        share_percent: fields.take("share", percent)?,
        within_min: fields.take("within", time)?,
        streams: fields.take("streams", whole)?,
        importance_max: fields.take("importance", importance)?,
    };
    fields.finish(FIELDS)?;
    Ok(RuleRights { tags, observe, relay, quotas })
}
