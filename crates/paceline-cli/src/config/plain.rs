//! Parses `[plain]`, `[[import]]` and `[[export]]`: the endpoints for plain Zenoh programs and the
//! rules for their samples. [`rules`] also reads `[[query]]`.

use super::query::{QUERY_KEYS, query};
use super::section::{Problems, Section};
use super::units;
use super::value::{hertz, text, text_error, truth, whole};
use crate::args;
use paceline::contract::{Audio, Form, Rate};
use paceline::{Encoding, LossTolerance, Pattern, Size};
use paceline_plain::{
    ExportRule, FreshRule, ImportRule, KEYS_DEFAULT, KEYS_MAX, KeyPattern, MESSAGE_BYTES_MAX,
    PlainConfig, RULES_MAX, Rules, Template,
};
use std::num::NonZeroU32;
use std::time::Duration;
use toml::de::DeValue;

/// The keys of each table.
pub(super) const PLAIN_KEYS: [&str; 3] = ["listen", "connect", "insecure"];
pub(super) const IMPORT_KEYS: [&str; 10] =
    ["key", "tag", "tokens", "keys", "max_hz", "max_bytes", "hz", "kind", "encoding", "loss"];
pub(super) const EXPORT_KEYS: [&str; 14] = [
    "tag",
    "key",
    "tokens",
    "always",
    "queries",
    "every",
    "max_hz",
    "size",
    "audio",
    "within",
    "loss",
    "fresh",
    "proxy",
    "retransmit",
];

const ENDPOINTS_MAX: usize = 64;

const PLAIN: &str = "plain must be a table: write [plain] above its keys";
const ENDPOINTS: &str = "must be a list of 1 to 64 endpoints, such as [\"tcp/localhost:7447\"]";
const INSECURE: &str = "must be true or false; true allows listening beyond this host without TLS";
const KEY: &str = "must be text: a key expression of Zenoh, such as \"robot/**\"";
const FRESH: &str = "must be text: the age limit of commands from 1us to 1h, and hold or zero, such as \"100ms:zero\"";
const TAG_OF: &str = "must be text with {key} for the key and {1} to {9} for its wildcard \
     matches; leave it out for \"{key}\"";
const KEYS: &str =
    "must be a whole number from 1 to 4096, the largest number of keys; leave it out for 256";
const IMPORT_MAX_HZ: &str = "must be a number from 0.001 to 1000000, the rate limit of each key \
     in samples per second; leave it out for no limit";
const MAX_BYTES: &str = "must be from 1B to 67MB, such as \"100kB\"; leave it out for 67MB";
const HZ: &str = "must be a number from 0.001 to 1000000, samples per second; leave it out if the \
     rate varies";
const KIND: &str = "must be \"data\", \"state\", \"picture\", \"audio\" or \"video\"; leave it \
     out to derive it from the encoding";
const ENCODING: &str = "must be text of 1 to 255 bytes, the media type of the samples, such as \
     \"image/jpeg\"; leave it out for the type in each sample";
const LOSS: &str = "must be text \"X/Y\", such as \"1/10\": of each Y samples at most X may be \
     late or lost; leave it out for the default";
const TAG: &str = "must be text: a tag or a pattern, such as \"robot/**\"";
const KEY_OF: &str = "must be text with {tag} for the tag and {1} to {9} for its wildcard \
     matches; leave it out for \"{tag}\"";
const ALWAYS: &str = "must be true or false; false subscribes only while a plain program \
     subscribes";
const TOKENS: &str = "must be true or false; true carries liveliness tokens instead of samples";
const QUERIES: &str = "must be true or false; true answers queries for the keys from pull buffers";
const EVERY: &str = "must be a whole number from 1 to 4294967295; 3 takes one sample in three";
const MAX_HZ: &str =
    "must be a number from 0.001 to 1000000, samples per second; leave it out for every sample";
const SIZE: &str = "must be text \"WIDTHxHEIGHT\", such as \"320x240\"; leave it out for the \
     original size";
const AUDIO: &str = "must be text \"RATExCHANNELS\", such as \"8000x1\"; leave it out for the \
     original sound";
const WITHIN: &str = "must be from 1ms to 24h, from publish to delivery, such as \"200ms\"; leave \
     it out for no bound";
const PROXY: &str =
    "must be \"publisher\", \"subscriber\", \"auto\" or \"node:NAME\"; leave it out for publisher";
