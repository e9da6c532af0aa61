//! What a peer has shown about itself.

use super::account;
use crate::identity::certified_name;
use paceline_proto::rights::PeerName;
use rustls::pki_types::CertificateDer;

/// What a peer has shown about itself.
#[derive(Clone, Debug)]
pub(super) enum Proof {
    /// Nothing, over TCP from other hosts.
    Nothing,
    /// Its certificate, with intermediates.
    Certificates(Vec<CertificateDer<'static>>),
    /// The account of its process, within the host.
    User(u32),
}

impl Proof {
    /// Returns the certificates, if there are any.
    pub(super) fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match self {
            Self::Certificates(chain) => Some(chain),
            Self::Nothing | Self::User(_) => None,
        }
    }

    /// Returns the name that this proves.
    pub(super) fn name(&self) -> Option<PeerName> {
        match self {
            Self::Nothing => None,
            Self::Certificates(chain) => {
                chain.first().and_then(certified_name).map(PeerName::Certified)
            }
            Self::User(user) if account::is_own(*user) => Some(PeerName::Host),
            Self::User(user) => Some(PeerName::User(account::name(*user))),
        }
    }

    /// Returns the name of the account, if it is another one than that of this process.
    pub(super) fn other_user(&self) -> Option<String> {
        match self {
            Self::User(user) if !account::is_own(*user) => Some(account::name(*user)),
            Self::User(_) | Self::Nothing | Self::Certificates(_) => None,
        }
    }
}
