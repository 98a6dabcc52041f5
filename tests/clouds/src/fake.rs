//! A cloud in memory: what every fake has in common around its own logic.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

use crate::answer::Answer;
use crate::chance::Chance;
use crate::clock::UnixMs;
use crate::faults::{Fault, Faults, Strike, Target, Twist};
use crate::journal::{Call, Cause, Event, Happening, Journal};
use crate::nodes::Node;

/// What a cloud is, without its faults: one implementation per cloud.
pub trait Logic {
    /// Name, as on the command line.
    fn name(&self) -> &'static str;

    /// Host names that it answers to.
    fn hosts(&self) -> Vec<String>;

    /// What a request is about. Changes nothing.
    fn target(&self, request: &Request<Bytes>) -> Target;

    /// Handle a request at the context's time. Fills in the call's parameters, caller and code.
    fn serve(&mut self, request: &Request<Bytes>, context: &mut Context<'_>) -> Response<Bytes>;

    /// An error in this cloud's own shape.
    fn refuse(&mut self, target: &Target, refusal: &Refusal, context: &mut Context<'_>) -> Response<Bytes>;

    /// Let everything happen that is due up to and at the context's time. The time never goes back.
    fn run(&mut self, context: &mut Context<'_>);

    /// Nodes that Kubernetes would see.
    fn nodes(&self, now: UnixMs) -> Vec<Node>;

    /// Everything that it holds, for people and for comparison. Secrets are left out.
    fn dump(&self) -> Value;

    /// Do something to the cloud that a human at its console would do.
    ///
    /// # Errors
    /// A text that says what is wrong with `order`.
    fn console(&mut self, order: &Value, context: &mut Context<'_>) -> Result<(), String>;
}

/// Why the cloud refuses on purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Too many requests.
    Throttled {
        /// Seconds for `Retry-After`, if the answer is to have one.
        retry_after_s: Option<u32>,
    },
    /// This error.
    Error {
        /// HTTP status.
        status: u16,
        /// Code.
        code: String,
        /// Text.
        message: String,
    },
}

/// What logic may use while it works.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: UnixMs,
    /// Chance.
    pub chance: &'a mut Chance,
    /// Twists for this request.
    pub twists: &'a [Twist],
    /// The journal's entry of this request. Outside a request it goes nowhere.
    pub call: &'a mut Call,
    events: &'a mut Vec<Event>,
}

impl Context<'_> {
    /// The request changed this.
    pub fn changed(&mut self, what: impl Into<String>) {
        self.call.changes.push(what.into());
    }

    /// The request is not one that a well-written client sends.
    pub fn violation(&mut self, what: impl Into<String>) {
        self.call.violations.push(what.into());
    }

    /// Something happened at the context's time.
    pub fn event(&mut self, what: Happening, group: &str, subject: &str, cause: Cause, detail: impl Into<String>) {
        self.events.push(Event {
            at: self.now,
            what,
            subject: subject.to_owned(),
            group: group.to_owned(),
            cause,
            detail: detail.into(),
        });
    }

    /// How long reads stay stale after a write, if a fault says so.
    pub fn stale_for(&self) -> Option<Duration> {
        self.twists.iter().find_map(|twist| match twist {
            Twist::StaleReads(ms) => Some(Duration::from_millis(*ms)),
            _ => None,
        })
    }
}

/// A cloud, as a transport or a server sees it.
pub trait Cloud {
    /// Name, as on the command line.
    fn name(&self) -> &'static str;
    /// Host names that it answers to.
    fn hosts(&self) -> Vec<String>;
    /// Handle one request.
    fn handle(&mut self, request: Request<Bytes>) -> Answer;
    /// The time.
    fn now(&self) -> UnixMs;
    /// Let time pass.
    fn advance(&mut self, by: Duration);
    /// What was asked and what happened.
    fn journal(&self) -> &Journal;
    /// Rules for what goes wrong.
    fn faults(&mut self) -> &mut Faults;
    /// Nodes that Kubernetes would see.
    fn nodes(&self) -> Vec<Node>;
    /// Everything that it holds.
    fn dump(&self) -> Value;
    /// Do something that a human at the console would do.
    ///
    /// # Errors
    /// A text that says what is wrong with `order`.
    fn console(&mut self, order: &Value) -> Result<(), String>;
}

/// Logic with a clock, a journal and faults around it.
#[derive(Clone, Debug)]
pub struct Fake<L> {
    logic: L,
    now: UnixMs,
    chance: Chance,
    journal: Journal,
    faults: Faults,
}

impl<L: Logic> Fake<L> {
    /// A cloud whose clock stands at `now`.
    pub fn new(logic: L, now: UnixMs, seed: u64) -> Self {
        let mut fake =
            Self { logic, now, chance: Chance::new(seed), journal: Journal::default(), faults: Faults::default() };
        fake.with(|logic, context| logic.run(context));
        fake
    }

