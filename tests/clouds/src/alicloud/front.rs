//! What every request passes before an operation sees it, in the cloud's order: method, operation and version, key,
//! token, timestamp, nonce, signature, permission, rate.

use serde_json::json;

use super::account::{Account, WINDOW, allows};
use super::action::Action;
use super::error::ApiError;
use super::probes::Probes;
use super::signature::{Authorization, canonical_request, sha256_hex, v1, v3};
use super::wire::Incoming;
use crate::clock::UnixMs;

/// Who asks, once that is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// Key's identifier; empty for requests that need none.
    pub key: String,
    /// ARN, as `GetCallerIdentity` tells it.
    pub arn: String,
}

/// The front layer for one request.
#[derive(Debug)]
pub struct Front<'a> {
    /// The request.
    pub incoming: &'a Incoming,
    /// The operation.
    pub action: &'a Action,
    /// The time.
    pub now: UnixMs,
    /// Open choices.
    pub probes: &'a Probes,
}

/// The parts of a request that prove who sends it, wherever they stand.
struct Proof {
    key: String,
    token: Option<String>,
    time: String,
    nonce: String,
    authorization: Option<Authorization>,
}

impl Front<'_> {
    /// Let the request pass or refuse it.
    ///
    /// # Errors
    /// The first check that it fails.
    pub fn pass(&self, account: &mut Account) -> Result<Caller, ApiError> {
        if !self.action.signed {
            self.timestamp(&self.unsigned_time())?;
            return Ok(Caller::default());
        }
        let proof = self.proof()?;
        let key = account.keys.get(&proof.key).cloned().ok_or_else(|| self.unknown_key())?;
        if !key.active {
            return Err(ApiError::forbidden("InvalidAccessKeyId.Inactive", "Specified access key is disabled."));
        }
        self.token(&proof, key.session.as_ref().map(|session| (session.token.as_str(), session.expires)), account)?;
        self.timestamp(&proof.time)?;
        if !account.use_nonce(&proof.key, &proof.nonce, self.now) {
            return Err(ApiError::bad("SignatureNonceUsed", "Specified signature nonce was used already."));
        }
        self.signature(&proof, &key.secret)?;
        if !allows(&key.allow, self.action.permission) {
            return Err(self.forbidden());
        }
        if !account.spend(&proof.key, self.action.name, self.now) {
            return Err(throttled(self.probes));
        }
        let user = || format!("acs:ram::1234567890123456:user/{}", key.id);
        let arn = key.session.map_or_else(user, |session| session.arn);
        Ok(Caller { key: proof.key, arn })
    }

    fn unsigned_time(&self) -> String {
        if self.incoming.is_v3() {
            self.incoming.header("x-acs-date").to_owned()
        } else {
            self.incoming.parameter("Timestamp").unwrap_or_default().to_owned()
        }
    }

    fn proof(&self) -> Result<Proof, ApiError> {
        if self.incoming.is_v3() { self.proof_v3() } else { self.proof_v1() }
    }

    fn proof_v1(&self) -> Result<Proof, ApiError> {
        let need = |name: &str| {
            let value = self.incoming.parameter(name).filter(|value| !value.is_empty());
            value.map(str::to_owned).ok_or_else(|| missing(name))
        };
        let exactly = |name: &str, expected: &str| {
            let value = need(name)?;
            let message = format!("{name} is {value:?}, expected {expected:?}");
            if value == expected { Ok(()) } else { Err(ApiError::bad("IncompleteSignature", message)) }
        };
        exactly("SignatureMethod", "HMAC-SHA1")?;
        exactly("SignatureVersion", "1.0")?;
        need("Signature")?;
        Ok(Proof {
            key: need("AccessKeyId")?,
            token: self.incoming.parameter("SecurityToken").map(str::to_owned),
            time: need("Timestamp")?,
            nonce: need("SignatureNonce")?,
            authorization: None,
        })
    }

    fn proof_v3(&self) -> Result<Proof, ApiError> {
        if self.action.host_is_ess && !self.probes.acs3_on_ess {
            return Err(missing("AccessKeyId"));
        }
        let need = |name: &str| {
            let value = self.incoming.header(name);
            if value.is_empty() { Err(missing(name)) } else { Ok(value.to_owned()) }
        };
        let text = need("authorization")?;
        let authorization = Authorization::parse(&text).ok_or_else(|| {
            let expected = "expected ACS3-HMAC-SHA256 Credential=…,SignedHeaders=…,Signature=…";
            ApiError::bad("IncompleteSignature", format!("the Authorization header cannot be read, {expected}"))
        })?;
        need("x-acs-content-sha256")?;
        Ok(Proof {
            key: authorization.key.clone(),
            token: Some(self.incoming.header("x-acs-security-token").to_owned()).filter(|token| !token.is_empty()),
            time: need("x-acs-date")?,
            nonce: need("x-acs-signature-nonce")?,
            authorization: Some(authorization),
        })
    }

    fn unknown_key(&self) -> ApiError {
        let status = self.probes.unknown_key_status;
        ApiError::new(status, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
    }

    fn token(&self, proof: &Proof, session: Option<(&str, UnixMs)>, account: &Account) -> Result<(), ApiError> {
        let refuse = |what: &str, text: &str| {
            Err(ApiError::bad(&format!("InvalidSecurityToken.{what}"), format!("Specified SecurityToken {text}.")))
        };
        match (session, proof.token.as_deref()) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(self.unknown_key()),
            (Some((token, expires)), Some(sent)) if sent == token => {
                if self.now < expires {
                    Ok(())
                } else {
                    refuse("Expired", "is expired")
                }
            }
            (_, Some(sent)) => {
                let known = account.keys.values().filter_map(|key| key.session.as_ref());
                if known.into_iter().any(|session| session.token == sent) {
                    refuse("MismatchWithAccessKey", "mismatch with the AccessKey")
                } else {
                    refuse("Malformed", "is malformed")
                }
            }
        }
    }

    fn timestamp(&self, text: &str) -> Result<(), ApiError> {
        let moment = UnixMs::parse(text).filter(|moment| moment.seconds() == text);
        let Some(moment) = moment else {
            let message = "Specified time stamp or date value is not well formatted.";
            return Err(ApiError::bad("InvalidTimeStamp.Format", message));
        };
        if moment.since(self.now) > WINDOW || self.now.since(moment) > WINDOW {
            return Err(ApiError::bad("InvalidTimeStamp.Expired", "Specified time stamp or date value is expired."));
        }
        Ok(())
    }

    fn signature(&self, proof: &Proof, secret: &str) -> Result<(), ApiError> {
        match &proof.authorization {
            Some(authorization) => self.signature_v3(authorization, secret),
            None => self.signature_v1(secret),
        }
    }

    fn signature_v1(&self, secret: &str) -> Result<(), ApiError> {
        let signed = v1(&self.incoming.method, self.incoming.parameters(), secret);
        if self.incoming.parameter("Signature") == Some(signed.signature.as_str()) {
            return Ok(());
        }
        let begin = "Specified signature is not matched with our calculation. server string to sign is:";
        Err(ApiError::bad("SignatureDoesNotMatch", format!("{begin}{}", signed.string_to_sign)))
    }

    fn signature_v3(&self, authorization: &Authorization, secret: &str) -> Result<(), ApiError> {
        let names: Vec<&str> = authorization.signed_headers.split(';').collect();
        let acs = self.incoming.headers.keys().map(http::HeaderName::as_str).filter(|name| name.starts_with("x-acs-"));
        if let Some(absent) = acs.chain(["host"]).find(|name| !names.contains(name)) {
            let message = format!("the header {absent} is not among the signed headers");
            return Err(ApiError::bad("IncompleteSignature", message));
        }
        let canonical = canonical_request(self.incoming, &authorization.signed_headers);
        let signed = v3(&canonical, secret);
        let hash = sha256_hex(&self.incoming.body);
        if signed.signature == authorization.signature && self.incoming.header("x-acs-content-sha256") == hash {
            return Ok(());
        }
        let message = format!(
            "Specified signature is not matched with our calculation. server string to sign is:{}, \
             server canonicalized request is:{canonical}",
            signed.string_to_sign
        );
        Err(ApiError::bad("SignatureDoesNotMatch", message))
    }

    fn forbidden(&self) -> ApiError {
        let action = self.action.permission;
        let text = format!("User not authorized to operate on the specified resource: {action} is not allowed.");
        let mut error = ApiError::forbidden("Forbidden.RAM", text);
        error.detail = Some(json!({
            "AuthAction": action,
            "AuthPrincipalType": "SubUser",
            "PolicyType": "AccountLevelIdentityBasedPolicy",
            "NoPermissionType": "ImplicitDeny",
        }));
        error
    }
}

fn missing(name: &str) -> ApiError {
    let text = format!("The input parameter \"{name}\" that is mandatory for processing this request is not supplied.");
    ApiError::bad("MissingParameter", text)
}

/// Too many requests.
pub(super) fn throttled(probes: &Probes) -> ApiError {
    ApiError::new(probes.throttled_status, "Throttling.User", "Request was denied due to user flow control.")
}
