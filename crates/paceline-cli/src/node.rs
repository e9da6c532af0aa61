//! `paceline node`: a standalone node, as a daemon or in a terminal.

mod buffers;
mod plain;
mod reload;
mod sources;
mod unit;

use crate::args::BufferSpec;
use crate::config::TEMPLATE;
use crate::config::{NodeArgs, Settings};
use crate::doctor::calibration;
use crate::notify::Notify;
use buffers::Buffers;
use paceline::{LinkCapacity, Node};
use paceline_http::{
    Access, HttpAddress, HttpServer, Neighbours, OwnSource, RtspAddress, RtspServer, WebrtcAddress,
    WebrtcServer, read_login,
};
use paceline_tool::stop::{Hangup, STOP_SLICE, Stop};
use paceline_tool::{log, show};
use plain::{PlainLine, PlainSide};
use serde::Serialize;
use sources::Sources;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `paceline node`.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeCommand {
    /// Prints the node's id, name and links as one line of JSON
    #[arg(long)]
    json: bool,
    /// Prints a configuration file with every key, its meaning, range and default, and exits
    #[arg(long, exclusive = true)]
    print_config: bool,
    /// Checks the configuration file without opening anything, and exits
    #[arg(long, conflicts_with_all = ["json", "print_config", "print_unit"])]
    check_config: bool,
    /// Prints a systemd unit that runs the node as a daemon, and exits
    #[arg(long, exclusive = true)]
    print_unit: bool,
    /// Buffers samples of a tag or pattern for others to pull: robot/**=samples=100,bytes=10MB,age=60s
    #[arg(long, value_name = "PATTERN=LIMITS")]
    buffer: Vec<BufferSpec>,
    /// Serves the dashboard, its API and metrics at a local address such as 127.0.0.1:8470
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// Serves the topics to Foxglove at a local address such as 127.0.0.1:8765
    #[arg(long, value_name = "ADDRESS")]
    foxglove: Option<HttpAddress>,
    /// Serves the tags to players of RTSP at an address such as 127.0.0.1:8554: rtsp://127.0.0.1:8554/robot/camera?max_hz=10
    #[arg(long, value_name = "ADDRESS")]
    rtsp: Option<RtspAddress>,
    /// File with the USER:PASSWORD that players give; other hosts reach --rtsp only with one
    #[arg(long, value_name = "FILE")]
    rtsp_login: Option<PathBuf>,
    /// Serves the tags to browsers by WebRTC over UDP at this address, at --http: POST /whep/robot/camera?max_hz=10
    #[arg(long, value_name = "ADDRESS[,public=IP]")]
    webrtc: Option<WebrtcAddress>,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Serialize)]
struct NodeLine {
    id: String,
    name: String,
    links: Vec<LinkLine>,
    buffers: Vec<BufferLine>,
    http: Option<String>,
    foxglove: Option<String>,
    /// The tags that the node publishes itself.
    sources: Vec<String>,
    rtsp: Option<String>,
    /// The UDP addresses that browsers try.
    webrtc: Vec<String>,
    plain: Option<PlainLine>,
}

#[derive(Serialize)]
struct LinkLine {
    name: String,
    listen: Vec<String>,
    connect: Vec<String>,
    capacity_bits_per_s: Option<u64>,
    /// The range of a measured capacity.
    measured: Option<String>,
    policy: String,
}

#[derive(Serialize)]
struct BufferLine {
    pattern: String,
    samples_max: usize,
    bytes_max: u64,
    age_max_us: u64,
}

