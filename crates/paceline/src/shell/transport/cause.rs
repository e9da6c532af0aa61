//! The causes of refused connections, as seen from either end.

use crate::identity::reason;
use paceline_proto::text::escape;
use quinn::ConnectionError;
use std::io;

/// The cause of a connection whose other end has closed it without a word, such as a port scanner, or the slower of
/// two attempts.
pub(super) const SILENT: &str =
    "it closed the connection without an introduction; check that a Paceline node listens there";
/// The cause of a connection to an endpoint that sends nothing.
pub(super) const NO_INTRODUCTION: &str =
    "it sent no introduction; check that a Paceline node listens there";

const NO_ROUTE: &str = "no route to it; check the address, and the network interfaces of this host";
/// The cause of an attempt that has run into its timeout.
pub(super) const NO_ANSWER: &str = "no answer; check the address, and the firewalls on the path";

/// Returns the cause of a failed QUIC connection.
pub(super) fn of_quic(error: &ConnectionError) -> String {
    let code = match error {
        ConnectionError::TransportError(error) => u64::from(error.code),
        ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
        ConnectionError::ApplicationClosed(close) => {
            let reason = escape(&String::from_utf8_lossy(&close.reason)).to_string();
            return if reason.is_empty() { SILENT.to_owned() } else { reason };
        }
        ConnectionError::TimedOut => return NO_ANSWER.to_owned(),
        ConnectionError::VersionMismatch
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => return error.to_string(),
    };
    // TLS alerts are errors 0x100 to 0x1ff (RFC 9001, section 4.8).
    let own = matches!(error, ConnectionError::TransportError(_));
    let alert = code.checked_sub(0x100).and_then(|alert| u8::try_from(alert).ok());
    alert
        .and_then(|alert| of_alert(alert, own))
        .unwrap_or_else(|| escape(&error.to_string()).to_string())
}

/// Returns the cause of a failed TCP or TLS connection.
pub(super) fn of_io(error: &io::Error) -> String {
    use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let cause = match inner {
        Some(AlertReceived(alert)) => of_alert(u8::from(*alert), false),
        Some(why @ InvalidCertificate(_)) => Some(reason(why)),
        Some(NoCertificatesPresented) => of_alert(116, true),
        Some(rustls::Error::InvalidMessage(_)) => Some("it does not speak TLS".to_owned()),
        Some(_) => None,
        None => of_kind(error.kind()).map(str::to_owned),
    };
    cause.unwrap_or_else(|| escape(&error.to_string()).to_string())
}

/// Returns the cause of the usual errors of a socket, each with a fix.
fn of_kind(kind: io::ErrorKind) -> Option<&'static str> {
    use io::ErrorKind as Kind;
    let causes = [
        (Kind::UnexpectedEof, SILENT),
        (Kind::ConnectionReset, SILENT),
        (Kind::BrokenPipe, SILENT),
        (
            Kind::ConnectionRefused,
            "connection refused: no program listens there; start the other node, or correct the address",
        ),
        (Kind::TimedOut, NO_ANSWER),
        (Kind::HostUnreachable, NO_ROUTE),
        (Kind::NetworkUnreachable, NO_ROUTE),
        (
            Kind::PermissionDenied,
            "permission denied: this user cannot write to the socket, or a firewall forbids the address",
        ),
    ];
    causes.into_iter().find(|(one, _)| *one == kind).map(|(_, cause)| cause)
}

/// Returns the cause in a TLS alert (RFC 8446, section 6.2). `own` states whether this end has sent it, about the
/// certificate of the other end.
fn of_alert(alert: u8, own: bool) -> Option<String> {
    let whose = if own { "its certificate" } else { "this node's certificate" };
    Some(match alert {
        42 => format!("{whose} is damaged or refers to another key"),
        43 => format!("{whose} is not for TLS clients"),
        44 => format!("{whose} was revoked"),
        45 => {
            format!("{whose} has expired or is not valid yet; compare the clocks of both hosts")
        }
        46 | 48 | 51 => {
            format!("another authority issued {whose}; compare tls_ca at both ends")
        }
        116 => "no certificate was presented".to_owned(),
        120 => "the other end is no Paceline link".to_owned(),
        _ => return None,
    })
}
