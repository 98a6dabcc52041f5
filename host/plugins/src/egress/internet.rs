//! The real network: names resolved by the host, connections only to addresses that were checked, TLS with Mozilla's
//! roots. Each plug-in has its own, so connections are never shared between plug-ins.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use plimsoll_grants::config::{NetworkConfig, ProxyConfig};
use plimsoll_grants::{AddressPolicy, Alias, ClosedAddress, Environment, Proxy};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError};
use rustls::{ClientConfig, RootCertStore};

use super::transport::{ReplyBody, Transport, TransportError};
use crate::Pending;

/// Finds the addresses of names.
pub trait Resolver: Send + Sync {
    /// All addresses of a name.
    fn resolve(&self, name: String) -> Pending<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: String) -> Pending<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect()) })
    }
}

/// How to reach the internet.
#[derive(Clone)]
pub struct InternetOptions {
    /// Finds addresses.
    pub resolver: Arc<dyn Resolver>,
    /// Roots that are trusted besides Mozilla's, in PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
    /// How long a connection may take, TLS included.
    pub connect_timeout: Duration,
    /// Names that are not looked up, because the operator says where they are.
    pub aliases: Vec<Alias>,
    /// A proxy in between. It resolves names, so addresses of names are then not checked here.
    pub proxy: Option<Proxy>,
}

/// Idle connections that are kept to one host, and for how long.
const MOST_IDLE: usize = 4;
const IDLE: Duration = Duration::from_secs(60);
/// Largest head of an HTTP/2 response.
const MOST_HEAD_BYTES: u32 = 64 << 10;

impl Default for InternetOptions {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            extra_roots_pem: None,
            connect_timeout: Duration::from_secs(5),
            aliases: vec![],
            proxy: None,
        }
    }
}

impl InternetOptions {
    /// As the operator's file says. Reads the file of roots.
    ///
    /// # Errors
    /// If that cannot be read, or the environment's proxy makes no sense.
    pub fn of(network: &NetworkConfig, environment: &Environment) -> Result<Self, String> {
        let proxy = match &network.proxy {
            ProxyConfig::Direct => None,
            ProxyConfig::Environment => Proxy::from_environment(environment)
                .map_err(|error| format!("HTTPS_PROXY or NO_PROXY cannot be used: {error}"))?,
            ProxyConfig::Given(proxy) => Some(proxy.clone()),
        };
        let roots = |path: &PathBuf| {
            let fail = |error| format!("network.extra-ca-file: {} cannot be read: {error}", path.display());
            std::fs::read(path).map_err(fail)
        };
        let extra_roots_pem = network.extra_ca_file.as_ref().map(roots).transpose()?;
        let aliases = network.host_aliases.clone();
        Ok(Self { extra_roots_pem, aliases, proxy, ..Self::default() })
    }
}

/// Why the network cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum InternetError {
    /// The extra roots are not certificates.
    #[error(
        "the extra certificates cannot be used: {0}; expected PEM blocks that begin with -----BEGIN CERTIFICATE-----"
    )]
    Roots(String),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// The network of one plug-in.
#[derive(Clone, Debug)]
pub struct Internet {
    direct: reqwest::Client,
    proxied: Option<(Proxy, reqwest::Client)>,
}

