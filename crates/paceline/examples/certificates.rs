//! Connects two nodes over QUIC with certificates, as `paceline trust` makes them, and grants the operator one tag of two.

use paceline::{LinkConfig, Node, SubscriberEvent};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const POLICY: &str = "[[rule]]\npeers = ['operator']\nsubscribe = ['robot/camera']\n";

/// Writes an authority, and a certificate with a key for each node.
fn certificates(dir: &Path, nodes: [&str; 2]) -> Result<(), Box<dyn Error>> {
    let (root, mut authority) = (KeyPair::generate()?, CertificateParams::default());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(dir.join("ca.pem"), authority.self_signed(&root)?.pem())?;
    let issuer = Issuer::new(authority, root);
    for name in nodes {
        let (key, mut node) = (KeyPair::generate()?, CertificateParams::new([name.to_owned()])?);
        node.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        std::fs::write(dir.join(format!("{name}.pem")), node.signed_by(&key, &issuer)?.pem())?;
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("paceline-certificates-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    certificates(&dir, ["robot", "operator"])?;
    std::fs::write(dir.join("policy.toml"), POLICY)?;
    let port = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let file = |name: &str, end: &str| dir.join(format!("{name}.{end}"));
    let link = |name| {
        LinkConfig::new("radio").tls(file(name, "pem"), file(name, "key"), file("ca", "pem"))
    };
    let robot = Node::builder().name("robot").isolated().policy(dir.join("policy.toml"));
    let robot = robot.link(link("robot").listen(&format!("quic/{port}"))).open()?;
    let operator = Node::builder().name("operator").isolated();
    let operator = operator.link(link("operator").connect(&format!("quic/{port}"))).open()?;

    let mut camera = robot.publisher("robot/camera").declare()?;
    let _secret = robot.publisher("robot/secret").declare()?;
    let mut pictures = operator.subscriber("robot/camera").declare()?;
    let secrets = operator.subscriber("robot/secret").declare()?;
    if camera.wait_matching(SOON) {
        camera.put("a picture")?;
        println!("robot/camera: {:?}", pictures.recv_timeout(SOON)?.payload);
    }
    std::thread::sleep(Duration::from_millis(500));
    while let Some(event) = secrets.try_event() {
        if let SubscriberEvent::Refused(_, refusal) = event {
            println!("robot/secret: {refusal}");
        }
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
