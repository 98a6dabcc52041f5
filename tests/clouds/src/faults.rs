//! What goes wrong on purpose.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde::{Deserialize, Serialize};

use crate::answer::{self, Answer, Reply};
use crate::chance::Chance;
use crate::clock::UnixMs;

/// What goes wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Nothing listens.
    Refused,
    /// The name has no address.
    NoAddress,
    /// The certificate is for another name.
    WrongName,
    /// The connection breaks; after the request was handled if the rule says so.
    Reset,
    /// The head of the answer comes late.
    SlowHead {
        /// How late.
        ms: u64,
    },
    /// The body of the answer comes slowly.
    SlowBody {
        /// From its first to its last byte.
        ms: u64,
    },
    /// The second half of the body never comes.
    HalfBody,
    /// The body comes byte by byte.
    ByteByByte,
    /// A gateway answers with a page for people.
    Html {
        /// Its status: 502, 503, 504, or 200.
        status: u16,
    },
    /// The answer has no body.
    EmptyBody {
        /// Its status.
        status: u16,
    },
    /// The body is longer than a client should take.
    Oversized {
        /// Its length.
        bytes: usize,
    },
    /// Go and ask there.
    Redirect {
        /// Where.
        to: String,
    },
    /// Too many requests, said once.
    Throttled {
        /// Value of `Retry-After`, if the answer has one.
        #[serde(default)]
        retry_after_s: Option<u32>,
    },
    /// Too many requests, said until the minute of the clock is over.
    ThrottledMinute,
    /// The cloud refuses with this error.
    Error {
        /// HTTP status.
        status: u16,
        /// The cloud's code.
        code: String,
        /// The cloud's text.
        message: String,
    },
    /// The cloud handles the request, with a twist.
    Twist {
        /// Which.
        twist: Twist,
    },
}

/// A twist in how a request is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Twist {
    /// For so many milliseconds after a write, reads show the state before it.
    StaleReads(u64),
    /// The last entry of a page is the first of the next page as well.
    DuplicateAcrossPages,
    /// The first entry of every page but the first is missing.
    MissingAcrossPages,
    /// The announced total is off by so many.
    WrongTotal(i32),
}

/// When a fault strikes. Conditions that are left out hold always.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name, for the journal and for taking it away.
    pub name: String,
    /// What goes wrong.
    pub fault: Fault,
    /// Host begins with this.
    #[serde(default)]
    pub host: Option<String>,
    /// Operation is this.
    #[serde(default)]
    pub action: Option<String>,
    /// Some parameter has exactly this value, such as a group's identifier.
    #[serde(default)]
    pub value: Option<String>,
    /// Not before.
    #[serde(default)]
    pub from: Option<UnixMs>,
    /// Not from then on.
    #[serde(default)]
    pub until: Option<UnixMs>,
    /// So many requests that it would strike go free first.
    #[serde(default)]
    pub skip: u32,
    /// It strikes so often; none: without end.
    #[serde(default)]
    pub times: Option<u32>,
    /// It strikes so many of a hundred requests; none: all.
    #[serde(default)]
    pub percent: Option<u8>,
    /// The cloud handles the request before the fault hides its answer.
    #[serde(default)]
    pub handled: bool,
    /// For [`Fault::ThrottledMinute`]: the end of the minute.
    #[serde(skip)]
    hot_until: Option<UnixMs>,
}

impl Rule {
    /// A rule for every request.
    pub fn new(name: &str, fault: Fault) -> Self {
        Self {
            name: name.to_owned(),
            fault,
            host: None,
            action: None,
            value: None,
            from: None,
            until: None,
            skip: 0,
            times: None,
            percent: None,
            handled: false,
            hot_until: None,
        }
    }

    /// Only for this operation.
    #[must_use]
    pub fn on(mut self, action: &str) -> Self {
        self.action = Some(action.to_owned());
        self
    }

    /// Only when some parameter has this value.
    #[must_use]
    pub fn about(mut self, value: &str) -> Self {
        self.value = Some(value.to_owned());
        self
    }

    /// So often.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Let so many go free first.
    #[must_use]
    pub fn skip(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }

    /// The request is handled all the same.
    #[must_use]
    pub fn after_handling(mut self) -> Self {
        self.handled = true;
        self
    }

    fn fits(&self, target: &Target, now: UnixMs) -> bool {
        self.from.is_none_or(|from| now >= from)
            && self.until.is_none_or(|until| now < until)
            && self.host.as_ref().is_none_or(|host| target.host.starts_with(host.as_str()))
            && self.action.as_ref().is_none_or(|action| *action == target.action)
            && self.value.as_ref().is_none_or(|value| target.values.contains(value))
    }

    fn strikes(&mut self, now: UnixMs, chance: &mut Chance) -> bool {
        if let Some(end) = self.hot_until {
            if now < end {
                return true;
            }
            self.hot_until = None;
        }
        if self.times == Some(0) || self.percent.is_some_and(|percent| !chance.percent(percent)) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.times = self.times.map(|times| times - 1);
        if self.fault == Fault::ThrottledMinute {
            self.hot_until = Some(now.next_minute());
        }
        true
    }
}

/// What a request is about, as far as rules ask.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// Host.
    pub host: String,
    /// Operation; empty if it is not recognised.
    pub action: String,
    /// Values of its parameters.
    pub values: Vec<String>,
}

/// The rules in force.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Faults {
    rules: Vec<Rule>,
}

