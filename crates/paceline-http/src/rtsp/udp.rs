//! The two UDP sockets from which all players receive packets and reports.

use crate::datagrams::Segments;
use crate::feeds::{Hub, Outlet};
use paceline_edge::{PlayerReport, RTP_HEADER_BYTES};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Attempts to find two neighbouring ports.
const ATTEMPTS: usize = 32;
/// Longest report of a player that is read.
const REPORT_BYTES_MAX: usize = 2_048;

/// The outlets of players by the address from which their reports arrive: with the track, and the identity of its sender.
type Reporters = BTreeMap<SocketAddr, (Weak<Outlet>, u8, u32)>;

/// The sockets for RTP and RTCP.
pub(super) struct UdpPair {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    ports: (u16, u16),
    reporters: Mutex<Reporters>,
    segments: Segments,
}

/// The header and the payload of a packet.
pub(super) type HeadedPacket<'a> = ([u8; RTP_HEADER_BYTES], &'a [u8]);

impl UdpPair {
    /// Opens an even port for RTP and the next one for RTCP on an address of this host.
    pub(super) async fn bind(host: IpAddr) -> io::Result<Arc<Self>> {
        let mut last = io::Error::other("no two neighbouring ports are free");
        for _ in 0..ATTEMPTS {
            let rtp = UdpSocket::bind((host, 0)).await?;
            let port = rtp.local_addr()?.port();
            if port % 2 == 1 || port == u16::MAX {
                continue;
            }
            match UdpSocket::bind((host, port + 1)).await {
                Ok(rtcp) => {
                    let (ports, reporters) = ((port, port + 1), Mutex::default());
                    let segments = Segments::new();
                    return Ok(Arc::new(Self { rtp, rtcp, ports, reporters, segments }));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) const fn ports(&self) -> (u16, u16) {
        self.ports
    }

    fn lock(&self) -> MutexGuard<'_, Reporters> {
        self.reporters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a player, whose reports arrive from `from`.
    pub(super) fn add(&self, from: SocketAddr, outlet: &Arc<Outlet>, track: u8, ssrc: u32) {
        let mut reporters = self.lock();
        reporters.retain(|_, (outlet, ..)| outlet.strong_count() > 0);
        reporters.insert(from, (Arc::downgrade(outlet), track, ssrc));
    }

    /// Sends the first packets of `packets` in one call, and returns their number: all of one size, and one that is smaller.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room, or the error of the system.
    pub(super) fn send(&self, packets: &[HeadedPacket<'_>], to: SocketAddr) -> io::Result<usize> {
        let pieces = packets.iter().map(|(header, payload)| [&header[..], payload]);
        self.segments.send(&self.rtp, &pieces.collect::<Vec<_>>(), to)
    }

    /// Sends a report. It is repeated, so it may be lost.
    pub(super) fn send_report(&self, report: &[u8], to: SocketAddr) {
        let _ = self.rtcp.try_send_to(report, to);
    }

    /// Starts to read the reports of players.
    pub(super) fn read(self: &Arc<Self>, hub: &Arc<Hub>) -> JoinHandle<()> {
        let (of, hub) = (self.clone(), hub.clone());
        tokio::spawn(async move {
            let mut reports = vec![0; REPORT_BYTES_MAX];
            // Players send empty packets to the first port, which open their firewalls.
            let mut rest = [0; 64];
            loop {
                tokio::select! {
                    read = of.rtcp.recv_from(&mut reports) => if let Ok((length, from)) = read {
                        of.take(reports.get(..length).unwrap_or_default(), from, hub.now());
                    },
                    _ = of.rtp.recv_from(&mut rest) => {}
                }
                tokio::task::yield_now().await;
            }
        })
    }

    fn take(&self, bytes: &[u8], from: SocketAddr, nanos: u64) {
        let known = self.lock().get(&from).cloned();
        let Some((Some(outlet), track, ssrc)) =
            known.map(|(outlet, track, ssrc)| (outlet.upgrade(), track, ssrc))
        else {
            return;
        };
        match PlayerReport::parse(bytes) {
            Ok(report) => {
                let mut own = report.receptions.into_iter().filter(|it| it.ssrc == ssrc);
                outlet.report(track, own.next(), report.bye, nanos);
            }
            Err(error) => {
                paceline::warn_limited!("RTSP: a report of {from} cannot be read: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_arrives_as_its_packets() {
        let pair = UdpPair::bind([127, 0, 0, 1].into()).await.unwrap();
        let player = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        let packets: Vec<HeadedPacket<'_>> = bytes
            .chunks(1_380)
            .zip(0..)
            .map(|(payload, number)| ([number; RTP_HEADER_BYTES], payload))
            .collect();
        pair.rtp.writable().await.unwrap();
        assert_eq!(pair.send(&packets, player.local_addr().unwrap()).unwrap(), 4);
        let mut found = vec![0; 4_000];
        for (header, payload) in &packets {
            let (length, from) = player.recv_from(&mut found).await.unwrap();
            assert_eq!(found[..length], [&header[..], payload].concat());
            assert_eq!(from.port(), pair.ports().0);
        }
    }
}
