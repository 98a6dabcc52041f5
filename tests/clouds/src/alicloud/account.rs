//! Who may do what: keys, tokens, roles, and what has been used up.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Response;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::clock::UnixMs;

/// How long a nonce may not be used again, and how far a timestamp may be off.
pub const WINDOW: Duration = Duration::from_secs(31 * 60);

/// A key of a user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Identifier.
    pub id: String,
    /// Secret.
    #[serde(skip_serializing)]
    pub secret: String,
    /// Not switched off.
    #[serde(default = "yes")]
    pub active: bool,
    /// Operations that it may use: `ess:Describe*`, `*`.
    #[serde(default = "everything")]
    pub allow: Vec<String>,
    /// Only for temporary keys.
    #[serde(skip)]
    pub session: Option<Session>,
}

/// What makes a key temporary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its token.
    pub token: String,
    /// When it ends.
    pub expires: UnixMs,
    /// ARN of who uses it.
    pub arn: String,
}

/// A role that can be assumed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// ARN, `acs:ram::<account>:role/<name>`.
    pub arn: String,
    /// Operations that it may use.
    #[serde(default = "everything")]
    pub allow: Vec<String>,
    /// Longest session, in seconds.
    #[serde(default = "an_hour")]
    pub max_session_s: u32,
    /// ARN of the OIDC provider whose tokens may assume it.
    #[serde(default)]
    pub oidc_provider: Option<String>,
}

fn yes() -> bool {
    true
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

fn an_hour() -> u32 {
    3600
}

/// Whether one of the patterns, which may end in `*`, covers the operation.
pub fn allows(patterns: &[String], operation: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => operation.starts_with(prefix),
        None => pattern == operation,
    })
}

/// A use of a client token.
#[derive(Clone, Debug)]
struct Remembered {
    since: UnixMs,
    parameters: String,
    response: Response<bytes::Bytes>,
}

/// What a client token says about a request.
#[derive(Debug)]
pub enum Token {
    /// Not seen before.
    New,
    /// The same request: the first answer again.
    Again(Response<bytes::Bytes>),
    /// Another request.
    Mismatch,
}

/// The account.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Keys by identifier.
    pub keys: BTreeMap<String, Key>,
    /// Roles.
    pub roles: Vec<Role>,
    /// Most requests in a minute for an operation; `*` is for the others. None: no limit.
    pub budgets: BTreeMap<String, u32>,
    nonces: BTreeMap<(String, String), UnixMs>,
    spent: BTreeMap<(String, String), (UnixMs, u32)>,
    tokens: BTreeMap<(String, String), Remembered>,
}

impl Account {
    /// Use a nonce; false if it has been used within the window.
    pub fn use_nonce(&mut self, key: &str, nonce: &str, now: UnixMs) -> bool {
        self.nonces.retain(|_, since| now < *since + WINDOW);
        self.nonces.insert((key.to_owned(), nonce.to_owned()), now).is_none()
    }

    /// Count a request; false if the minute's budget is used up.
    pub fn spend(&mut self, key: &str, action: &str, now: UnixMs) -> bool {
        let Some(budget) = self.budgets.get(action).or_else(|| self.budgets.get("*")) else { return true };
        let minute = now.next_minute();
        let entry = self.spent.entry((key.to_owned(), action.to_owned())).or_insert((minute, 0));
        if entry.0 != minute {
            *entry = (minute, 0);
        }
        entry.1 += 1;
        entry.1 <= *budget
    }

    /// What a client token says about this request.
    pub fn token(&mut self, action: &str, token: &str, parameters: &str, now: UnixMs, hours: u32) -> Token {
        let window = Duration::from_secs(u64::from(hours) * 3600);
        self.tokens.retain(|_, remembered| now < remembered.since + window);
        match self.tokens.get(&(action.to_owned(), token.to_owned())) {
            None => Token::New,
            Some(known) if known.parameters == parameters => Token::Again(known.response.clone()),
            Some(_) => Token::Mismatch,
        }
    }

    /// Remember the answer to a request with a client token.
    pub fn remember(
        &mut self,
        action: &str,
        token: &str,
        parameters: &str,
        response: &Response<bytes::Bytes>,
        now: UnixMs,
    ) {
        let remembered = Remembered { since: now, parameters: parameters.to_owned(), response: response.clone() };
        self.tokens.insert((action.to_owned(), token.to_owned()), remembered);
    }

    /// Issue a temporary key for a role.
    pub fn issue(&mut self, role: &Role, session: &str, lifetime: Duration, now: UnixMs, chance: &mut Chance) -> Key {
        let key = Key {
            id: format!("STS.N{}", chance.token(22)),
            secret: chance.token(44),
            active: true,
            allow: role.allow.clone(),
            session: Some(Session {
                token: format!("CAIS{}+/=={}*~", chance.token(40), chance.token(8)),
                expires: now + lifetime,
                arn: format!("{}/{session}", role.arn),
            }),
        };
        self.keys.insert(key.id.clone(), key.clone());
        key
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Account, allows};
    use crate::clock::UnixMs;

    #[rstest]
    #[case::all("*", true)]
    #[case::prefix("ess:Describe*", true)]
    #[case::exact("ess:DescribeScalingGroups", true)]
    #[case::other_product("ecs:*", false)]
    #[case::part("ess:DescribeScaling", false)]
    fn patterns_cover_operations(#[case] pattern: &str, #[case] covered: bool) {
        assert_eq!(allows(&[pattern.to_owned()], "ess:DescribeScalingGroups"), covered);
    }

    #[test]
    fn a_spent_budget_comes_back_with_the_next_minute() {
        let mut account = Account::default();
        account.budgets.insert("A".to_owned(), 2);
        let at = |seconds: i64| UnixMs(seconds * 1000);
        assert!(account.spend("k", "A", at(10)) && account.spend("k", "A", at(20)));
        assert!(!account.spend("k", "A", at(30)) && !account.spend("k", "A", at(59)));
        assert!(account.spend("other", "A", at(59)), "another key has its own");
        assert!(account.spend("k", "B", at(59)), "no limit is known for B");
        assert!(account.spend("k", "A", at(60)));
    }
}
