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
use crate::shell::transport::{self, Transport, Unopened};
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
    mut config: LinkConfig,
    sources: &Arc<RxSources>,
    (commands, vitals): (&Commands, &Arc<Vitals>),
) -> Result<(EngineLink, JoinHandle<()>), OpenError> {
    config.capacity = config.bounded_capacity();
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
    let cannot = |Unopened { endpoint, error }| {
        let what = with_fix(endpoint.as_deref().unwrap_or_default(), &error);
        let all = || config.listen.iter().chain(&config.connect).cloned().collect::<Vec<_>>();
        let endpoints = endpoint.unwrap_or_else(|| all().join(", "));
        OpenError::Transport { link: config.name.clone(), endpoints, what }
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
    Ok((EngineLink { config, handle, rx }, thread))
}

/// Returns the text of an error of opening `endpoint`, with a fix for the usual ones.
fn with_fix(endpoint: &str, error: &transport::Error) -> String {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let fixes = if endpoint.starts_with("unix/") { &SOCKET_FIXES[..] } else { &PORT_FIXES[..] };
    let fix = fixes.iter().find(|(one, _)| Some(*one) == kind);
    fix.map_or_else(|| error.to_string(), |(_, fix)| format!("{error}; {fix}"))
}

/// The fixes for the usual errors of a port.
const PORT_FIXES: [(ErrorKind, &str); 3] = [
    (ErrorKind::AddrInUse, "choose another port, or end the program that uses this one"),
    (ErrorKind::AddrNotAvailable, "listen on an address of this host"),
    (ErrorKind::PermissionDenied, "choose a port from 1024 on"),
];
/// The fixes for the usual errors of a unix socket.
const SOCKET_FIXES: [(ErrorKind, &str); 3] = [
    (ErrorKind::AddrInUse, "choose another path, or end the program that listens there"),
    (ErrorKind::PermissionDenied, "choose a folder in which this user may write"),
    (ErrorKind::NotFound, "create the folder first"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_errors_have_a_fix_for_their_endpoint() {
        let text =
            |endpoint, kind: ErrorKind| with_fix(endpoint, &std::io::Error::from(kind).into());
        assert_eq!(
            text("tcp/127.0.0.1:7600", ErrorKind::AddrInUse),
            "address in use; choose another port, or end the program that uses this one"
        );
        assert_eq!(
            text("unix//run/a", ErrorKind::AddrInUse),
            "address in use; choose another path, or end the program that listens there"
        );
        assert!(text("unix//run/a", ErrorKind::NotFound).ends_with("; create the folder first"));
        assert!(
            text("quic/[::]:80", ErrorKind::PermissionDenied)
                .ends_with("; choose a port from 1024 on")
        );
        assert_eq!(with_fix("", &"no certificate".into()), "no certificate");
    }
}
