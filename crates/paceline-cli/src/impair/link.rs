//! Two namespaces joined by a network that impairs, and the thread that carries their packets.

use super::pump::{Control, Pump, Traffic};
use crate::netns::Namespace;
use anyhow::{Context as _, Result, anyhow};
use paceline_sim::impair::Impairment;
use std::sync::Arc;
use std::thread::JoinHandle;
use tun_rs::{DeviceBuilder, SyncDevice};

/// The largest packet, as on Ethernet.
pub(crate) const PACKET_BYTES_MAX: u16 = 1_500;
/// Packets that the kernel holds for us while this process does not run.
const KERNEL_PACKETS: u32 = 10_000;

/// The thread that carries packets.
pub(super) const THREAD: &str = "paceline-impair";

/// Which way packets go: from the first namespace to the second, and back.
pub(crate) const DIRECTIONS: usize = 2;

/// Where packets enter and leave: the address of a TUN device in a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'n> {
    pub(crate) namespace: &'n Namespace,
    pub(crate) device: &'n str,
    pub(crate) address: &'n str,
}

/// What impairs packets between two namespaces, until it is dropped.
#[derive(Debug)]
pub(crate) struct Link {
    control: Arc<Control>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Link {
    /// Joins two ends, whose addresses are in a network of four. Packets of the first one are impaired by
    /// the first impairment; `seed` decides which of them are lost.
    pub(crate) fn new(
        ends: [End<'_>; DIRECTIONS],
        impairments: [Impairment; DIRECTIONS],
        seed: u64,
    ) -> Result<Self> {
        let [a, b] = ends;
        let tuns = [open(a)?, open(b)?];
        let control = Arc::new(Control::new()?);
        let pump = Pump::new(tuns, impairments, seed, Arc::clone(&control));
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(|| pump.run()).context("thread of the emulator")?;
        Ok(Self { control, thread: Some(thread) })
    }

    /// What happens to packets from now on.
    pub(crate) fn set(&self, impairments: [Impairment; DIRECTIONS]) {
        self.control.set(impairments);
    }

    /// What has become of packets so far, each way.
    pub(crate) fn traffic(&self) -> [Traffic; DIRECTIONS] {
        self.control.traffic()
    }

    /// An error once packets are not carried any more.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => join(thread),
            None => Ok(()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take()
            && let Err(error) = join(thread)
        {
            tracing::warn!("the emulator of the network ended early: {error:#}");
        }
    }
}

fn join(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("the emulator of the network panicked")))
}

/// A TUN device inside a namespace, up, with an address and nothing that talks by itself.
fn open(end: End<'_>) -> Result<SyncDevice> {
    let End { namespace, device: name, address } = end;
    let device = namespace.inside(|| {
        let device = DeviceBuilder::new().name(name).mtu(PACKET_BYTES_MAX);
        device.tx_queue_len(KERNEL_PACKETS).enable(false).build_sync()
    })?;
    let device = device.with_context(|| {
        format!("TUN device {name}: this needs /dev/net/tun (modprobe tun) and the right to use it")
    })?;
    device.set_nonblocking(true).with_context(|| format!("TUN device {name}"))?;
    namespace.ip(&format!("link set {name} addrgenmode none"))?;
    namespace.ip(&format!("addr add {address}/30 dev {name}"))?;
    namespace.ip(&format!("link set {name} up"))?;
    Ok(device)
}
