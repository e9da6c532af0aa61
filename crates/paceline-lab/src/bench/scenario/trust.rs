//! The certificates of nodes whose links use QUIC.

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything is allowed to all nodes.
const POLICY: &str = "[[rule]]\npeers = ['*', '@unknown']\npublish = '**'\nsubscribe = '**'\npull = '**'\nset = '**'\n\
                      observe = true\nrelay = true\n";

/// A folder with a certificate for each node; dropping it removes the folder.
pub(crate) struct Certificates(PathBuf);

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Certificates {
    /// Issues the certificates of nodes with these names. A process has one set at a time.
    pub(crate) fn issue<'n>(names: impl Iterator<Item = &'n str>) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("paceline-scene-{}", std::process::id()));
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let made = Self(dir);
        let key = KeyPair::generate()?;
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(made.0.join("ca.pem"), authority.self_signed(&key)?.pem())?;
        fs::write(made.policy(), POLICY)?;
        let issuer = Issuer::new(authority, key);
        for name in names {
            let key = KeyPair::generate()?;
            let mut member = CertificateParams::new(vec![name.to_owned()])?;
            member.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let [cert, private, _] = made.files(name);
            fs::write(private, key.serialize_pem())?;
            fs::write(cert, member.signed_by(&key, &issuer)?.pem())?;
        }
        Ok(made)
    }

    /// Returns the certificate, the key and the authority of a node.
    pub(crate) fn files(&self, node: &str) -> [PathBuf; 3] {
        let file = |end: &str| self.0.join(format!("{node}.{end}"));
        [file("pem"), file("key"), self.0.join("ca.pem")]
    }

    /// Returns the policy of all nodes.
    pub(crate) fn policy(&self) -> PathBuf {
        Path::new(&self.0).join("policy.toml")
    }
}
