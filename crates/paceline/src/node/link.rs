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
use crate::shell::transport::{self, Transport};
use crate::shell::vitals::Vitals;
use crate::shell::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::Event;
use paceline_proto::link::LinkSpec;
use paceline_proto::wire::STREAMS_MAX;
use std::io::ErrorKind;
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
    let cannot = |error: transport::Error| {
        let endpoints: Vec<_> = config.listen.iter().chain(&config.connect).cloned().collect();
        let (link, endpoints) = (config.name.clone(), endpoints.join(", "));
        OpenError::Transport { link, endpoints, what: with_fix(&error) }
    };
    let transport = Transport::open(me, &config, rx.clone()).map_err(cannot)?;
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

/// Returns the text of an error of opening an endpoint, with a fix for the usual ones.
fn with_fix(error: &transport::Error) -> String {
    let fixes = [
        (ErrorKind::AddrInUse, "choose another port, or end the program that uses this one"),
        (ErrorKind::AddrNotAvailable, "listen on an address of this host"),
        (
            ErrorKind::PermissionDenied,
            "choose a port from 1024 on, or a folder in which this user may write",
        ),
        (ErrorKind::NotFound, "create the folder first"),
    ];
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let fix = fixes.into_iter().find(|(one, _)| Some(*one) == kind);
    fix.map_or_else(|| error.to_string(), |(_, fix)| format!("{error}; {fix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_errors_have_a_fix() {
        let text = |kind: ErrorKind| with_fix(&std::io::Error::from(kind).into());
        assert_eq!(
            text(ErrorKind::AddrInUse),
            "address in use; choose another port, or end the program that uses this one"
        );
        assert!(text(ErrorKind::NotFound).ends_with("; create the folder first"));
        assert_eq!(with_fix(&"no certificate".into()), "no certificate");
    }
}