impl Internet {
    /// A network that reaches what the policy allows.
    ///
    /// # Errors
    /// If the extra roots are no certificates, or the client cannot be made.
    pub fn new(policy: AddressPolicy, options: InternetOptions) -> Result<Self, InternetError> {
        let tls = tls(options.extra_roots_pem.as_deref())?;
        let builder = || {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(Policy::none())
                .no_proxy()
                .referer(false)
                .pool_max_idle_per_host(MOST_IDLE)
                .pool_idle_timeout(IDLE)
                .http2_max_header_list_size(MOST_HEAD_BYTES)
                .connect_timeout(options.connect_timeout)
        };
        let built = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| InternetError::Client(format!("{:?}", error.without_url())))
        };
        let vetted =
            Vetted { policy: Arc::new(policy), resolver: options.resolver.clone(), aliases: options.aliases.clone() };
        let direct = built(builder().dns_resolver(Arc::new(vetted)))?;
        let proxied = match options.proxy.clone() {
            Some(proxy) => {
                let through = reqwest::Proxy::all(proxy.url().clone())
                    .map_err(|error| InternetError::Client(format!("{:?}", error.without_url())))?;
                // All that this client ever resolves is the proxy's own name.
                let policy = Arc::new(AddressPolicy::everything());
                let anywhere = Vetted { policy, resolver: options.resolver, aliases: options.aliases };
                Some((proxy, built(builder().proxy(through).dns_resolver(Arc::new(anywhere)))?))
            }
            None => None,
        };
        Ok(Self { direct, proxied })
    }

    fn client(&self, request: &reqwest::Request) -> &reqwest::Client {
        match (&self.proxied, request.url().host()) {
            (Some((proxy, client)), Some(host)) if proxy.serves(&host) => client,
            _ => &self.direct,
        }
    }
}

fn tls(extra_roots_pem: Option<&[u8]>) -> Result<ClientConfig, InternetError> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(pem) = extra_roots_pem {
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| InternetError::Roots(error.to_string()))?;
            roots.add(certificate).map_err(|error| InternetError::Roots(error.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(InternetError::Roots("there is none in it".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| InternetError::Client(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Hands out only addresses that the policy allows; the client connects to exactly these.
struct Vetted {
    policy: Arc<AddressPolicy>,
    resolver: Arc<dyn Resolver>,
    aliases: Vec<Alias>,
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy.clone();
        if let Some(address) = self.aliases.iter().find_map(|alias| alias.of(name.as_str())) {
            return Box::pin(async move {
                policy.check(address.ip())?;
                Ok(Box::new(std::iter::once(address)) as Addrs)
            });
        }
        let found = self.resolver.resolve(name.as_str().to_owned());
        Box::pin(async move {
            let mut closed = None;
            let mut open = vec![];
            for address in found.await? {
                match policy.check(address) {
                    Ok(()) => open.push(SocketAddr::new(address, 0)),
                    Err(error) => closed = Some(error),
                }
            }
            match closed {
                Some(error) if open.is_empty() => Err(error.into()),
                _ if open.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into()),
                _ => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

impl Transport for Internet {
    fn send(&self, request: Request<Bytes>) -> Pending<'_, Result<Response<ReplyBody>, TransportError>> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request).map_err(explain)?;
            let response = self.client(&request).execute(request).await.map_err(explain)?;
            let response = Response::<reqwest::Body>::from(response);
            Ok(response.map(|body| body.map_err(explain).boxed_unsync()))
        })
    }
}

/// The error and everything below it. An error of input and output hides what it wraps from `source`.
fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &'a (dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    })
}

fn cause<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref::<E>())
}

/// The innermost cause decides what it was.
fn explain(error: reqwest::Error) -> TransportError {
    // The address may hold a signature.
    let error = &error.without_url();
    let innermost = causes(error).last().map(ToString::to_string).unwrap_or_default();
    if let Some(closed) = cause::<ClosedAddress>(error) {
        return TransportError::Closed(closed.clone());
    }
    if cause::<rustls::Error>(error).is_some() || cause::<InvalidDnsNameError>(error).is_some() {
        return TransportError::Tls(innermost);
    }
    if error.is_connect() && error.is_timeout() {
        return TransportError::ConnectTimeout;
    }
    if error.is_dns() {
        return TransportError::Unresolved(innermost);
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => TransportError::Refused,
        Some(_) => TransportError::Broken(innermost),
        None if error.is_request() || error.is_body() || error.is_decode() => TransportError::Broken(innermost),
        None => TransportError::Other(innermost),
    }
}
