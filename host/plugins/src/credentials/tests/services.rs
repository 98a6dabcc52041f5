//! A token service and a metadata service with a journal, and switches for everything that may go wrong.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use plimsoll_model::Time;

use crate::clock::{Clock as _, VirtualClock};
use crate::credentials::alicloud::{Nonces, date};
use crate::credentials::{Broker, CredentialError, Environment};
use crate::egress::{InProcess, TransportError};

/// 2024-06-01T08:30:00Z.
pub(super) const START: i64 = 1_717_230_600;

/// 0, 1, 2 …
#[derive(Default)]
pub(super) struct Counting(AtomicU64);

impl Nonces for Counting {
    fn next(&self) -> Result<String, CredentialError> {
        Ok(format!("{:032}", self.0.fetch_add(1, Ordering::SeqCst)))
    }
}

/// What a service does with the next questions.
#[derive(Clone, Debug)]
pub(super) enum Mood {
    Fine,
    Down,
    Says(u16, String),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) sts: Mood,
    pub(super) life_seconds: u64,
    /// Metadata: the answer to a PUT for a session token.
    pub(super) session: Mood,
    /// Metadata: refuse questions without a session token.
    pub(super) only_v2: bool,
    pub(super) role: Option<&'static str>,
    pub(super) asked: Vec<Asked>,
    made: u32,
}

/// A question that a service got.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) form: BTreeMap<String, String>,
    pub(super) headers: http::HeaderMap,
}

#[derive(Clone)]
pub(super) struct Services {
    pub(super) clock: VirtualClock,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) environment: Environment,
}

impl Services {
    pub(super) fn new() -> Self {
        let state = State {
            sts: Mood::Fine,
            life_seconds: 3600,
            session: Mood::Fine,
            only_v2: false,
            role: Some("autoscaler"),
            asked: vec![],
            made: 0,
        };
        Self {
            clock: VirtualClock::new(Time::from_millis(START * 1000)),
            state: Arc::new(Mutex::new(state)),
            environment: Environment::empty(),
        }
    }

    pub(super) fn broker(&self) -> Broker {
        let services = self.clone();
        let transport = InProcess::faulty(move |request| {
            let answer = services.answer(&request);
            async move { answer }
        });
        let nonces = Arc::new(Counting::default());
        Broker::with(Arc::new(self.clock.clone()), self.environment.clone(), Arc::new(transport), nonces)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    pub(super) fn advance(&self, seconds: i64) {
        self.clock.set(Time::from_millis(self.clock.now().millis() + seconds * 1000));
    }

    fn answer(&self, request: &Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let mut state = self.state.lock().unwrap();
        let pairs = |bytes: &[u8]| url::form_urlencoded::parse(bytes).into_owned().collect();
        let uri = request.uri();
        state.asked.push(Asked {
            line: format!("{} {}{}", request.method(), uri.host().unwrap(), uri.path()),
            query: pairs(uri.query().unwrap_or_default().as_bytes()),
            form: pairs(request.body()),
            headers: request.headers().clone(),
        });
        if uri.host() == Some("100.100.100.200") {
            return self.metadata(&mut state, request);
        }
        let mood = state.sts.clone();
        moody(&mood, || serde_json::json!({"RequestId": "r", "Credentials": self.make(&mut state)}).to_string())
    }

    fn make(&self, state: &mut State) -> serde_json::Value {
        state.made += 1;
        let until = date(self.clock.wall() + std::time::Duration::from_secs(state.life_seconds)).unwrap();
        let n = state.made;
        serde_json::json!({
            "AccessKeyId": format!("STS.id{n}"), "AccessKeySecret": format!("secret{n}"),
            "SecurityToken": format!("token{n}"), "Expiration": until,
        })
    }

    fn metadata(&self, state: &mut State, request: &Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if request.uri().path() == "/latest/api/token" {
            assert_eq!(request.headers()["x-aliyun-ecs-metadata-token-ttl-seconds"], "21600");
            let mood = state.session.clone();
            return moody(&mood, || "session\n".to_owned());
        }
        let session = request.headers().get("x-aliyun-ecs-metadata-token");
        assert!(session.is_none_or(|session| session == "session"));
        if state.only_v2 && session.is_none() {
            return moody(&Mood::Says(403, "<html>".into()), String::new);
        }
        let Some(role) = state.role else { return moody(&Mood::Says(404, "<?xml?>".into()), String::new) };
        match request.uri().path().strip_prefix("/latest/meta-data/ram/security-credentials/").unwrap() {
            "" => moody(&Mood::Fine, || role.to_owned()),
            name if name == role => {
                let mut key = self.make(state);
                key["Code"] = "Success".into();
                moody(&Mood::Fine, || key.to_string())
            }
            _ => moody(&Mood::Says(404, "<?xml?>".into()), String::new),
        }
    }
}

fn moody(mood: &Mood, fine: impl FnOnce() -> String) -> Result<Response<Bytes>, TransportError> {
    match mood {
        Mood::Fine => Ok(Response::new(fine().into())),
        Mood::Down => Err(TransportError::Refused),
        Mood::Says(status, text) => Ok(Response::builder().status(*status).body(text.clone().into()).unwrap()),
    }
}
