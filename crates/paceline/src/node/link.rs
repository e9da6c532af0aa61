//! Opening of the links of a node.

use super::{classes, wrong_class};
use crate::config::LinkConfig;
use crate::error::OpenError;
use crate::identity::Introduction;
use crate::shell::command::Commands;
use crate::shell::egress;
use crate::shell::engine::EngineLink;
use crate::shell::port::Announcements;
use crate::shell::rx::{LinkRx, RxSources};
use crate::shell::transport::Transport;
use crate::shell::vitals::Vitals;
use crate::shell::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::Event;
use paceline_proto::link::LinkSpec;
use paceline_proto::wire::STREAMS_MAX;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Opens a link: its transport and its threads.
pub(super) fn open_link(
    me: Introduction,
    index: usize,
    config: LinkConfig,
    sources: &Arc<RxSources>,
    (commands, vitals): (&Commands, &Arc<Vitals>),
) -> Result<(EngineLink, JoinHandle<()>), OpenError> {
    let waker = Arc::new(Waker::default());
    let announcements = Arc::new(Announcements {
        ready: ArrayQueue::new(STREAMS_MAX as usize),
        waker: waker.clone(),
        room: Event::new(),
    });
    let rx = Arc::new(LinkRx::new(
        (index, config.is_certified()),
        sources.clone(),
        waker,
        commands.clone(),
        vitals.clone(),
    ));
    let cannot = |what: String| {
        let endpoints: Vec<_> = config.listen.iter().chain(&config.connect).cloned().collect();
        let (link, endpoints) = (config.name.clone(), endpoints.join(", "));
        OpenError::Transport { link, endpoints, what: readable(&what) }
    };
    let transport =
        Transport::open(me, &config, rx.clone()).map_err(|error| cannot(error.to_string()))?;
    let classes = classes(&config).map_err(|error| wrong_class(&config, &error))?;
    let carrier = config.carrier();
    let spec = LinkSpec { capacity: config.capacity, policy: config.policy, classes, carrier };
    // The other end decides for itself whether it sends datagrams.
    if config.is_quic() {
        rx.start_repairs(&config.name).map_err(OpenError::Thread)?;
    }
    let (handle, thread) =
        egress::start(&config, spec, transport, rx.clone(), announcements, (commands, vitals))
            .map_err(OpenError::Thread)?;
    let slots = Default::default();
    Ok((EngineLink { config, handle, rx, slots }, thread))
}

/// Returns an error of Zenoh without positions in its source code, which do not help the user, and with a
/// fix for the most frequent cause.
fn readable(error: &str) -> String {
    let mut text = error.split(" at /").next().unwrap_or(error).to_owned();
    if !text.contains(']') {
        // The bracket was closed behind the position.
        text = text.replace('[', "");
    }
    if text.contains("in use") {
        text += "; choose another port, or end the program that uses this one";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_omit_source_locations_of_dependencies() {
        assert_eq!(
            readable("no route: [os error 1 at /src/lib.rs:3.] at /src/b.rs:9."),
            "no route: os error 1"
        );
        assert_eq!(readable("[::1] is not local"), "[::1] is not local");
        assert_eq!(
            readable("address in use"),
            "address in use; choose another port, or end the program that uses this one"
        );
    }
}