/// Runs a node until a signal ends it.
pub(crate) fn run(args: &NodeCommand) -> anyhow::Result<ExitCode> {
    if args.print_config {
        show::text(TEMPLATE)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.print_unit {
        return unit::print();
    }
    let mut settings = args.settings()?;
    if args.check_config {
        return check(&settings);
    }
    log::configure(settings.log.as_deref());
    let stop = Stop::on_signals()?;
    let hangup = Hangup::watch()?;
    let notify = Notify::from_env();
    sources::check(&settings.sources)?;
    settings.processor = calibration::budget(settings.processor_percent);
    let node = settings.open()?;
    let mut parts = Parts::open(&node, &settings)?;
    let webrtc = settings.webrtc.as_ref().map(|address| WebrtcServer::start(address, &node));
    let webrtc = webrtc.transpose()?;
    let candidates = webrtc.iter().flat_map(WebrtcServer::addresses).map(ToString::to_string);
    let candidates = candidates.collect();
    let [http, foxglove] = servers(&node, &settings, webrtc)?;
    let rtsp = players(&node, &settings)?;
    let line = NodeLine {
        http: http.as_ref().map(HttpServer::url),
        foxglove: foxglove.as_ref().map(HttpServer::url),
        rtsp: rtsp.as_ref().map(RtspServer::url),
        webrtc: candidates,
        ..NodeLine::new(&node, &settings)
    };
    if args.json {
        show::json(&line)?
    } else {
        show::line(&describe(&line))?
    }
    notify.ready(&describe(&line));
    serve(args, (settings, &mut parts), &node, (&stop, &hangup, &notify));
    notify.stopping();
    drop((http, foxglove, rtsp, parts));
    let fault = node.fault().map(str::to_owned);
    node.close();
    // An error exit lets the supervisor restart the node.
    fault.map_or(Ok(ExitCode::SUCCESS), |fault| Err(anyhow::anyhow!(fault)))
}

/// The parts of the node that a new configuration changes. Dropping them closes them.
#[derive(Default)]
struct Parts {
    buffers: Buffers,
    plain: PlainSide,
    sources: Sources,
}

impl Parts {
    fn open(node: &Node, settings: &Settings) -> anyhow::Result<Self> {
        let mut parts = Self::default();
        parts.buffers.set(node, &settings.buffers)?;
        parts.plain.set(node, settings)?;
        parts.sources.set(node, &settings.sources);
        Ok(parts)
    }
}

/// Waits for a signal or for the panic of a node thread; reloads the configuration on each SIGHUP.
fn serve(
    args: &NodeCommand,
    (mut settings, parts): (Settings, &mut Parts),
    node: &Node,
    (stop, hangup, notify): (&Stop, &Hangup, &Notify),
) {
    while !stop.wait_until(Instant::now() + STOP_SLICE) {
        if node.fault().is_some() {
            break;
        }
        parts.plain.count_given_up(node);
        if !hangup.take() {
            continue;
        }
        if hangup.lost_terminal() {
            break;
        }
        notify.reloading();
        reload::reload(args.settings(), &mut settings, parts, node);
        notify.ready(&describe(&NodeLine::new(node, &settings)));
    }
}

/// Checks the configuration and prints a summary of it.
fn check(settings: &Settings) -> anyhow::Result<ExitCode> {
    settings.check()?;
    sources::check(&settings.sources)?;
    let Some(file) = &settings.file else {
        show::line("no configuration file: all defaults apply")?;
        return Ok(ExitCode::SUCCESS);
    };
    let (links, buffers) = (settings.links.len(), settings.buffers.len());
    let sources = settings.sources.len();
    let (imports, exports) = (settings.rules.imports.len(), settings.rules.exports.len());
    let rules = if settings.rules.is_empty() {
        String::new()
    } else {
        let queries = settings.rules.queries.len();
        format!(", imports: {imports}, exports: {exports}, queries: {queries}")
    };
    let file = file.display();
    show::line(&format!(
        "{file}: valid; links: {links}, buffers: {buffers}, sources: {sources}{rules}"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the servers of the page and of Foxglove that are configured.
fn servers(
    node: &Node,
    settings: &Settings,
    webrtc: Option<WebrtcServer>,
) -> anyhow::Result<[Option<HttpServer>; 2]> {
    let access = || {
        let read = Access::read(&settings.http_files);
        read.map_err(|error| paceline_tool::exit::usage(format!("{error:#}")))
    };
    let source = || Arc::new(OwnSource::new(node, Neighbours::All));
    let page = |address| match webrtc {
        Some(webrtc) => HttpServer::with_webrtc(address, access()?, source(), webrtc),
        None => HttpServer::start(address, access()?, source()),
    };
    let foxglove = |address| HttpServer::foxglove(address, access()?, node);
    Ok([
        settings.http.as_ref().map(page).transpose()?,
        settings.foxglove.as_ref().map(foxglove).transpose()?,
    ])
}

/// Starts the server of players if it is configured.
fn players(node: &Node, settings: &Settings) -> anyhow::Result<Option<RtspServer>> {
    let Some(address) = &settings.rtsp else { return Ok(None) };
    let login = settings.rtsp_login.as_deref().map(read_login).transpose()?;
    RtspServer::start(address, login, node).map(Some)
}

impl NodeCommand {
    /// Returns the settings of the node; flags override the file.
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = self.node.settings()?;
        if !self.buffer.is_empty() {
            settings.buffers.clone_from(&self.buffer);
        }
        settings.http = self.http.clone().or(settings.http);
        settings.foxglove = self.foxglove.clone().or(settings.foxglove);
        settings.rtsp = self.rtsp.or(settings.rtsp);
        settings.rtsp_login = self.rtsp_login.clone().or(settings.rtsp_login);
        settings.webrtc = self.webrtc.clone().or(settings.webrtc);
        settings.check_webrtc()?;
        Ok(settings)
    }
}

impl NodeLine {
    fn new(node: &Node, settings: &Settings) -> Self {
        let links = (1..).zip(&settings.links).map(|(number, link)| LinkLine {
            name: link.name(number),
            listen: link.listen.clone(),
            connect: link.connect.clone(),
            capacity_bits_per_s: link.capacity.and_then(|capacity| match capacity {
                LinkCapacity::Fixed(capacity) => Some(capacity.bits_per_s()),
                LinkCapacity::Measured { .. } => None,
            }),
            measured: link
                .capacity
                .filter(LinkCapacity::is_measured)
                .map(|range| range.to_string()),
            policy: link.policy.to_string(),
        });
        Self {
            id: node.id().to_string(),
            name: node.name().to_owned(),
            links: links.collect(),
            buffers: settings.buffers.iter().filter_map(BufferLine::new).collect(),
            http: None,
            foxglove: None,
            sources: settings.sources.iter().map(|it| it.tag.as_str().to_owned()).collect(),
            rtsp: None,
            webrtc: Vec::new(),
            plain: PlainLine::new(settings),
        }
    }
}

impl BufferLine {
    fn new(spec: &BufferSpec) -> Option<Self> {
        // Always valid: the flags and the configuration file are checked when they are read.
        let limits = spec.history.limits().ok()?;
        Some(Self {
            pattern: spec.pattern.to_string(),
            samples_max: limits.samples(),
            bytes_max: limits.bytes(),
            age_max_us: show::micros(limits.age().into()),
        })
    }
}

fn describe(node: &NodeLine) -> String {
    let mut text = format!("node {} {}", node.name, node.id);
    for link in &node.links {
        text.push_str(&format!("; link {}", link.name));
        for endpoint in &link.listen {
            text.push_str(&format!(" listens on {endpoint}"));
        }
        for endpoint in &link.connect {
            text.push_str(&format!(" connects to {endpoint}"));
        }
        if let Some(bits) = link.capacity_bits_per_s {
            text.push_str(&format!(" at {}", show::bits(bits)));
        }
        if let Some(range) = &link.measured {
            text.push_str(&format!(" at a measured capacity ({range})"));
        }
    }
    for buffer in &node.buffers {
        let BufferLine { pattern, samples_max, bytes_max, .. } = buffer;
        text.push_str(&format!("; buffers {pattern}: {samples_max} samples, {bytes_max} bytes"));
    }
    if !node.sources.is_empty() {
        text.push_str(&format!("; publishes {}", node.sources.join(" and ")));
    }
    if let Some(PlainLine { listen, connect, imports, exports, queries }) = &node.plain {
        let endpoints: Vec<_> = listen.iter().chain(connect).map(String::as_str).collect();
        let endpoints = endpoints.join(" and ");
        text.push_str(&format!(
            "; plain Zenoh at {endpoints}: {imports} imports, {exports} exports, {queries} queries"
        ));
    }
    if let Some(http) = &node.http {
        text.push_str(&format!("; dashboard {http}"));
    }
    if let Some(foxglove) = &node.foxglove {
        text.push_str(&format!("; Foxglove {foxglove}"));
    }
    if let Some(rtsp) = &node.rtsp {
        text.push_str(&format!("; players {rtsp}TAG"));
    }
    if !node.webrtc.is_empty() {
        text.push_str(&format!("; WebRTC over UDP at {}", node.webrtc.join(" and ")));
    }
    text
}
