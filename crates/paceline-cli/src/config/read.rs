//! Converts TOML to a configuration. Each error names the key, its range and a fix.

use super::Config;
use super::class;
use super::clock;
use super::plain;
use super::section::{Problems, Section};
use super::source;
use super::units;
use super::value::{text, truth, whole};
use crate::args::{self, BufferSpec, LinkSpec, MediumSpec, TlsSpec};
use paceline::pull::History;
use paceline::{LinkCapacity, Node, NodeBuilder, Pattern};
use paceline_http::HttpFiles;
use paceline_tool::log;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The keys of the file, of a link and of a buffer.
pub(super) const KEYS: [&str; 26] = [
    "name",
    "runtime_dir",
    "isolated",
    "log",
    "http",
    "foxglove",
    "rtsp",
    "rtsp_login",
    "webrtc",
    "http_tls_cert",
    "http_tls_key",
    "http_tokens",
    "processor_percent",
    "host_buffer",
    "neighbour_memory",
    "realtime",
    "policy",
    "token",
    "clock",
    "link",
    "buffer",
    "source",
    "plain",
    "import",
    "export",
    "query",
];
pub(super) const LINK_KEYS: [&str; 17] = [
    "name",
    "listen",
    "connect",
    "capacity",
    "medium",
    "medium_capacity",
    "medium_access",
    "policy",
    "tls_cert",
    "tls_key",
    "tls_ca",
    "proxy",
    "multicast",
    "ordered",
    "insecure",
    "class",
    "buffer",
];
pub(super) const BUFFER_KEYS: [&str; 4] = ["pattern", "samples", "bytes", "age"];

/// The largest number of buffers of a node, and of endpoints of a link in each direction.
const BUFFERS_MAX: usize = 64;
const FOXGLOVE: &str = "must be text: an address of this host with a port, such as \"127.0.0.1:8765\"; leave it out for none";
const RTSP: &str =
    "must be text: an address with a port, such as \"127.0.0.1:8554\"; leave it out for none";
const WEBRTC: &str = "must be text: a UDP address with a port, and public addresses of this host, such as \
     \"0.0.0.0:8471,public=203.0.113.7\"; leave it out for none";
const RTSP_LOGIN: &str =
    "must be the absolute path of a file with USER:PASSWORD, such as \"/etc/paceline/players\"";
const ENDPOINTS_MAX: usize = 64;
const SAMPLES_MAX: u64 = 1_000_000;
const BYTES_MAX: u64 = 1 << 32;
const HOST_BUFFER: &str =
    "must be from 1B to 1000000000000B, such as \"64MB\"; leave it out for 1GB";
const NEIGHBOUR_MEMORY: &str =
    "must be from 32MB to 1000000000000B, such as \"64MB\"; leave it out for 134MB";
const ACCESS: &str = "must be text: a time from 0ms to 1s, such as \"16ms\"; leave it out for none";
/// The largest buffer of a link or of a host.
const LINK_BUFFER_MAX: u64 = 1_000_000_000_000;

const NAME: &str = args::NAME;
const RUNTIME_DIR: &str = "must be an absolute path of 2 to 97 bytes, as text; leave it out for \
     $XDG_RUNTIME_DIR/paceline, or for a folder below /tmp";
const ISOLATED: &str = "must be true or false; false joins the other processes of this host";
const TLS_FILE: &str = "must be the path of a file in PEM format";
const INSECURE: &str = "must be true or false; true allows listening beyond this host without TLS";
const MULTICAST: &str =
    "must be a network of IPv4 multicast addresses and a port, such as \"239.77.0.0/24:7400\"";
const ORDERED: &str = "must be true or false; true delivers everything in order over QUIC";
const PROXY: &str = "must be text: http://HOST:PORT or http://USER:PASSWORD@HOST:PORT";
const TLS_PATH: &str = "must be the absolute path of a file in PEM format";
const TOKENS: &str =
    "must be the absolute path of a file with lines 'read TOKEN' and 'change TOKEN'";
const POLICY: &str =
    "must be the absolute path of a policy file, such as \"/etc/paceline/policy.toml\"";
const TOKEN: &str =
    "must be the absolute path of a file with a token, such as \"/etc/paceline/token\"";
const HTTP: &str = "must be text: an address of this host with a port, such as \"127.0.0.1:8470\"; leave it out for none";
const ENDPOINTS: &str = "must be a list of 1 to 64 endpoints, such as [\"tcp/127.0.0.1:7600\"]";
const REALTIME: &str = "must be true or false: real-time priorities for the threads of the node";
const PERCENT: &str = "must be a whole number from 0 to 6400: 100 is one processor, 0 charges nothing; \
     leave it out for 50";
const CAPACITY: &str = "must be text with a number above 0 and a unit, such as \"2mbit\", or \"auto\"; leave \
     it out for a link without a capacity";
const LINK_BUFFER: &str =
    "must be from 1B to 1000000000000B, such as \"16MB\"; leave it out for 256MB";
