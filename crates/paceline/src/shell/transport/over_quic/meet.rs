//! The introduction on a new connection: each end states the random number in its node id.

use crate::identity::{Identity, NONCE_BYTES, reason};
use paceline_proto::NodeId;
use paceline_proto::wire::VERSION;
use quinn::{Connection, ConnectionError};
use rustls::pki_types::CertificateDer;

/// Exchanges introductions; returns the id that the peer's certificate and number prove.
pub(super) async fn meet(connection: &Connection, identity: &Identity) -> Result<NodeId, String> {
    let failed = |error: &dyn std::fmt::Display| format!("no introduction: {error}");
    let mut out = connection.open_uni().await.map_err(|error| failed(&error))?;
    let hello = [&[VERSION][..], identity.nonce()].concat();
    out.write_all(&hello).await.map_err(|error| failed(&error))?;
    out.finish().map_err(|error| failed(&error))?;
    let mut into = connection.accept_uni().await.map_err(|error| failed(&error))?;
    let hello = into.read_to_end(64).await.map_err(|error| failed(&error))?;
    match hello.split_first() {
        Some((&VERSION, _)) => {}
        Some((version, _)) => {
            return Err(format!(
                "it uses wire format version {version}, this node uses {VERSION}; update the older one"
            ));
        }
        None => return Err("an empty introduction".to_owned()),
    }
    let nonce: Option<[u8; NONCE_BYTES]> = hello.get(1..).and_then(|it| it.try_into().ok());
    let nonce = nonce.ok_or("an introduction of the wrong length")?;
    let proof = chain(connection).unwrap_or_default();
    let leaf = proof.first().ok_or("it has no certificate")?;
    let node = Identity::id_of(leaf, &nonce).map_err(|error| reason(&error))?;
    if node == identity.id() {
        return Err("it is this node itself".to_owned());
    }
    Ok(node)
}

/// Returns the certificates that the peer has presented.
pub(super) fn chain(connection: &Connection) -> Option<Vec<CertificateDer<'static>>> {
    connection.peer_identity()?.downcast().ok().map(|chain| *chain)
}

/// Returns the cause of a refused connection, as seen from either end.
pub(super) fn cause(error: &ConnectionError) -> String {
    let code = match error {
        ConnectionError::TransportError(error) => u64::from(error.code),
        ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
        ConnectionError::ApplicationClosed(close) => {
            return String::from_utf8_lossy(&close.reason).into_owned();
        }
        ConnectionError::TimedOut => return "no answer".to_owned(),
        ConnectionError::VersionMismatch
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => return error.to_string(),
    };
    // TLS alerts are errors 0x100 to 0x1ff (RFC 9001, section 4.8).
    let own = matches!(error, ConnectionError::TransportError(_));
    let whose = if own { "its certificate" } else { "this node's certificate" };
    match code.checked_sub(0x100) {
        Some(42) => format!("{whose} is damaged or refers to another key"),
        Some(43) => format!("{whose} is not for TLS clients"),
        Some(44) => format!("{whose} was revoked"),
        Some(45) => {
            format!("{whose} has expired or is not valid yet; compare the clocks of both hosts")
        }
        Some(46 | 48 | 51) => {
            format!("another authority issued {whose}; compare tls_ca at both ends")
        }
        Some(116) => "no certificate was presented".to_owned(),
        Some(120) => "the other end is no Paceline link".to_owned(),
        _ => error.to_string(),
    }
}
