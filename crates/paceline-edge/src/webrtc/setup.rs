//! What all peers of a server share: its certificate, and the addresses that it offers.

use super::offer::{OfferError, WebrtcOffer};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;
use str0m::bwe::Bitrate;
use str0m::config::{CryptoProvider, DtlsCert};
use str0m::crypto::from_feature_flags;
use str0m::{Candidate, Rtc, RtcConfig};

/// The rate with which congestion control begins, in bit/s.
const INITIAL_BITS: u64 = 4_000_000;
/// The target of the size of packets of DTLS and SCTP in bytes, and the largest size of all. Above 2,000, str0m 0.25.0 panics when it
/// pads.
const PACKET_BYTES: RangeInclusive<usize> = 1_150..=1_450;

/// The certificate and the addresses of a server.
#[derive(Clone, Debug)]
pub struct PeerSetup {
    certificate: DtlsCert,
    provider: Arc<CryptoProvider>,
    /// The addresses that peers try; the first one stands for the socket.
    addresses: Vec<SocketAddr>,
}

impl PeerSetup {
    /// Returns the setup of a server with a new certificate. Peers connect to one of `addresses` over UDP; all of them lead to one
    /// socket.
    ///
    /// # Errors
    /// Errors without an address, or if no certificate can be created.
    pub fn new(addresses: Vec<SocketAddr>) -> Result<Self, String> {
        if addresses.is_empty() {
            return Err("there is no address for peers".to_owned());
        }
        let provider = from_feature_flags();
        let certificate = provider.dtls_provider.generate_certificate();
        let certificate = certificate.ok_or("no certificate can be created")?;
        Ok(Self { certificate, provider: Arc::new(provider), addresses })
    }

    /// Returns the address that stands for the socket.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.addresses.first().copied()
    }

    /// Returns the addresses that peers try.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a session that has not accepted its offer.
    pub(super) fn open(
        &self,
        offer: &WebrtcOffer,
        now: Instant,
        codecs: impl FnOnce(RtcConfig) -> RtcConfig,
    ) -> Result<Rtc, OfferError> {
        let config = RtcConfig::new()
            .set_crypto_provider(self.provider.clone())
            .set_dtls_cert(self.certificate.clone())
            .set_ice_lite(true)
            .set_mtu(PACKET_BYTES)
            .set_stats_interval(Some(std::time::Duration::from_secs(1)))
            .clear_codecs();
        let mut config = codecs(config);
        // Without reports of arrivals, the estimate would stay at its first value.
        if offer.has_feedback {
            config = config.enable_bwe(Some(Bitrate::from(INITIAL_BITS)));
        }
        let mut rtc = config.build(now);
        for address in &self.addresses {
            let candidate = Candidate::host(*address, "udp").map_err(OfferError::sdp)?;
            rtc.add_local_candidate(candidate);
        }
        Ok(rtc)
    }
}
