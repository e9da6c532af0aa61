//! The thread that receives RTP without RTSP.

use super::lane::{Arrived, Lane};
use super::refusal::Ended;
use super::tracks::Track;
use anyhow::{Context as _, anyhow};
use paceline_edge::{
    ArrivedPacket, Backoff, CaptureClock, DescribedTrack, PacketOrder, RtpPacket, RtpTrack, choose,
};
use paceline_tool::show;
use retina::rtp::PacketHeader;
use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// The interval at which packets that wait are looked at.
const CHECK: Duration = Duration::from_millis(10);
/// The largest datagram in bytes.
const DATAGRAM_MAX: usize = 65_535;
/// The number of datagrams that wait.
const QUEUE: usize = 1_024;
/// The delay of the path, within a host or a site.
const PATH_NS: u64 = 2_000_000;

/// Receives the tracks of a description.
pub(super) struct RtpReader {
    name: String,
    described: Vec<RtpTrack>,
    lanes: Vec<Lane>,
    /// Gone when nobody receives.
    wanted: Weak<()>,
}

/// A track that is received.
struct Playback {
    track: Track,
    order: PacketOrder,
    payload_type: u8,
    /// A note said that packets of another type arrive.
    noted: bool,
    /// The number of discarded packets at which the next note is due.
    note_at: u64,
    rate: u32,
    hz: Option<f64>,
    /// The arrival of its last packet, in nanoseconds since the beginning.
    arrived: u64,
}

/// A datagram of a track.
struct Datagram {
    track: usize,
    is_rtcp: bool,
    bytes: Vec<u8>,
    at: Instant,
}

impl RtpReader {
    pub(super) const fn new(
        name: String,
        described: Vec<RtpTrack>,
        lanes: Vec<Lane>,
        wanted: Weak<()>,
    ) -> Self {
        Self { name, described, lanes, wanted }
    }

    /// Receives until nobody does.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime of the camera")?;
        runtime.block_on(async {
            let (to, datagrams) = channel(QUEUE);
            let (playbacks, clock) = self.bind(&to).await?;
            match self.receive(datagrams, playbacks, clock).await {
                Ended::Unwanted => Ok(()),
                Ended::Final(error) => Err(error),
                Ended::Again(reason) => Err(anyhow!("{}: {reason}", self.name)),
            }
        })
    }

    /// Opens the ports of each track.
    async fn bind(
        &mut self,
        to: &Sender<Datagram>,
    ) -> anyhow::Result<(Vec<Playback>, CaptureClock)> {
        let name = &self.name;
        let described: Vec<DescribedTrack<'_>> =
            self.described.iter().map(RtpTrack::described).collect();
        let mut playbacks = Vec::new();
        for (number, lane) in self.lanes.iter().enumerate() {
            let (at, format) =
                choose(&described, lane.kind).map_err(|error| anyhow!("{name}: {error}"))?;
            let found = self.described.get(at).context("a track of the description")?;
            for (port, is_rtcp) in [(found.port, false), (found.port + 1, true)] {
                let socket = listen(found.address, port).await.map_err(|error| {
                    anyhow!(
                        "{name}: cannot receive at {}: {error}; another program may use the port, or the address in line c= \
                         is of another host",
                        SocketAddr::new(found.address, port)
                    )
                })?;
                tokio::spawn(forward(socket, (number, is_rtcp), to.clone()));
            }
            playbacks.push(Playback {
                track: Track::new(format, &found.sets),
                order: PacketOrder::default(),
                payload_type: found.payload_type,
                noted: false,
                note_at: 1,
                arrived: 0,
                rate: found.rate,
                hz: found.hz,
            });
        }
        let rates: Vec<u32> = playbacks.iter().map(|track| track.rate).collect();
        Ok((playbacks, CaptureClock::new(&rates, PATH_NS)))
    }

    async fn receive(
        &mut self,
        mut datagrams: Receiver<Datagram>,
        mut playbacks: Vec<Playback>,
        mut clock: CaptureClock,
    ) -> Ended {
        let (began, backoff) = (Instant::now(), Backoff::default());
        let (mut heard, mut silent) = (began, false);
        let since = |at: Instant| {
            u64::try_from(at.saturating_duration_since(began).as_nanos()).unwrap_or(u64::MAX)
        };
        loop {
            let datagram = timeout(CHECK, datagrams.recv()).await.ok().flatten();
            if let Some(Datagram { track, is_rtcp, bytes, at }) = datagram
                && let Some(playback) = playbacks.get_mut(track)
            {
                if is_rtcp {
                    report(&playback.order, track, &bytes, &mut clock);
                } else if playback.take(&self.name, &bytes, since(at)) && track == 0 {
                    // Sound that goes on does not hide pictures that have ended.
                    heard = at;
                }
            }
            let lanes = playbacks.iter_mut().zip(&mut self.lanes).enumerate();
            for (number, (playback, lane)) in lanes {
                if let Err(ended) = playback.give(number, lane, (&mut clock, began)) {
                    return ended;
                }
            }
            if self.wanted.strong_count() == 0 {
                return Ended::Unwanted;
            }
            let was = std::mem::replace(&mut silent, heard.elapsed() > backoff.silence());
            if silent && !was {
                let silence = backoff.silence().as_secs();
                show::note(&format!(
                    "{}: no packet of pictures for {silence} s; start the sender, or look for a firewall",
                    self.name
                ));
            }
        }
    }
}