const RETRANSMIT: &str =
    "must be \"none\", \"selective\" or \"go-back-n\"; leave it out for selective";

/// Reads the endpoints for plain programs, if the file has any.
pub(super) fn plain(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<PlainConfig> {
    let table = section.table("plain", PLAIN, &PLAIN_KEYS, problems)?;
    let endpoints = |key, problems: &mut Problems<'_>| {
        table.read_list(key, ENDPOINTS_MAX, ENDPOINTS, problems, args::plain_endpoint)
    };
    let plain = PlainConfig {
        listen: endpoints("listen", problems),
        connect: endpoints("connect", problems),
        insecure: table.read("insecure", problems, |value| truth(value, INSECURE)) == Some(true),
    };
    if let Err(error) = plain.check() {
        problems.add(&table.span_of("listen"), error.to_string());
    }
    Some(plain)
}

/// Reads the import, export and query rules.
pub(super) fn rules(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Rules {
    let before = problems.len();
    let import_tables = section.tables("import", &IMPORT_KEYS, problems);
    let export_tables = section.tables("export", &EXPORT_KEYS, problems);
    let query_tables = section.tables("query", &QUERY_KEYS, problems);
    for (name, tables) in
        [("imports", &import_tables), ("exports", &export_tables), ("queries", &query_tables)]
    {
        if let Some(first) = tables.get(RULES_MAX) {
            let given = tables.len();
            problems.add(
                &first.span,
                format!("{given} {name}: a node has at most {RULES_MAX}; one pattern can cover several keys"),
            );
        }
    }
    let imports = import_tables.iter().filter_map(|table| import(table, problems)).collect();
    let exports = export_tables.iter().filter_map(|table| export(table, problems)).collect();
    let queries = query_tables.iter().filter_map(|table| query(table, problems)).collect();
    let rules = Rules { imports, exports, queries };
    if problems.len() == before // a rule that cannot be read shifts the indices of the others
        && let Err(conflict) = paceline_plain::check(&rules)
    {
        let table = conflict.culprit().and_then(|(kind, place)| match kind {
            "import" => import_tables.get(place),
            "export" => export_tables.get(place),
            _ => query_tables.get(place),
        });
        let span = table.map_or_else(|| section.span.clone(), |table| table.span.clone());
        problems.add(&span, conflict.to_string());
    }
    rules
}

fn import(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<ImportRule> {
    if table.is_without("key") {
        problems.add(&table.span, format!("{}key is missing: it {KEY}", table.place));
    }
    let key =
        table.read("key", problems, |value| text(value, KEY, |it| text_error(KeyPattern::new(it))));
    let keys = u64::try_from(KEYS_MAX).unwrap_or(u64::MAX);
    let keys = table.read("keys", problems, |value| whole(value, keys, KEYS));
    let max_hz = table.read("max_hz", problems, |value| hertz(value, IMPORT_MAX_HZ));
    let bytes_max = table.read("max_bytes", problems, |value| {
        let most = u64::try_from(MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
        units::size(value, &(1..=most), MAX_BYTES)
    });
    let hz = table.read("hz", problems, |value| hertz(value, HZ));
    let kind = table.read("kind", problems, |value| {
        text(value, KIND, |it| args::kind(it).map_err(|_| KIND.to_owned()))
    });
    let encoding = table.read("encoding", problems, |value| {
        let fits = |it: &&str| (1..=255).contains(&it.len());
        value.as_str().filter(fits).map(Encoding::new).ok_or_else(|| ENCODING.to_owned())
    });
    let loss = table.read("loss", problems, loss);
    let tokens = table.read("tokens", problems, |value| truth(value, TOKENS)) == Some(true);
    let key = key?;
    let template = template(table, "tag", ("key", TAG_OF), &key, problems, |made| {
        // A pattern of tags has no wildcard inside a chunk; the actual tag is checked for each
        // sample.
        text_error(Pattern::new(&made.replace("$*", "x"))).map(|_| ())
    })?;
    if tokens && template.makes().is_ok_and(|made| made.as_str().contains('*')) {
        let what = format!(
            "{}tokens needs a tag without wildcards, such as tag = \"robot/@tokens\"",
            table.place
        );
        problems.add(&table.span_of("tokens"), what);
    }
    Some(ImportRule {
        tokens,
        keys: keys.and_then(|keys| usize::try_from(keys).ok()).unwrap_or(KEYS_DEFAULT),
        bytes_max,
        spacing: max_hz.map(|hz| Duration::from_secs_f64(1.0 / hz)),
        period: hz.map(|hz| Duration::from_secs_f64(1.0 / hz)),
        kind,
        encoding,
        loss,
        ..ImportRule::new(key, template)
    })
}

fn export(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<ExportRule> {
    if table.is_without("tag") {
        problems.add(&table.span, format!("{}tag is missing: it {TAG}", table.place));
    }
    let tag = table.read("tag", problems, |value| {
        text(value, TAG, |it| {
            text_error(Pattern::new(it))?;
            text_error(KeyPattern::new(it))
        })
    });
    let every = table.read("every", problems, |value| whole(value, u64::from(u32::MAX), EVERY));
    let max_hz = table.read("max_hz", problems, |value| hertz(value, MAX_HZ));
    let size = table.read("size", problems, |value| {
        text(value, SIZE, |it| args::size(it).map_err(|error| format!("{error}; {SIZE}")))
    });
    let audio = table.read("audio", problems, |value| text(value, AUDIO, args::audio));
    let within = table.read("within", problems, |value| units::time(value, WITHIN));
    let loss = table.read("loss", problems, loss);
    let fresh = table.read("fresh", problems, |value| {
        text(value, FRESH, |it| args::fresh(it).map_err(|error| format!("{error}; {FRESH}")))
    });
    let proxy = table.read("proxy", problems, |value| {
        text(value, PROXY, |it| args::proxy(it).map_err(|_| PROXY.to_owned()))
    });
    let retransmit = table.read("retransmit", problems, |value| {
        text(value, RETRANSMIT, |it| args::retransmit(it).map_err(|_| RETRANSMIT.to_owned()))
    });
    let always = table.read("always", problems, |value| truth(value, ALWAYS)) == Some(true);
    let tokens = table.read("tokens", problems, |value| truth(value, TOKENS)) == Some(true);
    let queries = table.read("queries", problems, |value| truth(value, QUERIES)) == Some(true);
    let tag = tag?;
    let key = template(table, "key", ("tag", KEY_OF), &tag, problems, |_| Ok(()))?;
    if queries && key.inverse().is_none() {
        let what = format!(
            "{}queries needs a key that determines the tag: name each wildcard of '{tag}' once, as a whole chunk",
            table.place
        );
        problems.add(&table.span_of("queries"), what);
    }
    let size = size.map(|size| Size { width: size.width, height: size.height });
    let audio = audio.map(|(rate, channels)| Audio { rate, channels });
    let rule = ExportRule::new(tag, key);
    Some(ExportRule {
        tokens,
        always,
        queries,
        form: Form { rate: rate(every, max_hz), size, audio, ..Form::FULL },
        within,
        loss,
        fresh: fresh.map(|args::FreshSpec { limit, zero }| FreshRule { limit, zero }),
        proxy: proxy.unwrap_or(rule.proxy),
        retransmit: retransmit.unwrap_or(rule.retransmit),
        ..rule
    })
}

/// Reads the template `key` of a rule, filled from `from`; `whole` is the placeholder for the
/// entire match. Also checks the names that the template can produce.
fn template(
    table: &Section<'_, '_>,
    key: &str,
    (whole, rule): (&'static str, &str),
    from: &KeyPattern,
    problems: &mut Problems<'_>,
    check: impl Fn(&str) -> Result<(), String>,
) -> Option<Template> {
    let read = |it: &str| {
        let template = text_error(Template::new(it, whole, from))?;
        check(text_error(template.makes())?.as_str())?;
        Ok(template)
    };
    if table.is_without(key) {
        return Template::new(&format!("{{{whole}}}"), whole, from).ok();
    }
    table.read(key, problems, |value| text(value, rule, read))
}

fn loss(value: &DeValue<'_>) -> Result<LossTolerance, String> {
    text(value, LOSS, |it| it.parse().map_err(|_| LOSS.to_owned()))
}

fn rate(every: Option<u64>, max_hz: Option<f64>) -> Rate {
    let every = every.and_then(|n| u32::try_from(n).ok()).and_then(NonZeroU32::new);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is 0.001 to 1,000,000"
    )]
    let max = max_hz.and_then(|hz| NonZeroU32::new((hz * 1_000.0).round() as u32));
    let counted = every.map_or(Rate::ALL, Rate::every);
    max.map_or(counted, |limit| counted.at_most(limit))
}
