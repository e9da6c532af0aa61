//! Two namespaces joined by an impaired network, and the thread that carries their packets.

use super::pump::{Control, DIRECTIONS, PACKET_BYTES_MAX, Pump, Traffic};
use crate::netns::Namespace;
use anyhow::{Context as _, Result, anyhow};
use paceline_sim::impair::Impairment;
use std::sync::Arc;
use std::thread::JoinHandle;
use tun_rs::{DeviceBuilder, SyncDevice};

/// The number of packets that the kernel buffers while this process does not run.
const KERNEL_PACKETS: u32 = 10_000;

/// The name of the thread that carries packets.
pub(super) const THREAD: &str = "paceline-impair";

/// An end of the link: the address of a TUN device in a namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'n> {
    pub(crate) namespace: &'n Namespace,
    pub(crate) device: &'n str,
    pub(crate) address: &'n str,
}

/// An impaired link between two namespaces; dropping this removes it.
#[derive(Debug)]
pub(crate) struct Link {
    control: Arc<Control>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Link {
    /// Joins two ends, whose addresses are in the same /30 network. The first impairment applies to
    /// packets from the first end; `seed` selects the lost packets.
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

    /// Changes the impairments.
    pub(crate) fn set(&self, impairments: [Impairment; DIRECTIONS]) {
        self.control.set(impairments);
    }

    /// Returns the traffic so far in each direction.
    pub(crate) fn traffic(&self) -> [Traffic; DIRECTIONS] {
        self.control.traffic()
    }

    /// Returns an error once the thread has stopped carrying packets.
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

/// Opens a TUN device inside a namespace and brings it up with an address. Nothing sends packets on
/// it by itself.
fn open(end: End<'_>) -> Result<SyncDevice> {
    let End { namespace, device: name, address } = end;
    let device = namespace.inside(|| {
        let device = DeviceBuilder::new().name(name).mtu(PACKET_BYTES_MAX);
        device.tx_queue_len(KERNEL_PACKETS).enable(false).build_sync()
    })?;
    let device = device.with_context(|| {
        format!(
            "cannot create TUN device {name}, which needs permission to use /dev/net/tun; try \
             modprobe tun"
        )
    })?;
    device.set_nonblocking(true).with_context(|| format!("TUN device {name}"))?;
    namespace.ip(&format!("link set {name} addrgenmode none"))?;
    namespace.ip(&format!("addr add {address}/30 dev {name}"))?;
    namespace.ip(&format!("link set {name} up"))?;
    Ok(device)
}
