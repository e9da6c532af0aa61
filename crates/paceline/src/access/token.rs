//! Tokens of an identity provider: JSON Web Tokens (RFC 7519) that grant rights to one node.
//!
//! A token is for the node whose name is its subject; the node's certificate proves that name. The claim
//! `paceline` holds the rules. Only asymmetric signatures are accepted.

use super::rule::{Fields, rule, text};
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation, decode, decode_header};
use paceline_proto::NodeId;
use paceline_proto::rights::Rights;
use ring::signature as ring_signature;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The largest file of keys, in bytes.
const KEYS_BYTES_MAX: u64 = 1 << 20;
/// The difference of two hosts' clocks that is tolerated.
const LEEWAY: u64 = 30;
/// The most rules in one token.
const RULES_MAX: usize = 64;

/// The verification of a signature.
#[derive(Clone, Copy)]
enum Scheme {
    Key(&'static dyn ring_signature::VerificationAlgorithm),
    Rsa(&'static ring_signature::RsaParameters),
}

/// The signatures that are accepted, all asymmetric.
const SCHEMES: [(Algorithm, Scheme); 9] = [
    (Algorithm::EdDSA, Scheme::Key(&ring_signature::ED25519)),
    (Algorithm::ES256, Scheme::Key(&ring_signature::ECDSA_P256_SHA256_FIXED)),
    (Algorithm::ES384, Scheme::Key(&ring_signature::ECDSA_P384_SHA384_FIXED)),
    (Algorithm::RS256, Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256)),
    (Algorithm::RS384, Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384)),
    (Algorithm::RS512, Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512)),
    (Algorithm::PS256, Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256)),
    (Algorithm::PS384, Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384)),
    (Algorithm::PS512, Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512)),
];

fn scheme(algorithm: Algorithm) -> Option<Scheme> {
    SCHEMES.iter().find(|(known, _)| *known == algorithm).map(|(_, scheme)| *scheme)
}

/// An identity provider.
#[derive(Debug)]
pub(super) struct Issuer {
    /// The claim `iss` of its tokens.
    pub(super) name: String,
    /// The claim `aud` of its tokens for this network.
    pub(super) audience: String,
    pub(super) keys: JwkSet,
}

/// The node that shows a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer<'b> {
    /// The node.
    pub(crate) node: NodeId,
    /// The name in its certificate.
    pub(crate) name: &'b str,
}

impl Issuer {
    pub(super) fn read(mut fields: Fields, dir: &Path) -> Result<Self, String> {
        let mut needed = |name: &str, example: &str| {
            let value = fields.take(name, text)?;
            value.ok_or_else(|| format!("{name} is missing: set {name} = \"{example}\""))
        };
        let name = needed("name", "https://id.example.org")?;
        let audience = needed("audience", "paceline")?;
        let file = dir.join(needed("keys", "jwks.json")?);
        fields.finish("name, audience and keys")?;
        let cannot = |what: String| {
            format!(
                "keys {}: {what}; it must be a JSON Web Key Set with public keys",
                file.display()
            )
        };
        let size = std::fs::metadata(&file).map_err(|error| cannot(error.to_string()))?.len();
        if size > KEYS_BYTES_MAX {
            return Err(cannot(format!("{size} bytes, above {KEYS_BYTES_MAX}")));
        }
        let json = std::fs::read(&file).map_err(|error| cannot(error.to_string()))?;
        let keys: JwkSet =
            serde_json::from_slice(&json).map_err(|error| cannot(error.to_string()))?;
        let symmetric = |key: &&Jwk| {
            matches!(key.algorithm, jsonwebtoken::jwk::AlgorithmParameters::OctetKey(_))
        };
        if keys.keys.iter().any(|key| symmetric(&key)) {
            return Err(cannot(
                "it contains a symmetric key, with which anybody could sign".to_owned(),
            ));
        }
        if keys.keys.is_empty() {
            return Err(cannot("it contains no key".to_owned()));
        }
        Ok(Self { name, audience, keys })
    }
}

/// Returns the rights that a token grants to `bearer`, and their end.
pub(super) fn verify(
    issuers: &[Issuer],
    token: &[u8],
    bearer: &Bearer<'_>,
) -> Result<(Rights, SystemTime), String> {
    // An application that uses the same library may have set a provider of its own.
    let _ = RING.install_default();
    let header = decode_header(token).map_err(|error| reason(&error))?;
    if scheme(header.alg).is_none() {
        return Err(format!(
            "its algorithm is {:?}; only asymmetric ones are accepted",
            header.alg
        ));
    }
    let mut last = "no [[issuer]] of the policy has a key for it".to_owned();
    for issuer in issuers {
        let named = |key: &&Jwk| {
            header.kid.is_none() || key.common.key_id.is_none() || key.common.key_id == header.kid
        };
        for key in issuer.keys.keys.iter().filter(named) {
            let Ok(key) = DecodingKey::from_jwk(key) else { continue };
            if key.family() != header.alg.family() {
                continue;
            }
            match claims(issuer, token, &key, header.alg) {
                Ok(claims) => return granted(&claims, bearer),
                Err(error) => last = reason(&error),
            }
        }
    }
    Err(last)
}

