//! STS: temporary keys.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::alicloud::account::Role;
use crate::alicloud::action::{Action, Handler, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Bound, Kind, Parameter, optional, required};
use crate::alicloud::signature::hmac_sha256;
use crate::clock::UnixMs;

const fn action(
    name: &'static str,
    permission: &'static str,
    signed: bool,
    parameters: &'static [Parameter],
    handler: Handler,
) -> Action {
    Action { name, permission, signed, host_is_ess: false, writes: false, parameters, handler }
}

const DURATION: Parameter = optional("DurationSeconds", Kind::Number(900, Bound::Is(43_200)));

/// Its operations.
pub const ACTIONS: &[Action] = &[
    action(
        "AssumeRoleWithOIDC",
        "sts:AssumeRoleWithOIDC",
        false,
        &[
            required("RoleArn", Kind::Text),
            required("OIDCProviderArn", Kind::Text),
            required("OIDCToken", Kind::Text),
            required("RoleSessionName", Kind::Text),
            DURATION,
            optional("Policy", Kind::Text),
        ],
        assume_with_token,
    ),
    action(
        "AssumeRole",
        "sts:AssumeRole",
        true,
        &[
            required("RoleArn", Kind::Text),
            required("RoleSessionName", Kind::Text),
            DURATION,
            optional("Policy", Kind::Text),
        ],
        assume,
    ),
    action("GetCallerIdentity", "sts:GetCallerIdentity", true, &[], identity),
];

fn session_name<'a>(work: &'a Work<'_, '_>) -> Result<&'a str, ApiError> {
    let name = work.parameters.text("RoleSessionName").unwrap_or_default();
    let fits = (2..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".@_-".contains(&byte));
    let text = "The parameter RoleSessionName is wrongly formed: 2 to 64 of A-Z a-z 0-9 . @ _ -";
    fits.then_some(name).ok_or_else(|| ApiError::bad("InvalidParameter.RoleSessionName", text))
}

fn role(work: &Work<'_, '_>) -> Result<Role, ApiError> {
    let arn = work.parameters.text("RoleArn").unwrap_or_default();
    let missing = || ApiError::missing("EntityNotExist.Role", format!("The specified role {arn} does not exist."));
    work.cloud.account.roles.iter().find(|role| role.arn == arn).cloned().ok_or_else(missing)
}

fn issue(work: &mut Work<'_, '_>, role: &Role) -> Result<Value, ApiError> {
    let session = session_name(work)?.to_owned();
    let seconds = work.parameters.number("DurationSeconds").unwrap_or(3600.min(i64::from(role.max_session_s)));
    if seconds > i64::from(role.max_session_s) {
        let text = format!("DurationSeconds is {seconds}, the role allows {}", role.max_session_s);
        return Err(ApiError::bad("InvalidParameter.DurationSeconds", text));
    }
    let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or(900));
    let key = work.cloud.account.issue(role, &session, lifetime, work.context.now, work.context.chance);
    let (token, expires) = key.session.map(|session| (session.token, session.expires)).unwrap_or_default();
    Ok(json!({
        "Credentials": {
            "AccessKeyId": key.id, "AccessKeySecret": key.secret, "SecurityToken": token, "Expiration": expires.seconds(),
        },
        "AssumedRoleUser": {
            "Arn": format!("{}/{session}", role.arn.replace(":role/", ":assumed-role/")),
            "AssumedRoleId": format!("330000000000000001:{session}"),
        },
    }))
}

fn assume(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let role = role(work)?;
    issue(work, &role)
}

fn refuse<T>(what: &str, text: &str) -> Result<T, ApiError> {
    Err(ApiError::new(401, &format!("AuthenticationFail.{what}"), text))
}

fn assume_with_token(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let token = work.parameters.text("OIDCToken").unwrap_or_default().to_owned();
    let role = role(work)?;
    if role.oidc_provider.as_deref() != work.parameters.text("OIDCProviderArn") || role.oidc_provider.is_none() {
        return refuse("NoPermission", "This operation is not permitted by the role's trust policy.");
    }
    if token.trim() != token {
        work.context.violation("white space around the OIDC token");
    }
    let claims = verify(&token, &work.cloud.oidc_secret, work.context.now)?;
    let mut body = issue(work, &role)?;
    if let Some(fields) = body.as_object_mut() {
        let claim = |name: &str| claims.get(name).cloned().unwrap_or_default();
        let info = json!({
            "Subject": claim("sub"), "Issuer": claim("iss"), "ClientIds": AUDIENCE, "VerificationInfo": "Success",
        });
        fields.insert("OIDCTokenInfo".to_owned(), info);
        fields.insert("SourceIdentity".to_owned(), json!(""));
    }
    Ok(body)
}

const AUDIENCE: &str = "sts.aliyuncs.com";

/// Claims of a token, if it is whole, signed, for us, and in time.
fn verify(token: &str, secret: &str, now: UnixMs) -> Result<Value, ApiError> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts.as_slice() else {
        return refuse("OIDCToken.Invalid", "The OIDC token is invalid.");
    };
    let json_of = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    let (Some(_), Some(claims), true) = (json_of(header), json_of(payload), (4..=20_000).contains(&token.len())) else {
        return refuse("OIDCToken.Invalid", "The OIDC token is invalid.");
    };
    let expected = URL_SAFE_NO_PAD.encode(hmac_sha256(secret.as_bytes(), format!("{header}.{payload}").as_bytes()));
    if *signature != expected {
        return refuse("OIDCToken.InvalidSignature", "The signature of the OIDC token is invalid.");
    }
    let audience = claims.get("aud").cloned().unwrap_or_default();
    let ours =
        audience == AUDIENCE || audience.as_array().is_some_and(|list| list.iter().any(|entry| entry == AUDIENCE));
    if !ours {
        return refuse("OIDCToken.AudienceNotMatch", "The audience of the OIDC token does not match.");
    }
    match claims.get("exp").and_then(Value::as_i64) {
        Some(expires) if now < UnixMs(expires.saturating_mul(1000)) => Ok(claims),
        _ => refuse("OIDCToken.Expired", "The OIDC token is expired."),
    }
}

/// A token as the cluster would mount it, signed with the scenario's secret.
pub fn oidc_token(secret: &str, audience: &str, expires: UnixMs) -> String {
    let claims = json!({
        "aud": [audience],
        "exp": expires.0.div_euclid(1000),
        "iss": "https://oidc-ack-cn-hangzhou.oss-cn-hangzhou.aliyuncs.com/fake",
        "sub": "system:serviceaccount:kube-system:cluster-autoscaler",
    });
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "typ": "JWT"}).to_string());
    let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
    let signature = URL_SAFE_NO_PAD.encode(hmac_sha256(secret.as_bytes(), format!("{header}.{payload}").as_bytes()));
    format!("{header}.{payload}.{signature}")
}

fn identity(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let kind = if work.caller.arn.contains(":role/") { "AssumedRoleUser" } else { "RAMUser" };
    Ok(json!({
        "AccountId": "1234567890123456", "Arn": work.caller.arn, "IdentityType": kind, "PrincipalId": work.caller.key,
        "UserId": "216959339000654321",
    }))
}