/// A fault that strikes a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strike {
    /// Name of its rule.
    pub name: String,
    /// What goes wrong.
    pub fault: Fault,
    /// Whether the cloud handles the request first.
    pub handled: bool,
}

impl Faults {
    /// Add a rule.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Take the rules of this name away.
    pub fn remove(&mut self, name: &str) {
        self.rules.retain(|rule| rule.name != name);
    }

    /// Take all rules away.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// The rules in force.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Faults that strike this request: all twists, and the first fault of another kind.
    pub fn strike(&mut self, target: &Target, now: UnixMs, chance: &mut Chance) -> Vec<Strike> {
        let mut struck = Vec::new();
        let mut decided = false;
        for rule in &mut self.rules {
            let twist = matches!(rule.fault, Fault::Twist { .. });
            if (twist || !decided) && rule.fits(target, now) && rule.strikes(now, chance) {
                decided |= !twist;
                struck.push(Strike { name: rule.name.clone(), fault: rule.fault.clone(), handled: rule.handled });
            }
        }
        struck
    }
}

impl Fault {
    /// Whether the request reaches the cloud whatever the rule says: there is no such fault without an answer.
    pub(crate) fn needs_answer(&self) -> bool {
        matches!(self, Self::SlowHead { .. } | Self::SlowBody { .. } | Self::HalfBody | Self::ByteByByte)
    }

    /// What the client gets instead of `response`, the cloud's answer (none if the cloud never saw the request).
    pub(crate) fn disguise(&self, response: Option<Response<Bytes>>) -> Answer {
        match self {
            Self::Refused => Answer::Refused,
            Self::NoAddress => Answer::NoAddress,
            Self::WrongName => Answer::WrongName,
            Self::Reset => Answer::Reset,
            Self::Html { status } => Answer::whole(html(*status)),
            Self::EmptyBody { status } => Answer::whole(answer::response(*status, "application/json", Bytes::new())),
            Self::Oversized { bytes } => Answer::whole(answer::response(200, "application/json", vec![b' '; *bytes])),
            Self::Redirect { to } => Answer::whole(redirect(to)),
            _ => response.map_or(Answer::Reset, |response| self.delay(response)),
        }
    }

    fn delay(&self, response: Response<Bytes>) -> Answer {
        let mut reply =
            Reply { response, head_after: Duration::ZERO, body_over: Duration::ZERO, chunk_bytes: None, broken: false };
        match self {
            Self::SlowHead { ms } => reply.head_after = Duration::from_millis(*ms),
            Self::SlowBody { ms } => reply.body_over = Duration::from_millis(*ms),
            Self::ByteByByte => reply.chunk_bytes = Some(1),
            Self::HalfBody => {
                let half = reply.response.body().len() / 2;
                reply.response.body_mut().truncate(half);
                reply.broken = true;
            }
            _ => {}
        }
        Answer::Reply(Box::new(reply))
    }
}

fn html(status: u16) -> Response<Bytes> {
    let page =
        format!("<html>\r\n<head><title>{status}</title></head>\r\n<body><h1>{status}</h1></body>\r\n</html>\r\n");
    answer::response(status, "text/html", page)
}

fn redirect(to: &str) -> Response<Bytes> {
    let mut response = answer::response(302, "text/html", Bytes::new());
    if let Ok(to) = http::HeaderValue::from_str(to) {
        response.headers_mut().insert(http::header::LOCATION, to);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::{Fault, Faults, Rule, Target};
    use crate::chance::Chance;
    use crate::clock::UnixMs;

    fn strikes(faults: &mut Faults, action: &str, now: i64) -> Vec<String> {
        let target = Target { host: "ess.r".to_owned(), action: action.to_owned(), values: vec!["asg-1".to_owned()] };
        let struck = faults.strike(&target, UnixMs(now), &mut Chance::new(1));
        struck.into_iter().map(|strike| strike.name).collect()
    }

    #[test]
    fn a_rule_strikes_where_and_as_often_as_it_says() {
        let mut faults = Faults::default();
        faults.add(Rule::new("a", Fault::Reset).on("Write").about("asg-1").skip(1).times(1));
        faults.add(Rule::new("b", Fault::Refused).about("asg-2"));
        assert!(strikes(&mut faults, "Read", 0).is_empty());
        assert!(strikes(&mut faults, "Write", 0).is_empty(), "the first goes free");
        assert_eq!(strikes(&mut faults, "Write", 0), ["a"]);
        assert!(strikes(&mut faults, "Write", 0).is_empty(), "once only");
    }

    #[test]
    fn a_throttled_minute_lasts_to_the_minutes_end() {
        let mut faults = Faults::default();
        faults.add(Rule::new("t", Fault::ThrottledMinute).times(1));
        assert_eq!(strikes(&mut faults, "Read", 61_000), ["t"]);
        assert_eq!(strikes(&mut faults, "Read", 119_999), ["t"]);
        assert!(strikes(&mut faults, "Read", 120_000).is_empty());
    }

    #[test]
    fn rules_are_read_from_json() {
        let rule: Rule =
            serde_json::from_str(r#"{"name":"g","fault":{"kind":"html","status":504},"handled":true}"#).unwrap();
        assert_eq!(rule, Rule::new("g", Fault::Html { status: 504 }).after_handling());
        assert!(serde_json::from_str::<Rule>(r#"{"name":"g","fault":{"kind":"htm"}}"#).is_err());
        assert!(serde_json::from_str::<Rule>(r#"{"name":"g","fault":{"kind":"reset"},"time":3}"#).is_err());
    }
}
