//! Certificates: an authority made anew at each start, one certificate for all names of the cloud, one for no name of it.

use std::fmt;
use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::Shared;
use crate::faults::Fault;

/// An authority and what it has signed.
pub struct Authority {
    /// Its certificate, in PEM.
    pub pem: String,
    right: Arc<CertifiedKey>,
    wrong: Arc<CertifiedKey>,
}

impl Authority {
    /// A new authority with a certificate for these names.
    ///
    /// # Errors
    /// A name cannot be in a certificate.
    pub fn new(names: &[String]) -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "clouds in memory, for tests only");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut all = names.to_vec();
        all.extend(["localhost", "127.0.0.1"].map(str::to_owned));
        let right = sign(&issuer, all)?;
        let wrong = sign(&issuer, vec!["wrong-name.invalid".to_owned()])?;
        Ok(Self { pem: issuer.pem(), right, wrong })
    }

    /// What takes TLS connections for a cloud.
    ///
    /// # Errors
    /// The protocol versions are not there.
    pub(super) fn acceptor(self, cloud: Shared) -> anyhow::Result<tokio_rustls::TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let choice = Choice { right: self.right, wrong: self.wrong, cloud };
        let config = config.with_no_client_auth().with_cert_resolver(Arc::new(choice));
        Ok(Arc::new(config).into())
    }
}

fn sign(issuer: &CertifiedIssuer<'_, KeyPair>, names: Vec<String>) -> anyhow::Result<Arc<CertifiedKey>> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names).context("a host name cannot be in a certificate")?;
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, issuer)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let private = rustls::crypto::ring::sign::any_supported_type(&private)?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], private)))
}

/// The right certificate, unless a fault wants the wrong one.
struct Choice {
    right: Arc<CertifiedKey>,
    wrong: Arc<CertifiedKey>,
    cloud: Shared,
}

impl fmt::Debug for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Choice")
    }
}

impl ResolvesServerCert for Choice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default();
        let mut cloud = self.cloud.lock();
        let now = cloud.now();
        let mut rules = cloud.faults().rules().iter();
        let wrong = rules.any(|rule| rule.fault == Fault::WrongName && rule.concerns_host(name, now));
        Some(if wrong { self.wrong.clone() } else { self.right.clone() })
    }
}
