//! The key and the certificate of an authority, and the certificates that it issues.

use anyhow::{Context as _, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    PublicKeyData, RevokedCertParams, SerialNumber, SignatureAlgorithm,
};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
/// The issued certificates: a line each, with the name and the serial number.
const ISSUED: &str = "issued";
/// The revoked certificates, in the same form.
const REVOKED: &str = "revoked";
/// The policy that each node gets with its first certificate.
const POLICY: &str = "policy.toml";
const ALL_RIGHTS: &str = "\
# The rights of other nodes at this one. A node has the rights of all rules that name it, and no others.
# A change applies within 2 s. docs/guides/grant-rights.md explains all fields.

# Writes a log of the peers that join, and of grants, refusals and changes.
#audit = \"audit.jsonl\"

# Every member of the network may do everything. Replace this rule by narrower ones.
[[rule]]
peers = [\"*\"]
publish = [\"**\"]
subscribe = [\"**\"]
pull = [\"**\"]
set = [\"**\"]
observe = true
relay = true
";
/// The name of every authority. Its key distinguishes it.
const NAME: &str = "Paceline network authority";
const DAY: Duration = Duration::from_secs(86_400);
/// The validity of the authority's certificate.
const AUTHORITY_DAYS: u32 = 3_650;
/// Certificates are valid from this time before their issue, for hosts whose clock is behind.
const EARLIER: Duration = Duration::from_secs(3_600);

/// An opened authority.
pub(super) struct Authority {
    dir: PathBuf,
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
        write(&dir.join(POLICY), ALL_RIGHTS, 0o644)?;
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
        let dir = dir.to_owned();
        Ok(Self { dir, issuer: Issuer::new(params(valid_for(AUTHORITY_DAYS)?), key), certificate })
    }

    /// Issues a certificate to `name`, and writes it with its key and the authority's certificate to `out`.
    pub(super) fn issue(&self, name: &str, days: u32, out: &Path) -> anyhow::Result<()> {
        let key_file = out.join(format!("{name}.key"));
        // A renewed certificate keeps its key, so that the node can go on running.
        let pair = match fs::read_to_string(&key_file) {
            Ok(key) => KeyPair::from_pem(&key)
                .with_context(|| format!("{} is damaged; delete it", key_file.display()))?,
            Err(_) => KeyPair::generate()?,
        };
        let made = self.certify(name, days, &pair)?;
        write_key(out, name, &pair)?;
        self.files(name, made).write(out)
    }

    /// Issues a certificate for a public key of P-256 that another machine has created.
    pub(super) fn issue_to_key(
        &self,
        name: &str,
        days: u32,
        key: Vec<u8>,
    ) -> anyhow::Result<Issued> {
        let made = self.certify(name, days, &ForeignKey(key))?;
        Ok(self.files(name, made))
    }

    fn files(&self, name: &str, certificate: String) -> Issued {
        let policy = fs::read_to_string(self.dir.join(POLICY));
        let policy = policy.unwrap_or_else(|_| ALL_RIGHTS.to_owned());
        Issued { name: name.to_owned(), certificate, ca: self.certificate.clone(), policy }
    }

    /// Returns a certificate for a key, in PEM format.
    fn certify(&self, name: &str, days: u32, key: &impl PublicKeyData) -> anyhow::Result<String> {
        let serial = serial()?;
        self.note(ISSUED, name, &serial)?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let (from, until) = valid_for(days)?;
        (params.not_before, params.not_after) = (from.into(), until.into());
        Ok(params.signed_by(key, &self.issuer)?.pem())
    }

    /// Revokes all certificates of `name`, and adds the revocation list to the authority's certificate.
    pub(super) fn revoke(&self, name: &str) -> anyhow::Result<PathBuf> {
        let issued = self.noted(ISSUED);
        let its: Vec<_> = issued.iter().filter(|(its, _)| its == name).collect();
        if its.is_empty() {
            bail!(
                "no certificate was issued to {name}; {} lists the names",
                self.dir.join(ISSUED).display()
            );
        }
        for (name, serial) in its {
            self.note(REVOKED, name, serial)?;
        }
        let now = SystemTime::now();
        let revoked = self.noted(REVOKED).into_iter().map(|(_, serial)| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&serial),
            revocation_time: now.into(),
            reason_code: None,
            invalidity_date: None,
        });
        let number = now.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let list = CertificateRevocationListParams {
            this_update: (now - EARLIER).into(),
            next_update: valid_for(AUTHORITY_DAYS)?.1.into(),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer)?.pem()?;
        let end = "-----END CERTIFICATE-----\n";
        let own = self.certificate.find(end).map_or(self.certificate.len(), |at| at + end.len());
        let own = self.certificate.get(..own).unwrap_or_default();
        let file = self.dir.join(CERTIFICATE);
        write(&file, &format!("{own}{list}"), 0o644)?;
        Ok(file)
    }

    /// Adds a line to one of the authority's lists.
    fn note(&self, list: &str, name: &str, serial: &[u8]) -> anyhow::Result<()> {
        let path = self.dir.join(list);
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let cannot = || format!("cannot write {}", path.display());
        let hex: String = serial.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(opened.with_context(cannot)?, "{name} {hex}").with_context(cannot)
    }

    fn noted(&self, list: &str) -> Vec<(String, Vec<u8>)> {
        let text = fs::read_to_string(self.dir.join(list)).unwrap_or_default();
        let read = |line: &str| {
            let (name, hex) = line.split_once(' ')?;
            let byte = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
            let bytes = (0..hex.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>();
            Some((name.to_owned(), bytes?))
        };
        text.lines().filter_map(read).collect()
    }
}

/// The files of a node, except its key.
#[derive(Serialize, Deserialize)]
pub(super) struct Issued {
    /// The name in the certificate.
    pub(super) name: String,
    pub(super) certificate: String,
    /// The certificate of the authority.
    pub(super) ca: String,
    /// The first policy of the node.
    policy: String,
}

impl Issued {
    /// Writes the files to a folder. An existing policy stays.
    pub(super) fn write(&self, out: &Path) -> anyhow::Result<()> {
        write(&out.join(format!("{}.pem", self.name)), &self.certificate, 0o644)?;
        let policy = out.join(POLICY);
        if !policy.exists() {
            write(&policy, &self.policy, 0o644)?;
        }
        write(&out.join(CERTIFICATE), &self.ca, 0o644)
    }
}

/// A public key of the curve P-256, as an uncompressed point.
struct ForeignKey(Vec<u8>);

impl PublicKeyData for ForeignKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

/// Writes the key of a node to its folder, which is created.
pub(super) fn write_key(out: &Path, name: &str, key: &KeyPair) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    write(&out.join(format!("{name}.key")), &key.serialize_pem(), 0o600)
}

/// Returns a new serial number: random, positive, and of 16 bytes.
fn serial() -> anyhow::Result<Vec<u8>> {
    let mut serial = vec![0; 16];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut serial))?;
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x7f | 0x40;
    }
    Ok(serial)
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
