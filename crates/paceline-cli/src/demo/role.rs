//! The nodes of the demo, each in its own process. They end when their standard input closes.

use super::gauge::{Gauge, dropped};
use super::line::{Line, LinkLine, PublisherLine, RobotLine, StreamLine};
use super::load::Load;
use super::scenario::{self, ROWS, Role, Row};
use anyhow::Context as _;
use paceline::status::{LinkStatus, StreamStatus};
use paceline::{
    Capacity, Encoding, Late, LinkConfig, Node, RecvError, Subscriber, SubscriberEvent,
};
use paceline_http::HttpAddress;
use paceline_http::status::StatusDocument;
use paceline_http::{HttpServer, Neighbours, OwnSource};
use paceline_media::{Size, TestCard};
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);

/// Options of the hidden command `paceline demo-role`.
#[derive(Debug, clap::Args)]
pub(crate) struct RoleArgs {
    #[arg(value_enum)]
    role: Role,
    /// Port of the thin link
    #[arg(long)]
    thin: u16,
    /// Port of the link to the console
    #[arg(long)]
    lan: u16,
    /// Address of the HTTP server for the demo's dashboard
    #[arg(long)]
    http: HttpAddress,
}

/// Runs one role until standard input closes.
pub(crate) fn run_role(args: &RoleArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::default();
    let (watch, load) = (stop.clone(), Load::default());
    let orders = load.clone();
    std::thread::spawn(move || {
        // Returns at the end of the input or at an error.
        orders.follow(std::io::stdin().lock());
        watch.request();
    });
    let node = open(args)?;
    let http =
        HttpServer::start(&args.http, None, Arc::new(OwnSource::new(&node, Neighbours::No)))?;
    let done = std::thread::scope(|scope| {
        let load = scope.spawn(|| ended(load.run(args.role, &node, &stop), &stop));
        let done = match args.role {
            Role::Robot => robot(&node, &stop),
            Role::Console | Role::Operator => subscribers(args.role, &node, &stop),
        };
        stop.request();
        let loaded = load.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        done.and(loaded)
    });
    drop(http);
    node.close();
    done.map(|()| ExitCode::SUCCESS)
}

fn open(args: &RoleArgs) -> anyhow::Result<Node> {
    let (thin, lan) =
        (format!("tcp/127.0.0.1:{}", args.thin), format!("tcp/127.0.0.1:{}", args.lan));
    let thin_link = LinkConfig::new(scenario::THIN).capacity(
        Capacity::from_bits_per_s(scenario::THIN_BITS_PER_S)
            .map_err(|error| anyhow::anyhow!("{error}"))?,
    );
    let lan_link = LinkConfig::new(scenario::LAN);
    let builder = Node::builder().name(args.role.name());
    let builder = match args.role {
        Role::Robot => builder.link(lan_link.listen(&lan)).link(thin_link.listen(&thin)),
        Role::Console => builder.link(lan_link.connect(&lan)),
        Role::Operator => builder.link(thin_link.connect(&thin)),
    };
    builder.open().with_context(|| format!("cannot open the {}", args.role))
}

/// Publishes pictures and steering messages, and reports once per second.
fn robot(node: &Node, stop: &Stop) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let camera = scope.spawn(|| ended(camera(node, stop), stop));
        let steering = scope.spawn(|| ended(steering(node, stop), stop));
        let reports = ended(robot_reports(node, stop), stop);
        for thread in [camera, steering] {
            thread.join().map_err(|_| anyhow::anyhow!("a publisher panicked"))??;
        }
        reports
    })
}

/// Ends all other threads when one ends.
fn ended(done: anyhow::Result<()>, stop: &Stop) -> anyhow::Result<()> {
    stop.request();
    done
}

fn camera(node: &Node, stop: &Stop) -> anyhow::Result<()> {
    let paceline::Size { width, height } = scenario::CAMERA_SIZE;
    let mut card = TestCard::new(Size { width, height })?;
    let mut publisher = node
        .publisher(scenario::CAMERA)
        .hz(f64::from(scenario::CAMERA_HZ))
        .encoding(Encoding::Jpeg)
        .picture_size(scenario::CAMERA_SIZE)
        .declare()?;
    let mut pacer = crate::pacer::Pacer::new(Instant::now(), f64::from(scenario::CAMERA_HZ));
    let mut frame = 0;
    while !stop.wait_until(pacer.due()) {
        pacer.skip_missed(Instant::now());
        pacer.advance();
        let now = paceline_tool::host::unix_micros();
        publisher.put(card.draw_jpeg(frame, now, scenario::CAMERA_QUALITY)?)?;
        frame += 1;
    }
    Ok(())
}

