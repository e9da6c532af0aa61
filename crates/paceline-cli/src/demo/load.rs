//! The additional load that the dashboard switches on and off. The children receive commands on
//! standard input.

use super::dashboard::{FLOOD, GREED};
use super::scenario::{self, Role};
use crate::pacer::Pacer;
use paceline::Node;
use paceline_tool::stop::Stop;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The interval between checks of the switches.
const LOOK: Duration = Duration::from_millis(50);

/// The state of the switches.
#[derive(Clone, Default)]
pub(super) struct Load {
    flood: Arc<AtomicBool>,
    greed: Arc<AtomicBool>,
}

impl Load {
    /// Executes the commands from `input` until it ends.
    pub(super) fn follow(&self, input: impl BufRead) {
        for line in input.lines().map_while(io::Result::ok) {
            let (name, on) = line.split_once(' ').unwrap_or((&line, ""));
            match name {
                FLOOD => self.flood.store(on == "on", Ordering::Relaxed),
                GREED => self.greed.store(on == "on", Ordering::Relaxed),
                other => tracing::warn!("unknown order: {other}"),
            }
        }
    }

    /// Generates the load while its switch is on, until `stop`.
    pub(super) fn run(&self, role: Role, node: &Node, stop: &Stop) -> anyhow::Result<()> {
        match role {
            Role::Robot => self.bulk(node, stop),
            Role::Operator => self.takers(node, stop),
            // The console has no load to generate.
            Role::Console => {
                while !stop.wait_until(Instant::now() + LOOK) {}
                Ok(())
            }
        }
    }

    fn bulk(&self, node: &Node, stop: &Stop) -> anyhow::Result<()> {
        let payload = bytes::Bytes::from(vec![0xb0; scenario::BULK_BYTES]);
        while !stop.wait_until(Instant::now() + LOOK) {
            if !self.flood.load(Ordering::Relaxed) {
                continue;
            }
            let hz = f64::from(scenario::BULK_HZ);
            let mut publisher = node.publisher(scenario::BULK).hz(hz).declare()?;
            let mut pacer = Pacer::new(Instant::now(), hz);
            while self.flood.load(Ordering::Relaxed) && !stop.wait_until(pacer.due()) {
                pacer.advance();
                publisher.put(payload.clone())?;
            }
        }
        Ok(())
    }

    fn takers(&self, node: &Node, stop: &Stop) -> anyhow::Result<()> {
        let (mut flood, mut greed) = (None, None);
        while !stop.wait_until(Instant::now() + LOOK) {
            match (self.flood.load(Ordering::Relaxed), &flood) {
                (true, None) => flood = Some(node.subscriber(scenario::BULK).callback(|_| {})?),
                (false, Some(_)) => flood = None,
                (true, Some(_)) | (false, None) => {}
            }
            match (self.greed.load(Ordering::Relaxed), &greed) {
                (true, None) => {
                    let all = node.subscriber(scenario::CAMERA).within(scenario::GREED_WITHIN);
                    greed = Some(all.callback(|_| {})?);
                }
                (false, Some(_)) => greed = None,
                (true, Some(_)) | (false, None) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_turn_the_load_on_and_off() {
        let load = Load::default();
        let is = || (load.flood.load(Ordering::Relaxed), load.greed.load(Ordering::Relaxed));
        load.follow("flood on\nnonsense\n".as_bytes());
        assert_eq!(is(), (true, false));
        load.follow("greed on\nflood off\n\n".as_bytes());
        assert_eq!(is(), (false, true));
    }
}