fn claims(
    issuer: &Issuer,
    token: &[u8],
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Result<Value, Error> {
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_issuer(&[&issuer.name]);
    validation.set_audience(&[&issuer.audience]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    decode::<Value>(token, key, &validation).map(|token| token.claims)
}

/// Returns the rights in verified claims.
fn granted(claims: &Value, bearer: &Bearer<'_>) -> Result<(Rights, SystemTime), String> {
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    if subject != bearer.name {
        return Err(format!(
            "it was issued to '{subject}', and the certificate of node {} is for '{}'",
            bearer.node, bearer.name
        ));
    }
    let bound = claims.get("cnf").map(|cnf| cnf.get("kid").and_then(Value::as_str));
    if let Some(bound) = bound
        && bound != Some(&bearer.node.to_string())
    {
        return Err(format!("it is bound to another key than that of node {}", bearer.node));
    }
    let rules = match claims.get("paceline") {
        Some(Value::Array(rules)) if rules.len() <= RULES_MAX => rules.clone(),
        Some(Value::Array(rules)) => {
            return Err(format!("it has {} rules; must be at most {RULES_MAX}", rules.len()));
        }
        Some(one @ Value::Object(_)) => vec![one.clone()],
        Some(_) | None => {
            return Err(
                "its claim 'paceline' is missing: it must be a rule, or a list of rules".to_owned()
            );
        }
    };
    let read = |value: Value| {
        let Value::Object(fields) = value else { return Err(format!("{value} is no rule")) };
        rule(Fields::new(fields)).map(Arc::new)
    };
    let rules: Result<Vec<_>, String> = rules.into_iter().map(read).collect();
    let rules = rules.map_err(|what| format!("its claim 'paceline': {what}"))?;
    // The library has checked that it is a time in the future, with a leeway.
    let ends = claims.get("exp").and_then(Value::as_f64).unwrap_or_default();
    let ends = Duration::try_from_secs_f64(ends).unwrap_or_default() + Duration::from_secs(LEEWAY);
    Ok((Rights::of(rules), UNIX_EPOCH.checked_add(ends).unwrap_or(UNIX_EPOCH)))
}

/// Returns the cause and a remedy of a refused token. Contains no part of the token.
fn reason(error: &Error) -> String {
    let kind = error.kind();
    if let ErrorKind::MissingRequiredClaim(claim) = kind {
        return format!("its claim '{claim}' is missing");
    }
    if let ErrorKind::InvalidClaimFormat(claim) = kind {
        return format!("its claim '{claim}' has the wrong type");
    }
    let text = if matches!(kind, ErrorKind::ExpiredSignature) {
        "it has expired; request a new one, or compare the clocks of both hosts"
    } else if matches!(kind, ErrorKind::ImmatureSignature) {
        "it is not valid yet; compare the clock of this host with that of the issuer"
    } else if matches!(kind, ErrorKind::InvalidAudience) {
        "it is for another audience"
    } else if matches!(kind, ErrorKind::InvalidIssuer) {
        "another issuer made it"
    } else if matches!(kind, ErrorKind::InvalidSignature) {
        "its signature is wrong"
    } else {
        "it is no valid JSON Web Token with an asymmetric signature"
    };
    text.to_owned()
}

/// Verifies signatures with ring.
struct RingVerifier {
    key: DecodingKey,
    algorithm: Algorithm,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let wrong = |_| signature::Error::new();
        match (scheme(self.algorithm), self.key.kind()) {
            (Some(Scheme::Key(scheme)), DecodingKeyKind::SecretOrDer(key)) => {
                let key = ring_signature::UnparsedPublicKey::new(scheme, key);
                key.verify(message, signature).map_err(wrong)
            }
            (Some(Scheme::Rsa(scheme)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = ring_signature::RsaPublicKeyComponents { n, e };
                key.verify(scheme, message, signature).map_err(wrong)
            }
            (Some(_) | None, _) => Err(signature::Error::new()),
        }
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// The library's connection to ring, which this node uses for TLS as well.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        Ok(Box::new(RingVerifier { key: key.clone(), algorithm: *algorithm }))
    },
    key_utils: KeyUtils::new_unimplemented(),
};