const PATTERN: &str = "must be text: a tag or a pattern, such as \"robot/**\"";
const SAMPLES: &str = "must be a whole number from 1 to 1000000; leave it out for no limit except \
     bytes and age, or for 1000 without those";
const BYTES: &str = "must be from 1B to 4294967296B, such as \"64MB\"; leave it out for 268435456B";

/// Parses `text` from `file`; the error lists every mistake, one per line.
pub(super) fn read(text: &str, file: &str) -> Result<Config, String> {
    let mut problems = Problems::new(file, text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        let shown = problems.shown(&span);
        problems.add(
            &span,
            match error.message() {
                "duplicate key" => format!("{shown} is given twice: keep one"),
                what => format!("not TOML at '{shown}': {what}"),
            },
        );
    }
    if !problems.is_empty() {
        return Err(problems.render());
    }
    let span = document.span();
    let section = Section::new(String::new(), span, document.get_ref(), &KEYS, &mut problems);
    let config = config(&section, &mut problems);
    if problems.is_empty() { Ok(config) } else { Err(problems.render()) }
}

fn config(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Config {
    Config {
        name: section.read("name", problems, |value| name(value, "the host name")),
        runtime_dir: section.read("runtime_dir", problems, runtime_dir),
        isolated: section.read("isolated", problems, |value| truth(value, ISOLATED)) == Some(true),
        log: section.read("log", problems, |value| {
            let text = value.as_str().ok_or_else(|| log::RULE.to_owned())?;
            log::check(text).map(|()| text.to_owned())
        }),
        http: section.read("http", problems, |value| text(value, HTTP, str::parse)),
        foxglove: section.read("foxglove", problems, |value| text(value, FOXGLOVE, str::parse)),
        rtsp: section.read("rtsp", problems, |value| text(value, RTSP, str::parse)),
        rtsp_login: section.read("rtsp_login", problems, |value| file(value, RTSP_LOGIN)),
        webrtc: section.read("webrtc", problems, |value| text(value, WEBRTC, str::parse)),
        http_files: HttpFiles {
            cert: section.read("http_tls_cert", problems, |value| file(value, TLS_PATH)),
            key: section.read("http_tls_key", problems, |value| file(value, TLS_PATH)),
            tokens: section.read("http_tokens", problems, |value| file(value, TOKENS)),
        },
        processor_percent: section.read("processor_percent", problems, percent),
        host_buffer: section.read("host_buffer", problems, |value| {
            units::size(value, &(1..=LINK_BUFFER_MAX), HOST_BUFFER)
        }),
        neighbour_memory: section.read("neighbour_memory", problems, |value| {
            let range = NodeBuilder::NEIGHBOUR_MEMORY_MIN..=LINK_BUFFER_MAX;
            units::size(value, &range, NEIGHBOUR_MEMORY)
        }),
        realtime: section.read("realtime", problems, |value| truth(value, REALTIME)),
        policy: section.read("policy", problems, |value| file(value, POLICY)),
        token: section.read("token", problems, |value| file(value, TOKEN)),
        clock: clock::clock(section, problems),
        links: links(section, problems),
        buffers: buffers(section, problems),
        sources: source::sources(section, problems),
        plain: plain::plain(section, problems),
        rules: plain::rules(section, problems),
    }
}

fn name(value: &DeValue<'_>, without: &str) -> Result<String, String> {
    let named = value.as_str().ok_or_else(|| NAME.to_owned()).and_then(args::name);
    named.map_err(|rule| format!("{rule}; leave it out for {without}"))
}

fn runtime_dir(value: &DeValue<'_>) -> Result<PathBuf, String> {
    let fits = |text: &&str| (2..=97).contains(&text.len()) && Path::new(text).is_absolute();
    value.as_str().filter(fits).map(PathBuf::from).ok_or_else(|| RUNTIME_DIR.to_owned())
}

fn file(value: &DeValue<'_>, rule: &str) -> Result<PathBuf, String> {
    let path = value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
    path.ok_or_else(|| rule.to_owned())
}

fn percent(value: &DeValue<'_>) -> Result<u32, String> {
    let none = value.as_integer().is_some_and(|number| number.as_str() == "0");
    let percent = if none { 0 } else { whole(value, 6_400, PERCENT)? };
    u32::try_from(percent).map_err(|_| PERCENT.to_owned())
}

fn links(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Vec<LinkSpec> {
    let tables = section.tables("link", &LINK_KEYS, problems);
    if let Some(first) = tables.get(Node::LINKS_MAX) {
        let given = tables.len();
        problems.add(
            &first.span,
            format!(
                "{given} links, a node has at most {max}; one link can have several endpoints",
                max = Node::LINKS_MAX
            ),
        );
    }
    let links: Vec<LinkSpec> = tables.iter().map(|table| link(table, problems)).collect();
    for (at, table) in tables.iter().enumerate().skip(1) {
        let named = |at: usize| links.get(at).map(|link| link.name(at + 1));
        let name = named(at).unwrap_or_default();
        if (0..at).any(|before| named(before).as_ref() == Some(&name)) {
            problems.add(
                &table.span_of("name"),
                format!("two links are named '{name}'; give each link a unique name"),
            );
        }
    }
    links
}

fn link(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> LinkSpec {
    let endpoints = |key, problems: &mut Problems<'_>| {
        table.read_list(key, ENDPOINTS_MAX, ENDPOINTS, problems, args::endpoint)
    };
    if table.is_without("listen") && table.is_without("connect") {
        problems.add(
            &table.span,
            format!(
                "{}no endpoint: give listen = [\"tcp/127.0.0.1:7600\"] or \
                 connect = [\"tcp/HOST:7600\"]",
                table.place
            ),
        );
    }
    let capacity = table.read("capacity", problems, |value| {
        args::link_capacity(&units::written(value).ok_or_else(|| CAPACITY.to_owned())?)
    });
    let medium = medium(table, capacity, problems);
    let mut file = |key| {
        let path = table.read(key, problems, |value| text(value, TLS_FILE, |it| Ok(it.to_owned())));
        path.map(PathBuf::from)
    };
    let tls = TlsSpec { cert: file("tls_cert"), key: file("tls_key"), ca: file("tls_ca") };
    if let Some(lacking) = tls.lacks() {
        problems.add(
            &table.span,
            format!("{lacking} is missing: give tls_cert, tls_key and tls_ca together"),
        );
    }
    LinkSpec {
        tls,
        name: table.read("name", problems, |value| name(value, "link1 or link2")),
        listen: endpoints("listen", problems),
        connect: endpoints("connect", problems),
        capacity,
        medium,
        buffer: table.read("buffer", problems, |value| {
            units::size(value, &(1..=LINK_BUFFER_MAX), LINK_BUFFER)
        }),
        classes: class::read(table, capacity.map(|capacity| capacity.first()), problems),
        policy: table
            .read("policy", problems, |value| {
                text(value, class::POLICY, |name| {
                    args::policy(name).map_err(|_| class::POLICY.to_owned())
                })
            })
            .unwrap_or_default(),
        proxy: table.read("proxy", problems, |value| text(value, PROXY, |it| Ok(it.to_owned()))),
        multicast: table.read("multicast", problems, |value| text(value, MULTICAST, str::parse)),
        ordered: table.read("ordered", problems, |value| truth(value, ORDERED)) == Some(true),
        insecure: table.read("insecure", problems, |value| truth(value, INSECURE)) == Some(true),
    }
}

/// Reads the medium of a link with this capacity.
fn medium(
    table: &Section<'_, '_>,
    capacity: Option<LinkCapacity>,
    problems: &mut Problems<'_>,
) -> MediumSpec {
    let medium = MediumSpec {
        name: table.read("medium", problems, |value| name(value, "field-radio")),
        capacity: table.read("medium_capacity", problems, |value| {
            args::medium_capacity(&units::written(value).ok_or_else(|| CAPACITY.to_owned())?)
        }),
        access: table.read("medium_access", problems, |value| text(value, ACCESS, args::access)),
    };
    if let Err(what) = medium.of(capacity) {
        problems.add(&table.span, format!("{}{what}", table.place));
    }
    medium
}

fn buffers(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Vec<BufferSpec> {
    let tables = section.tables("buffer", &BUFFER_KEYS, problems);
    if let Some(first) = tables.get(BUFFERS_MAX) {
        let given = tables.len();
        problems.add(
            &first.span,
            format!("{given} buffers, a node has at most {BUFFERS_MAX}; one pattern can cover several tags"),
        );
    }
    let mut buffers: Vec<BufferSpec> = Vec::new();
    for table in &tables {
        let Some(buffer) = buffer(table, problems) else { continue };
        if buffers.iter().any(|before| before.pattern == buffer.pattern) {
            let pattern = &buffer.pattern;
            problems.add(
                &table.span_of("pattern"),
                format!("two buffers have the pattern '{pattern}': keep one"),
            );
        }
        buffers.push(buffer);
    }
    buffers
}

fn buffer(table: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<BufferSpec> {
    if table.is_without("pattern") {
        problems.add(&table.span, format!("{}pattern is missing: it {PATTERN}", table.place));
    }
    let samples = table.read("samples", problems, |value| whole(value, SAMPLES_MAX, SAMPLES));
    let bytes = table.read("bytes", problems, |value| units::size(value, &(1..=BYTES_MAX), BYTES));
    let age = table.read("age", problems, |value| units::time(value, units::AGE));
    let pattern = table.read("pattern", problems, |value| {
        text(value, PATTERN, |text| Pattern::new(text).map_err(|error| error.to_string()))
    })?;
    let mut history = History::new();
    if let Some(samples) = samples.and_then(|samples| usize::try_from(samples).ok()) {
        history = history.samples(samples);
    }
    if let Some(bytes) = bytes {
        history = history.bytes(bytes);
    }
    if let Some(age) = age {
        history = history.age(age);
    }
    history.limits().ok()?;
    Some(BufferSpec { pattern, history })
}
