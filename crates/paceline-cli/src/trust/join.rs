//! `paceline trust join`: gets a certificate by the code of an invitation.

use super::authority::Issued;
use super::code::{Code, Hash, hash_of};
use super::exchange::{
    ANSWER_BYTES_MAX, Answer, Ask, EXCHANGE_WITHIN, Failure, provider, receive, send,
};
use anyhow::{Context as _, anyhow, bail};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Joins by an invitation: creates a key and returns it with the other files.
pub(super) fn join(address: &str, code: &Code) -> anyhow::Result<(KeyPair, Issued)> {
    let key = KeyPair::generate()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ask = Ask { secret: code.secret.to_vec(), key: key.der_bytes().to_vec() };
    let issued = runtime.block_on(async {
        let within = timeout(EXCHANGE_WITHIN, exchange(address, code, &ask)).await;
        within.unwrap_or_else(|_| {
            Err(anyhow!(
                "{address} did not answer within {} s; check that paceline trust invite waits there, and try again",
                EXCHANGE_WITHIN.as_secs()
            ))
        })
    })?;
    Ok((key, issued))
}

async fn exchange(address: &str, code: &Code, ask: &Ask) -> anyhow::Result<Issued> {
    let cannot = || format!("cannot reach {address}; does paceline trust invite wait there?");
    let addresses = paceline::resolve_address(address).map_err(anyhow::Error::msg);
    let addresses = addresses.with_context(cannot)?;
    let stream = TcpStream::connect(addresses.as_slice()).await.with_context(cannot)?;
    let provider = provider();
    let pinned = Pinned { hash: code.hash, provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    let tls = TlsConnector::from(Arc::new(config));
    let tls = tls.connect(ServerName::try_from("invite")?, stream).await;
    let mut tls = tls.map_err(|error| {
        if Failure::of(&error) == Failure::Closed {
            return closed(address);
        }
        anyhow!(
            "TLS with {address} failed: {error}; check the address and the code, or invite again"
        )
    })?;
    let answered = match send(&mut tls, ask).await {
        Ok(()) => receive(&mut tls, ANSWER_BYTES_MAX).await,
        Err(failure) => Err(failure),
    };
    match answered {
        Ok(Answer::Issued(issued)) => Ok(issued),
        Ok(Answer::Refused(why)) => bail!("the invitation is refused: {why}"),
        Err(Failure::Closed) => Err(closed(address)),
        Err(failure) => bail!("{address}: {failure}; try again"),
    }
}

fn closed(address: &str) -> anyhow::Error {
    anyhow!(
        "{address} closed the connection without an answer: the invitation has ended, or it has too many connections; \
         try again"
    )
}

/// Accepts the certificate of which a code contains the hash.
#[derive(Debug)]
struct Pinned {
    hash: Hash,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match hash_of(certificate) == self.hash {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General(
                "another end answers: its key is not in the code".to_owned(),
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