    /// The logic, to look at.
    pub fn logic(&self) -> &L {
        &self.logic
    }

    /// Do something to the logic, such as what a human at the console does.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut L, &mut Context<'_>) -> T) -> T {
        let mut call = Call::default();
        let mut context = Context {
            now: self.now,
            chance: &mut self.chance,
            twists: &[],
            call: &mut call,
            events: &mut self.journal.events,
        };
        act(&mut self.logic, &mut context)
    }

    fn begin(&self, request: &Request<Bytes>, target: &Target, strikes: &[Strike]) -> Call {
        Call {
            at: self.now,
            host: target.host.clone(),
            method: request.method().to_string(),
            action: target.action.clone(),
            faults: strikes.iter().map(|strike| strike.name.clone()).collect(),
            ..Call::default()
        }
    }

    /// What the cloud itself answers; none if the request never reaches it.
    fn serve(
        &mut self,
        request: &Request<Bytes>,
        target: &Target,
        strikes: &[Strike],
        call: &mut Call,
    ) -> Option<Response<Bytes>> {
        let twists: Vec<Twist> = strikes
            .iter()
            .filter_map(|strike| if let Fault::Twist { twist } = strike.fault { Some(twist) } else { None })
            .collect();
        let mut context = Context {
            now: self.now,
            chance: &mut self.chance,
            twists: &twists,
            call,
            events: &mut self.journal.events,
        };
        let strike = strikes.iter().find(|strike| !matches!(strike.fault, Fault::Twist { .. }));
        let response = match strike {
            Some(strike) => match refusal(&strike.fault) {
                Some(refusal) => {
                    if strike.handled {
                        self.logic.serve(request, &mut context);
                    }
                    Some(self.logic.refuse(target, &refusal, &mut context))
                }
                None if strike.handled || strike.fault.needs_answer() => Some(self.logic.serve(request, &mut context)),
                None => None,
            },
            None => Some(self.logic.serve(request, &mut context)),
        };
        call.status = response.as_ref().map(|response| response.status().as_u16());
        response
    }
}

fn refusal(fault: &Fault) -> Option<Refusal> {
    match fault {
        Fault::Throttled { retry_after_s } => Some(Refusal::Throttled { retry_after_s: *retry_after_s }),
        Fault::ThrottledMinute => Some(Refusal::Throttled { retry_after_s: None }),
        Fault::Error { status, code, message } => {
            Some(Refusal::Error { status: *status, code: code.clone(), message: message.clone() })
        }
        _ => None,
    }
}

impl<L: Logic> Cloud for Fake<L> {
    fn name(&self) -> &'static str {
        self.logic.name()
    }

    fn hosts(&self) -> Vec<String> {
        self.logic.hosts()
    }

    fn handle(&mut self, request: Request<Bytes>) -> Answer {
        let target = self.logic.target(&request);
        let strikes = self.faults.strike(&target, self.now, &mut self.chance);
        let mut call = self.begin(&request, &target, &strikes);
        let response = self.serve(&request, &target, &strikes, &mut call);
        self.journal.calls.push(call);
        let strike = strikes.iter().find(|strike| !matches!(strike.fault, Fault::Twist { .. }));
        match (strike, response) {
            (Some(strike), response) => strike.fault.disguise(response),
            (None, Some(response)) => Answer::whole(response),
            (None, None) => Answer::Reset,
        }
    }

    fn now(&self) -> UnixMs {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        self.with(|logic, context| logic.run(context));
    }

    fn journal(&self) -> &Journal {
        &self.journal
    }

    fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    fn nodes(&self) -> Vec<Node> {
        self.logic.nodes(self.now)
    }

    fn dump(&self) -> Value {
        self.logic.dump()
    }

    fn console(&mut self, order: &Value) -> Result<(), String> {
        self.with(|logic, context| logic.console(order, context))
    }
}
