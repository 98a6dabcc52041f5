//! An API server for tests: a function that answers requests, and watches that say what they are told to.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// What is answered.
pub(crate) enum Says {
    /// This object.
    Object(Value),
    /// A failure with this code.
    Fails(u16),
    /// The lines that come, until the sender is gone.
    Lines(mpsc::UnboundedReceiver<String>),
    /// Nothing, ever.
    Nothing,
}

/// All requests so far.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<Asked>>>);

impl Journal {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.all().iter().filter(|asked| asked.method == method).count()
    }
}

/// A client whose requests this function answers.
pub(crate) fn client(answer: impl Fn(&Asked) -> Says + Send + Sync + 'static) -> (Client, Journal) {
    let journal = Journal::default();
    let answer = Arc::new(answer);
    let kept = journal.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, journal) = (answer.clone(), kept.clone());
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.map_err(|error| error.to_string()).unwrap().to_bytes();
            let asked = Asked {
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            };
            journal.0.lock().unwrap().push(asked.clone());
            let said = answer(&asked);
            if matches!(said, Says::Nothing) {
                std::future::pending::<()>().await;
            }
            Ok::<_, std::convert::Infallible>(respond(said))
        }
    });
    (Client::new(service, "default"), journal)
}

fn respond(said: Says) -> Answer {
    let whole = |code: u16, value: Value| {
        let frame = Ok(Frame::data(Bytes::from(value.to_string())));
        let body = StreamBody::new(stream::iter([frame])).boxed_unsync();
        Response::builder().status(code).body(body).unwrap()
    };
    match said {
        Says::Object(value) => whole(200, value),
        Says::Fails(code) => {
            whole(code, json!({"kind": "Status", "status": "Failure", "code": code, "message": format!("code {code}")}))
        }
        Says::Lines(lines) => {
            let frames = stream::unfold(lines, |mut lines| async move {
                let line = lines.recv().await?;
                Some((Ok(Frame::data(Bytes::from(format!("{line}\n")))), lines))
            });
            Response::new(StreamBody::new(frames.boxed()).boxed_unsync())
        }
        Says::Nothing => whole(500, Value::Null),
    }
}

/// A list of objects at a version.
pub(crate) fn list(version: u32, items: &[Value], next: Option<&str>) -> Says {
    Says::Object(json!({"metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": items}))
}

/// A node.
pub(crate) fn node(name: &str, version: u32, taints: Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
        "spec": {"taints": taints},
        "status": {"capacity": {"cpu": "2"}},
    })
}

/// Waits until something holds, in virtual time.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it never came to hold");
}
