//! The introduction at the start of each connection, with which both ends state and prove their ids.

use crate::identity::{INTRODUCTION_BYTES, Introduction};
use paceline_proto::NodeId;
use paceline_proto::wire::VERSION;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The first bytes in each direction.
const MAGIC: [u8; 4] = *b"PACE";
const HELLO_BYTES: usize = MAGIC.len() + 1 + INTRODUCTION_BYTES;

/// Exchanges introductions; returns the id of the other end. `proof` is its certificate, if it has shown one.
pub(super) async fn meet(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    own: &Introduction,
    proof: Option<&CertificateDer<'_>>,
) -> Result<NodeId, String> {
    let hello = [&MAGIC[..], &[VERSION], &own.to_bytes()].concat();
    let closed = |error: std::io::Error| super::cause::of_io(&error);
    writer.write_all(&hello).await.map_err(closed)?;
    writer.flush().await.map_err(closed)?;
    let mut hello = [0; HELLO_BYTES];
    let (head, introduction) = hello.split_at_mut(MAGIC.len() + 1);
    reader.read_exact(head).await.map_err(closed)?;
    match head.split_first_chunk() {
        Some((&MAGIC, [VERSION])) => {}
        Some((&MAGIC, version)) => {
            let version = version.first().copied().unwrap_or_default();
            return Err(format!(
                "it uses wire format version {version}, this node uses {VERSION}; update the older one"
            ));
        }
        _ => {
            return Err("it does not speak Paceline here; compare the protocols at both ends (plain Zenoh programs connect to the \
                        endpoints of [plain])"
                .to_owned());
        }
    }
    reader.read_exact(introduction).await.map_err(closed)?;
    let introduction = Introduction::from_bytes(introduction).ok_or("a short introduction")?;
    if let Some(proof) = proof {
        introduction.check(proof)?;
    }
    if introduction.id() == own.id() {
        return Err("it is this node itself".to_owned());
    }
    Ok(introduction.id())
}