fn steering(node: &Node, stop: &Stop) -> anyhow::Result<()> {
    let mut publisher = node
        .publisher(scenario::STEER)
        .period(scenario::STEER_PERIOD)
        .late(Late::Send)
        .bytes_max(scenario::STEER_BYTES as u64)
        .declare()?;
    let hz = 1.0 / scenario::STEER_PERIOD.as_secs_f64();
    let mut pacer = crate::pacer::Pacer::new(Instant::now(), hz);
    while !stop.wait_until(pacer.due()) {
        pacer.advance();
        publisher.put(vec![0x5a; scenario::STEER_BYTES])?;
    }
    Ok(())
}

fn robot_reports(node: &Node, stop: &Stop) -> anyhow::Result<()> {
    let mut due = Instant::now() + TICK;
    while !stop.wait_until(due) {
        due += TICK;
        let document = StatusDocument::read(node, Duration::from_millis(100));
        if let Some(robot) = document.nodes.iter().find(|found| found.id == node.id()) {
            let publishers = robot.publishers.iter().map(|publisher| PublisherLine {
                tag: publisher.tag.to_string(),
                published: publisher.published,
                rate_hz: publisher.rate_hz(),
            });
            show::json(&Line::Robot(RobotLine {
                publishers: publishers.collect(),
                links: robot.links.iter().map(link_line).collect(),
            }))?;
        }
    }
    Ok(())
}

fn link_line(link: &LinkStatus) -> LinkLine {
    LinkLine {
        name: link.name.clone(),
        capacity_bits_per_s: link.capacity_bits_per_s,
        use_bits_per_s: link.use_bits_per_s,
        round_trip_us: show::micros(link.least_round_trip),
        wire_bytes: link.wire_bytes,
        streams: link.streams.iter().map(stream_line).collect(),
    }
}

fn stream_line(stream: &StreamStatus) -> StreamLine {
    StreamLine {
        tag: stream.tag.clone(),
        form: stream.form.to_string(),
        offered: stream.counters.offered,
        sent: stream.counters.sent,
        late: stream.counters.late,
        violations: stream.counters.violations,
        dropped: dropped(&stream.counters.dropped),
    }
}

/// Subscribes for every row of this role.
fn subscribers(role: Role, node: &Node, stop: &Stop) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let rows = ROWS.iter().enumerate().filter(|(_, row)| row.role == role);
        let threads: Vec<_> = rows
            .map(|(index, row)| scope.spawn(move || ended(subscribe(index, row, node, stop), stop)))
            .collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a subscriber panicked"))??;
        }
        Ok(())
    })
}

fn declare(row: &Row, node: &Node) -> anyhow::Result<Subscriber> {
    let mut builder = node.subscriber(row.tag);
    if row.limits {
        builder = builder.max_hz(f64::from(row.hz));
    }
    if let Some(size) = row.scaled() {
        builder = builder.size(size.width, size.height);
    }
    if let Some(within) = row.within {
        builder = builder.within(within);
    }
    if let Some((x, y)) = row.loss {
        builder = builder.loss(x, y);
    }
    Ok(builder.declare()?)
}

fn subscribe(index: usize, row: &Row, node: &Node, stop: &Stop) -> anyhow::Result<()> {
    let mut subscriber = declare(row, node)?;
    let mut gauge = Gauge::new(index, row);
    let mut due = Instant::now() + TICK;
    loop {
        let now = Instant::now();
        if now >= due || stop.requested() {
            while due <= now {
                due += TICK;
            }
            show::json(&Line::Row(gauge.line(&subscriber, now)))?;
            if stop.requested() {
                return Ok(());
            }
        }
        match subscriber.recv_timeout(due.saturating_duration_since(now).min(STOP_SLICE)) {
            Ok(delivery) => gauge.add(&delivery, Instant::now()),
            Err(RecvError::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(event) = subscriber.try_event() {
            if let SubscriberEvent::Refused(_, refusal) = event {
                gauge.refuse(refusal.to_string());
            }
        }
    }
}
