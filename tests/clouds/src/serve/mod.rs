//! A cloud behind sockets: TLS with a certificate authority of its own, plain HTTP beside it, and `/_ctl/` for tests.

mod body;
mod control;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use crate::answer::{Answer, response};
use crate::fake::Cloud;
use body::Sent;
pub use tls::Authority;

/// Longest request body that is read.
const REQUEST_LIMIT_BYTES: usize = 1 << 20;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address for TLS; port 0 takes any.
    pub listen: SocketAddr,
    /// Address for plain HTTP; port 0 takes any.
    pub listen_plain: SocketAddr,
    /// Where the certificate of the authority goes, in PEM.
    pub ca_out: PathBuf,
    /// Virtual seconds in a real one; zero: time moves by `/_ctl/advance` alone.
    pub speed: f64,
}

/// A cloud that several connections share.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Box<dyn Cloud + Send>>>);

impl Shared {
    /// Share a cloud.
    pub fn new(cloud: Box<dyn Cloud + Send>) -> Self {
        Self(Arc::new(Mutex::new(cloud)))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Cloud + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sockets that are open.
pub struct Server {
    cloud: Shared,
    tls: tokio_rustls::TlsAcceptor,
    encrypted: TcpListener,
    plain: TcpListener,
    speed: f64,
}

impl Server {
    /// Open the sockets and write the authority's certificate.
    ///
    /// # Errors
    /// An address cannot be listened on, or the file cannot be written.
    pub async fn open(cloud: Box<dyn Cloud + Send>, options: &Options) -> anyhow::Result<Self> {
        let authority = Authority::new(&cloud.hosts())?;
        let path = &options.ca_out;
        std::fs::write(path, &authority.pem).with_context(|| format!("cannot write {}", path.display()))?;
        let cloud = Shared::new(cloud);
        let tls = authority.acceptor(cloud.clone())?;
        let open = |address: SocketAddr| async move {
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
        };
        let (encrypted, plain) = (open(options.listen).await?, open(options.listen_plain).await?);
        Ok(Self { cloud, tls, encrypted, plain, speed: options.speed })
    }

    /// Addresses: TLS, plain.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn addresses(&self) -> anyhow::Result<(SocketAddr, SocketAddr)> {
        Ok((self.encrypted.local_addr()?, self.plain.local_addr()?))
    }

    /// Serve until the process ends.
    pub async fn run(self) {
        tokio::join!(
            accept(self.encrypted, self.cloud.clone(), Some(self.tls)),
            accept(self.plain, self.cloud.clone(), None),
            pass_time(self.cloud, self.speed)
        );
    }
}

/// Real seconds become virtual ones.
async fn pass_time(cloud: Shared, speed: f64) {
    if speed <= 0.0 {
        return;
    }
    let step = Duration::from_millis(100);
    let mut clock = tokio::time::interval(step);
    loop {
        clock.tick().await;
        cloud.lock().advance(step.mul_f64(speed));
    }
}

async fn accept(listener: TcpListener, cloud: Shared, tls: Option<tokio_rustls::TlsAcceptor>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (cloud, tls) = (cloud.clone(), tls.clone());
        tokio::spawn(async move { connection(stream, cloud, tls).await });
    }
}

/// A connection that breaks is the client's to see; there is nobody to tell here.
async fn connection(stream: TcpStream, cloud: Shared, tls: Option<tokio_rustls::TlsAcceptor>) {
    match tls {
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                speak(stream, cloud, "https").await;
            }
        }
        None => speak(stream, cloud, "http").await,
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin, cloud: Shared, scheme: &'static str) {
    let service = service_fn(move |request| {
        let cloud = cloud.clone();
        async move { answer(request, &cloud, scheme).await }
    });
    let _ended = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The client gets no answer: the connection is closed.
#[derive(Debug, thiserror::Error)]
#[error("no answer, on purpose")]
struct NoAnswer;

async fn answer(request: Request<Incoming>, cloud: &Shared, scheme: &str) -> Result<Response<Sent>, NoAnswer> {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, REQUEST_LIMIT_BYTES).collect().await else {
        return Ok(body::whole(response(413, "text/plain", "the request is too long")));
    };
    let body = body.to_bytes();
    if let Some(rest) = parts.uri.path().strip_prefix("/_ctl/") {
        let query = parts.uri.query().unwrap_or_default();
        return Ok(body::whole(control::answer(&mut **cloud.lock(), &parts.method, rest, query, &body)));
    }
    parts.uri = absolute(&parts, scheme).unwrap_or_else(|| parts.uri.clone());
    let answer = cloud.lock().handle(Request::from_parts(parts, body));
    match answer {
        Answer::Reply(reply) => Ok(body::paced(*reply).await),
        Answer::Refused | Answer::NoAddress | Answer::WrongName | Answer::Reset => Err(NoAnswer),
    }
}

fn absolute(parts: &http::request::Parts, scheme: &str) -> Option<Uri> {
    let host = parts.headers.get("host")?.to_str().ok()?;
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    format!("{scheme}://{host}{path}").parse().ok()
}
