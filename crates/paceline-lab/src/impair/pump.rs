//! The thread between two TUN devices: it reads packets on one side and writes them to the other
//! after the emulator.

use anyhow::{Context as _, Result};
use paceline_sched::Instant;
use paceline_sim::impair::{Counters, Emulator, Impairment, WireKind};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tun_rs::SyncDevice;

/// The largest packet in bytes, as on Ethernet.
pub(crate) const PACKET_BYTES_MAX: u16 = 1_500;
/// The number of directions: from the first namespace to the second, and back.
pub(crate) const DIRECTIONS: usize = 2;

/// The largest number of packets in flight per direction: one second of 390 Mbit/s in full packets.
const PACKETS_MAX: usize = 32_768;
/// The number of packets read from one side before the thread handles the other side and due
/// packets.
const BATCH: usize = 64;

/// The packet counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// The emulator's counters.
    pub(crate) counters: Counters,
    /// Packets after the emulator that the kernel did not accept.
    pub(crate) refused: u64,
}

/// The shared state by which other threads control the pump.
#[derive(Debug)]
pub(crate) struct Control {
    wake: OwnedFd,
    stopped: AtomicBool,
    orders: Mutex<Option<[Impairment; DIRECTIONS]>>,
    seen: Mutex<[Traffic; DIRECTIONS]>,
}

impl Control {
    pub(crate) fn new() -> Result<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Self {
            wake: eventfd(0, flags).context("eventfd")?,
            stopped: AtomicBool::new(false),
            orders: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn set(&self, impairments: [Impairment; DIRECTIONS]) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = Some(impairments);
        self.wake();
    }

    pub(crate) fn traffic(&self) -> [Traffic; DIRECTIONS] {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        // The write fails only if the eventfd's counter overflows; then a wake-up is already
        // pending.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn orders(&self) -> Option<[Impairment; DIRECTIONS]> {
        let mut wakes = [0; 8];
        rustix::io::read(&self.wake, &mut wakes).ok()?;
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A packet in a reusable buffer.
#[derive(Clone, Debug)]
struct Packet {
    buffer: Box<[u8]>,
    len: usize,
}

struct Direction {
    emulator: Emulator<Packet>,
    refused: u64,
}

/// The state of the thread.
pub(crate) struct Pump {
    /// The devices from which the packets of each direction are read; they are written to the other
    /// one.
    tuns: [SyncDevice; DIRECTIONS],
    directions: [Direction; DIRECTIONS],
    free: Vec<Packet>,
    origin: std::time::Instant,
    control: Arc<Control>,
}

impl Pump {
    pub(crate) fn new(
        tuns: [SyncDevice; DIRECTIONS],
        impairments: [Impairment; DIRECTIONS],
        seed: u64,
        control: Arc<Control>,
    ) -> Self {
        let mut seed = seed;
        let directions = impairments.map(|impairment| {
            seed = seed.wrapping_add(1);
            let emulator = Emulator::new(WireKind::Datagrams, impairment, PACKETS_MAX, seed);
            Direction { emulator, refused: 0 }
        });
        Self { tuns, directions, free: Vec::new(), origin: std::time::Instant::now(), control }
    }

    /// Carries packets until it is stopped.
    pub(crate) fn run(mut self) -> Result<()> {
        if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
            tracing::debug!("cannot change the timer slack, timers stay 50 µs late: {error}");
        }
        while !self.control.stopped.load(Ordering::Relaxed) {
            let mut more = false;
            let [a, b] = &self.tuns;
            for (direction, (from, to)) in self.directions.iter_mut().zip([(a, b), (b, a)]) {
                more |= read(direction, from, &mut self.free, self.origin)?;
                deliver(direction, to, &mut self.free, self.origin);
            }
            self.publish();
            if !more {
                self.sleep()?;
            }
            if let Some(impairments) = self.control.orders() {
                let now = now(self.origin);
                for (direction, impairment) in self.directions.iter_mut().zip(impairments) {
                    direction.emulator.set(now, impairment);
                }
            }
        }
        Ok(())
    }

    fn publish(&self) {
        let mut seen = self.control.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = self.directions.each_ref().map(|direction| Traffic {
            counters: *direction.emulator.counters(),
            refused: direction.refused,
        });
    }

    /// Waits for a packet, for the next due time, or for a command.
    fn sleep(&self) -> Result<()> {
        let due = self.directions.iter().map(|direction| direction.emulator.next_at()).min();
        let left = due.filter(|due| *due < Instant::FAR).map(|due| due.since(now(self.origin)));
        let timeout = left.map(|left| Timespec::try_from(std::time::Duration::from(left)));
        let timeout = timeout.transpose().context("time to sleep")?;
        let [a, b] = &self.tuns;
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds =
            [readable(a.as_fd()), readable(b.as_fd()), readable(self.control.wake.as_fd())];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("wait for packets"),
        }
    }
}

fn now(origin: std::time::Instant) -> Instant {
    Instant::ZERO + origin.elapsed().into()
}

/// Reads a batch of packets; returns true if there may be more.
fn read(
    direction: &mut Direction,
    from: &SyncDevice,
    free: &mut Vec<Packet>,
    origin: std::time::Instant,
) -> Result<bool> {
    for _ in 0..BATCH {
        let mut packet = free.pop().unwrap_or_else(|| Packet {
            buffer: vec![0; usize::from(PACKET_BYTES_MAX)].into(),
            len: 0,
        });
        match from.recv(&mut packet.buffer) {
            Ok(len) => packet.len = len,
            Err(error) => {
                free.push(packet);
                let later = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
                if later.contains(&error.kind()) {
                    return Ok(false);
                }
                return Err(error).context("read from a TUN device");
            }
        }
        let dropped = direction.emulator.handle(now(origin), packet.len as u64, packet);
        free.extend(dropped);
    }
    Ok(true)
}

/// Writes the packets that are due.
fn deliver(
    direction: &mut Direction,
    to: &SyncDevice,
    free: &mut Vec<Packet>,
    origin: std::time::Instant,
) {
    while let Some(packet) = direction.emulator.poll(now(origin)) {
        let bytes = packet.buffer.get(..packet.len).unwrap_or_default();
        direction.refused += u64::from(to.send(bytes).is_err());
        free.push(packet);
    }
}
