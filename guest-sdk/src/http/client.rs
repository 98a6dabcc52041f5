//! One cloud API: where it is, how to sign, how much to read.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::response::Call;
use super::{Error, Failure, Outgoing, Request, Response, Scheme, SendError, Transport};
use crate::{Deadline, PluginError};

/// The header that names a credential slot to the host.
const CREDENTIAL_HEADER: &str = "x-autoscaler-credential";

/// A client of one API. Cheap to make; nothing is sent until a request is.
#[derive(Clone, Debug)]
pub struct Client<T> {
    transport: T,
    scheme: Scheme,
    authority: String,
    base_path: String,
    headers: Vec<(String, String)>,
    timeout: Duration,
    max_answer_bytes: usize,
}

impl<T: Transport> Client<T> {
    /// A client of an API at a base URL, such as `https://api.utho.com/v2`. Waits 30 s at most, reads 4 MiB at most.
    ///
    /// # Errors
    /// Class `config`, code `bad-url`: the URL is not `http(s)://host[:port][/path]`.
    pub fn new(base_url: &str, transport: T) -> Result<Self, PluginError> {
        let bad = |why: &str| {
            PluginError::config(format!("{base_url:?} is no base URL: {why}; expected https://host[:port][/path]"))
                .with_code("bad-url")
        };
        let (scheme, rest) = if let Some(rest) = base_url.strip_prefix("https://") {
            (Scheme::Https, rest)
        } else if let Some(rest) = base_url.strip_prefix("http://") {
            (Scheme::Http, rest)
        } else {
            return Err(bad("it does not begin with https://"));
        };
        if rest.contains(['?', '#', '@']) || rest.contains(char::is_whitespace) {
            return Err(bad("it holds a user, a query, a fragment or white space"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(bad("it has no host"));
        }
        let path = path.trim_end_matches('/');
        Ok(Self {
            transport,
            scheme,
            authority: authority.to_ascii_lowercase(),
            base_path: if path.is_empty() { String::new() } else { format!("/{path}") },
            headers: vec![],
            timeout: Duration::from_secs(30),
            max_answer_bytes: 4 << 20,
        })
    }

    /// Sends a header with every request.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// Names itself; the host tells a user agent in [`Setup`](crate::Setup).
    pub fn user_agent(self, user_agent: &str) -> Self {
        self.header("user-agent", user_agent)
    }

    /// Has every request signed with the credential in this slot. The manifest must wish for it and the operator grant it.
    pub fn credential(self, slot: &str) -> Self {
        self.header(CREDENTIAL_HEADER, slot)
    }

    /// Longest wait for one answer; the deadline of a call may end it sooner.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Most bytes of one answer. Keep it well below the plug-in's memory limit.
    pub fn max_answer_bytes(self, max_answer_bytes: usize) -> Self {
        Self { max_answer_bytes, ..self }
    }

    /// Sends a request; any status is an answer.
    ///
    /// # Errors
    /// No whole answer came, or the deadline has passed already.
    pub fn send(&self, request: &Request, deadline: Deadline) -> Result<Response, Error> {
        let (call, outgoing) = self.outgoing(request, deadline)?;
        finish(call, self.transport.send(&outgoing), outgoing.max_answer_bytes)
    }

    /// Sends several requests at once; answers come in the same order.
    pub fn send_all(&self, requests: &[Request], deadline: Deadline) -> Vec<Result<Response, Error>> {
        let prepared: Vec<_> = requests.iter().map(|request| self.outgoing(request, deadline)).collect();
        let ready: Vec<_> =
            prepared.iter().filter_map(|one| one.as_ref().ok()).map(|(_, outgoing)| outgoing.clone()).collect();
        let mut answers = self.transport.send_all(&ready).into_iter();
        let missing = || Err(SendError::Lost("the transport gave no answer".to_owned()));
        let finish_one = |one: Result<(Call, Outgoing), Error>| {
            let (call, outgoing) = one?;
            finish(call, answers.next().unwrap_or_else(missing), outgoing.max_answer_bytes)
        };
        prepared.into_iter().map(finish_one).collect()
    }

    /// Sends a request and reads a 2xx answer as JSON.
    ///
    /// # Errors
    /// As [`send`](Self::send); another status; a body that is not a `D`.
    pub fn json<D: DeserializeOwned>(&self, request: &Request, deadline: Deadline) -> Result<D, Error> {
        self.send(request, deadline)?.success()?.json()
    }

    fn outgoing(&self, request: &Request, deadline: Deadline) -> Result<(Call, Outgoing), Error> {
        let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
        let mut headers = self.headers.clone();
        headers.extend(request.headers.iter().cloned());
        if let Some(body) = &request.body {
            // Without it the body goes out in chunks, which some clouds refuse.
            headers.push(("content-length".to_owned(), body.len().to_string()));
        }
        let remaining = deadline.remaining();
        let outgoing = Outgoing {
            method: request.method,
            scheme: self.scheme,
            authority: self.authority.clone(),
            path_and_query: format!("{}{}{query}", self.base_path, request.path),
            headers,
            body: request.body.clone(),
            timeout: request.timeout.unwrap_or(self.timeout).min(remaining),
            max_answer_bytes: self.max_answer_bytes,
        };
        let call = Call::of(&outgoing, request.changes_something);
        if remaining.is_zero() {
            return Err(Error::new(call, Failure::NotSent("the deadline of the call has passed".to_owned())));
        }
        Ok((call, outgoing))
    }
}

fn finish(call: Call, answer: Result<super::Answer, SendError>, limit_bytes: usize) -> Result<Response, Error> {
    match answer {
        Ok(answer) if answer.body.len() > limit_bytes => Err(Error::of_send(call, SendError::TooLarge, limit_bytes)),
        Ok(answer) => Ok(Response::new(call, answer)),
        Err(error) => Err(Error::of_send(call, error, limit_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Method};
    use super::*;
    use crate::ErrorClass;
    use crate::testing::FakeCloud;
    use rstest::rstest;
    use serde::Deserialize;

    #[derive(Deserialize, PartialEq, Debug)]
    struct Pool {
        count: u32,
    }

    fn soon() -> Deadline {
        Deadline::after_ms(60_000)
    }

    fn answering(answer: Result<Answer, SendError>) -> FakeCloud {
        FakeCloud::new(move |_| answer.clone())
    }

    #[test]
    fn a_request_carries_what_client_and_request_say() {
        let cloud = answering(Ok(Answer::json(200, &serde_json::json!({"count": 3}))));
        let client =
            Client::new("https://API.example:8443/v2/", &cloud).unwrap().user_agent("plimsoll/1").credential("api");
        let request = Request::post("/pools/{}").segment("a/b").query("dry", "1").json(&[1]).unwrap();
        assert_eq!(client.json::<Pool>(&request, soon()).unwrap(), Pool { count: 3 });

        let [sent] = &cloud.requests()[..] else { panic!("one request") };
        assert_eq!(
            (sent.method, sent.scheme, sent.authority.as_str()),
            (Method::Post, Scheme::Https, "api.example:8443")
        );
        assert_eq!(sent.path_and_query, "/v2/pools/a%2Fb?dry=1");
        assert_eq!(sent.body.as_deref(), Some(&b"[1]"[..]));
        for (name, value) in [
            ("user-agent", "plimsoll/1"),
            ("x-autoscaler-credential", "api"),
            ("content-type", "application/json"),
            ("content-length", "3"),
        ] {
            assert_eq!(sent.header(name), Some(value), "{name}");
        }
        assert!(sent.timeout <= Duration::from_secs(30));
    }

    #[rstest]
    #[case::no_scheme("api.example")]
    #[case::other_scheme("ftp://api.example")]
    #[case::no_host("https:///v2")]
    #[case::user("https://me@api.example")]
    #[case::query("https://api.example/?a=b")]
    #[case::space("https://api.example/a b")]
    fn bad_base_urls_are_refused(#[case] url: &str) {
        let error = Client::new(url, super::super::Wasi).err().unwrap();
        assert_eq!((error.class, error.code.as_str()), (ErrorClass::Config, "bad-url"));
        assert!(error.message.contains(url), "{}", error.message);
    }

    #[rstest]
    #[case::denied(Err(SendError::Denied("no grant".into())), ErrorClass::Config, "denied", false)]
    #[case::invalid(Err(SendError::Invalid("header".into())), ErrorClass::Config, "invalid-request", false)]
    #[case::not_sent(Err(SendError::NotSent("refused".into())), ErrorClass::Transient, "not-sent", false)]
    #[case::lost(Err(SendError::Lost("reset".into())), ErrorClass::Transient, "no-answer", true)]
    #[case::too_large(Err(SendError::TooLarge), ErrorClass::Transient, "answer-too-large", true)]
    #[case::garbage(Ok(Answer::text(200, "<html>")), ErrorClass::Transient, "undecodable", true)]
    #[case::half(Ok(Answer::text(200, "{\"count\":")), ErrorClass::Transient, "undecodable", true)]
    #[case::server(Ok(Answer::text(502, "bad gateway")), ErrorClass::Transient, "502", true)]
    #[case::refused(Ok(Answer::text(403, "no")), ErrorClass::Auth, "403", false)]
    #[case::redirect(Ok(Answer::text(302, "")), ErrorClass::Other, "302", false)]
    fn failures_of_a_write(
        #[case] answer: Result<Answer, SendError>,
        #[case] class: ErrorClass,
        #[case] code: &str,
        #[case] outcome_unknown: bool,
    ) {
        let cloud = answering(answer);
        let client = Client::new("https://api.example", &cloud).unwrap();
        let error = PluginError::from(client.json::<Pool>(&Request::post("/pools"), soon()).unwrap_err());
        assert_eq!((error.class, error.code.as_str(), error.outcome_unknown), (class, code, outcome_unknown));
        assert!(error.message.starts_with("POST api.example/pools: "), "{}", error.message);

        // The same failure of a read leaves nothing unknown.
        for read in [Request::get("/pools"), Request::post("/pools").read_only()] {
            assert!(!PluginError::from(client.json::<Pool>(&read, soon()).unwrap_err()).outcome_unknown);
        }
        let get = Request::get("/pools").changes_something();
        assert_eq!(PluginError::from(client.json::<Pool>(&get, soon()).unwrap_err()).outcome_unknown, outcome_unknown);
    }

    #[test]
    fn retry_after_is_passed_on() {
        let cloud = answering(Ok(Answer::text(429, "").with_header("Retry-After", "7")));
        let client = Client::new("https://api.example", &cloud).unwrap();
        let error = PluginError::from(client.json::<Pool>(&Request::get("/"), soon()).unwrap_err());
        assert_eq!((error.class, error.retry_after_ms), (ErrorClass::Throttled, Some(7000)));
    }

    #[test]
    fn nothing_is_sent_after_the_deadline() {
        let cloud = answering(Ok(Answer::default()));
        let client = Client::new("https://api.example", &cloud).unwrap();
        let error = client.send(&Request::post("/"), Deadline::after_ms(0)).unwrap_err();
        assert!(matches!(error.failure(), Failure::NotSent(_)), "{error}");
        assert!(cloud.requests().is_empty());
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_read() {
        let cloud = answering(Ok(Answer::text(200, "12345")));
        let client = Client::new("https://api.example", &cloud).unwrap().max_answer_bytes(4);
        let error = client.send(&Request::get("/"), soon()).unwrap_err();
        assert_eq!(error.failure(), &Failure::TooLarge { limit_bytes: 4 });
    }

    #[test]
    fn several_answers_keep_their_order() {
        let cloud = FakeCloud::new(|request| match request.path_and_query.as_str() {
            "/lost" => Err(SendError::Lost("reset".into())),
            path => Ok(Answer::text(200, path)),
        });
        let client = Client::new("https://api.example", &cloud).unwrap();
        let requests = ["/a", "/lost", "/b"].map(Request::get);
        let answers = client.send_all(&requests, soon());
        let texts: Vec<_> = answers.iter().map(|answer| answer.as_ref().ok().map(|ok| ok.body().to_owned())).collect();
        assert_eq!(texts, [Some(b"/a".to_vec()), None, Some(b"/b".to_vec())]);
    }

    #[test]
    fn long_bodies_are_cut_in_messages() {
        let cloud = answering(Ok(Answer::text(500, "ü ".repeat(4000))));
        let client = Client::new("https://api.example", &cloud).unwrap();
        let error = client.json::<Pool>(&Request::get("/"), soon()).unwrap_err();
        assert!(error.to_string().chars().count() < 300, "{error}");
    }

    #[test]
    fn secrets_in_a_query_stay_out_of_messages() {
        let cloud = answering(Err(SendError::Lost("reset".into())));
        let client = Client::new("https://api.example", &cloud).unwrap();
        let error = client.send(&Request::get("/a").query("token", "hunter2"), soon()).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
