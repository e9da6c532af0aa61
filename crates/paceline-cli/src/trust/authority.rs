//! The key and the certificate of an authority, and the certificates that it issues.

use anyhow::{Context as _, bail};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
/// The name of every authority. Its key distinguishes it.
const NAME: &str = "Paceline network authority";
const DAY: Duration = Duration::from_secs(86_400);
/// The validity of the authority's certificate.
const AUTHORITY_DAYS: u32 = 3_650;
/// Certificates are valid from this time before their issue, for hosts whose clock is behind.
const EARLIER: Duration = Duration::from_secs(3_600);

/// An opened authority.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// Creates an authority in a new folder, which only this user can read.
    pub(super) fn create(dir: &Path) -> anyhow::Result<()> {
        let (certificate, key) = (dir.join(CERTIFICATE), dir.join(KEY));
        if certificate.exists() || key.exists() {
            bail!(
                "{} already contains an authority; give another --dir, or delete it, which ends the network that uses it",
                dir.display()
            );
        }
        let pair = KeyPair::generate()?;
        let made = params(valid_for(AUTHORITY_DAYS)?).self_signed(&pair)?;
        let mut builder = fs::DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(dir);
        created.with_context(|| format!("cannot create {}", dir.display()))?;
        write(&key, &pair.serialize_pem(), 0o600)?;
        write(&certificate, &made.pem(), 0o644)
    }

    /// Opens the authority in a folder.
    pub(super) fn open(dir: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).with_context(|| {
                format!(
                    "no authority: cannot read {}; create one with paceline trust init, or give its folder with --dir",
                    path.display()
                )
            })
        };
        let (certificate, key) = (read(CERTIFICATE)?, read(KEY)?);
        let key = KeyPair::from_pem(&key);
        let key = key.with_context(|| format!("{} is damaged", dir.join(KEY).display()))?;
        Ok(Self { issuer: Issuer::new(params(valid_for(AUTHORITY_DAYS)?), key), certificate })
    }

    /// Issues a certificate to `name`, and writes it with its key and the authority's certificate to `out`.
    pub(super) fn issue(&self, name: &str, days: u32, out: &Path) -> anyhow::Result<()> {
        let pair = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let (from, until) = valid_for(days)?;
        (params.not_before, params.not_after) = (from.into(), until.into());
        let made = params.signed_by(&pair, &self.issuer)?;
        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        write(&out.join(format!("{name}.key")), &pair.serialize_pem(), 0o600)?;
        write(&out.join(format!("{name}.pem")), &made.pem(), 0o644)?;
        write(&out.join(CERTIFICATE), &self.certificate, 0o644)
    }
}

/// Returns the parameters of an authority. The issuer's name in certificates comes from them.
fn params((from, until): (SystemTime, SystemTime)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = (from.into(), until.into());
    params
}

fn valid_for(days: u32) -> anyhow::Result<(SystemTime, SystemTime)> {
    let now = SystemTime::now();
    let whole = |at: SystemTime| at.checked_add(DAY * days).context("the validity is too long");
    Ok((now - EARLIER, whole(now)?))
}

/// Writes a file with these permissions; replaces an existing one.
fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if path.exists() {
        fs::remove_file(path).with_context(cannot)?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    opened.with_context(cannot)?.write_all(text.as_bytes()).with_context(cannot)
}