impl Playback {
    /// Takes a datagram. Returns false for one that belongs to another track.
    fn take(&mut self, name: &str, bytes: &[u8], arrived: u64) -> bool {
        let Ok((header, range)) = PacketHeader::validate(bytes) else { return false };
        let payload = bytes.get(usize::from(range.start)..usize::from(range.end));
        let Some(payload) = payload.filter(|_| header.payload_type() == self.payload_type) else {
            if !std::mem::replace(&mut self.noted, true) {
                show::note(&format!(
                    "{name}: packets of payload type {} arrive for a track of type {}; correct its line m=",
                    header.payload_type(),
                    self.payload_type
                ));
            }
            return false;
        };
        let discarded = self.order.discarded();
        if discarded >= self.note_at {
            self.note_at = discarded.saturating_mul(10);
            show::note(&format!(
                "{name}: {discarded} packets came too late, twice, or from another sender, and are left out"
            ));
        }
        self.order.push(ArrivedPacket {
            sequence: header.sequence_number(),
            time: header.timestamp(),
            ssrc: header.ssrc(),
            marker: header.mark(),
            payload: payload.to_vec(),
            arrived,
        });
        true
    }

    /// Gives the samples that are complete to the publisher.
    fn give(
        &mut self,
        number: usize,
        lane: &mut Lane,
        (clock, began): (&mut CaptureClock, Instant),
    ) -> Result<(), Ended> {
        let now = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        while let Some(packet) = self.order.poll(now) {
            let whole = RtpPacket {
                time: packet.time,
                marker: packet.marker,
                lost: packet.lost,
                payload: &packet.payload,
            };
            lane.heard(packet.time);
            let before = std::mem::replace(&mut self.arrived, packet.arrived);
            for sample in self.track.push(&whole, &lane.news) {
                // The first packet of the next unit may end this one.
                let ends = if sample.time == packet.time { packet.arrived } else { before };
                let captured = clock.capture(number, sample.time, ends);
                let at = began + Duration::from_nanos(ends);
                let arrived = Arrived { bytes: sample.bytes, at, captured };
                if !lane.give(&self.track, arrived, (self.rate, self.hz))? {
                    self.track.lose();
                }
            }
        }
        Ok(())
    }
}

/// Notes the sender report of a datagram.
fn report(order: &PacketOrder, number: usize, bytes: &[u8], clock: &mut CaptureClock) {
    let Ok((packet, _)) = retina::rtcp::PacketRef::parse(bytes) else { return };
    let Ok(Some(sender)) = packet.as_sender_report() else { return };
    if let Some(time) = order.extend(sender.ssrc(), sender.rtp_timestamp()) {
        clock.report(number, sender.ntp_timestamp().0, time);
    }
}

/// Opens a port for an address of this host, or of a multicast group.
async fn listen(address: IpAddr, port: u16) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, port)).await?;
    match address {
        IpAddr::V4(group) if group.is_multicast() => {
            socket.join_multicast_v4(group, std::net::Ipv4Addr::UNSPECIFIED)?;
        }
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    Ok(socket)
}

/// Forwards the datagrams of a port.
async fn forward(socket: UdpSocket, (track, is_rtcp): (usize, bool), to: Sender<Datagram>) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    // Errors of a connectionless socket concern single datagrams.
    loop {
        let Ok(length) = socket.recv(&mut buffer).await else { continue };
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        let datagram = Datagram { track, is_rtcp, bytes, at: Instant::now() };
        if to.send(datagram).await.is_err() {
            return;
        }
    }
}
