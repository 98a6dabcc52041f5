//! The section `credentials` of a plug-in: how requests of a slot are signed, with which key, and for what.

use std::path::PathBuf;

use http::HeaderName;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, Place as Spot};
use crate::action::ActionGrant;
use crate::grant::{Grant, HostPattern};
use crate::keys::{AccessKey, Generation, KeyConfig, KeyOrigin, Place, RamRole, Role, Rrsa, SignerConfig};

/// How a credential signs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// A token in the header `authorization`.
    Bearer,
    /// User name and password in the header `authorization`.
    Basic,
    /// A signature over method, path, time and body in a header.
    HmacHeader,
    /// AliCloud's ACS3-HMAC-SHA256.
    AlicloudV3,
    /// AliCloud's HMAC-SHA1.
    AlicloudV1,
}

/// A credential of a plug-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CredentialEntry {
    /// How it signs.
    pub signer: SignerConfig,
    /// Hosts that it may be used for.
    pub hosts: Vec<String>,
    /// API actions that it may be used for; none: any.
    pub actions: Option<Vec<ActionGrant>>,
}

const EXAMPLE: &str = "credentials:\n  api: {kind: bearer, file: /var/run/secrets/token, hosts: [api.example.com]}";
const BASIC: &str = "credentials:
  api: {kind: basic, user: autoscaler, file: /var/run/secrets/password, hosts: [api.example.com]}";
const HMAC: &str = "credentials:
  api:
    kind: hmac-header
    file: /var/run/secrets/key
    header: x-signature
    timestamp-header: x-timestamp
    hosts: [api.example.com]";
const ALICLOUD: &str = "credentials:
  api:
    kind: alicloud-v3
    hosts: ['*.aliyuncs.com']
    actions: [DescribeScalingGroups, ScaleWithAdjustment]
    access-key: {folder: /var/run/secrets/alicloud}";
const RRSA: &str = "credentials:
  api:
    kind: alicloud-v3
    hosts: ['*.aliyuncs.com']
    rrsa:
      role-arn: acs:ram::1234567890123456:role/autoscaler
      oidc-provider-arn: acs:ram::1234567890123456:oidc-provider/ack-rrsa-c0123
      oidc-token-file: /var/run/secrets/tokens/oidc-token";
const RAM_ROLE: &str = "credentials:
  api: {kind: alicloud-v3, hosts: ['*.aliyuncs.com'], ram-role: {}}";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawCredential {
    kind: Spanned<CredentialKind>,
    hosts: Vec<Spanned<String>>,
    actions: Option<Vec<Spanned<String>>>,
    file: Option<PathBuf>,
    env: Option<String>,
    user: Option<String>,
    header: Option<Spanned<String>>,
    timestamp_header: Option<Spanned<String>>,
    access_key: Option<RawAccessKey>,
    rrsa: Option<RawRrsa>,
    ram_role: Option<RawRamRole>,
    #[serde(default)]
    environment: bool,
    assume_role: Option<RawRole>,
    sts_endpoint: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawAccessKey {
    folder: Option<PathBuf>,
    id_file: Option<PathBuf>,
    secret_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    id_env: Option<String>,
    secret_env: Option<String>,
    token_env: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRrsa {
    role_arn: Spanned<String>,
    oidc_provider_arn: String,
    oidc_token_file: PathBuf,
    session_name: Option<Spanned<String>>,
    duration_seconds: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRamRole {
    name: Option<String>,
    endpoint: Option<Spanned<String>>,
    #[serde(default)]
    only_v2: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRole {
    role_arn: Spanned<String>,
    session_name: Option<Spanned<String>>,
    duration_seconds: Option<Spanned<u32>>,
    external_id: Option<String>,
}

/// Reads one credential, and complains with its place.
pub(super) struct Reader<'a> {
    pub(super) spot: &'a Spot<'a>,
    pub(super) slot: &'a str,
}

type Read<T> = Result<T, ConfigError>;

impl Reader<'_> {
    fn fail<T>(&self, at: &Spanned<T>, key: &str, message: String, example: &'static str) -> ConfigError {
        let key = if key.is_empty() { String::new() } else { format!(".{key}") };
        self.spot.error(at.referenced, &format!("credentials.{}{key}", self.slot), message, example)
    }

    /// A credential may only go where the plug-in may go.
    pub(super) fn read(&self, raw: RawCredential, grants: &[Grant]) -> Read<CredentialEntry> {
        let mut hosts = vec![];
        for (index, host) in raw.hosts.iter().enumerate() {
            let text = &host.value;
            let fail = |message| self.fail(host, &format!("hosts[{index}]"), message, EXAMPLE);
            let pattern = HostPattern::parse(text)
                .map_err(|_| fail(format!("{text:?} is no host name; write it without scheme, port and path")))?;
            if !grants.iter().any(|grant| grant.reaches(&pattern)) {
                let key = format!("plugins.{}.hosts", self.spot.plugin);
                return Err(fail(format!("{text:?} is not granted; add https://{text} under {key} first")));
            }
            hosts.push(text.clone());
        }
        let actions = raw.actions.as_ref().map(|actions| self.actions(actions)).transpose()?;
        let signer = self.signer(raw)?;
        Ok(CredentialEntry { signer, hosts, actions })
    }

    fn actions(&self, actions: &[Spanned<String>]) -> Read<Vec<ActionGrant>> {
        let read = |(index, text): (usize, &Spanned<String>)| {
            let fail = |error| {
                self.fail(
                    text,
                    &format!("actions[{index}]"),
                    format!("{:?} is no action: {error}", text.value),
                    ALICLOUD,
                )
            };
            ActionGrant::parse(&text.value).map_err(fail)
        };
        actions.iter().enumerate().map(read).collect()
    }

    fn signer(&self, raw: RawCredential) -> Read<SignerConfig> {
        let example = match raw.kind.value {
            CredentialKind::Bearer => EXAMPLE,
            CredentialKind::Basic => BASIC,
            CredentialKind::HmacHeader => HMAC,
            CredentialKind::AlicloudV3 | CredentialKind::AlicloudV1 => ALICLOUD,
        };
        self.only_what_it_uses(&raw, example)?;
        match raw.kind.value {
            CredentialKind::Bearer => Ok(SignerConfig::Bearer(self.place(&raw, example)?)),
            CredentialKind::Basic => {
                let password = self.place(&raw, example)?;
                let missing = || self.fail(&raw.kind, "", "kind basic needs user".to_owned(), example);
                let user = raw.user.clone().ok_or_else(missing)?;
                if user.contains(':') {
                    let message = format!("user is {user:?}; a user name must not have a colon");
                    return Err(self.fail(&raw.kind, "user", message, example));
                }
                Ok(SignerConfig::Basic { user, password })
            }
            CredentialKind::HmacHeader => Ok(SignerConfig::HmacHeader {
                key: self.place(&raw, example)?,
                header: self.header(raw.header.as_ref(), "header", "x-signature")?,
                timestamp_header: self.header(raw.timestamp_header.as_ref(), "timestamp-header", "x-timestamp")?,
            }),
            CredentialKind::AlicloudV3 => {
                Ok(SignerConfig::Alicloud { generation: Generation::V3, keys: self.keys(raw)? })
            }
            CredentialKind::AlicloudV1 => {
                Ok(SignerConfig::Alicloud { generation: Generation::V1, keys: self.keys(raw)? })
            }
        }
    }

    /// A key that has no effect is a mistake.
    fn only_what_it_uses(&self, raw: &RawCredential, example: &'static str) -> Read<()> {
        use CredentialKind::{AlicloudV1, AlicloudV3, Basic, HmacHeader};
        let kind = raw.kind.value;
        let alicloud = matches!(kind, AlicloudV3 | AlicloudV1);
        let keys = [
            ("file", raw.file.is_some(), !alicloud),
            ("env", raw.env.is_some(), !alicloud),
            ("user", raw.user.is_some(), kind == Basic),
            ("header", raw.header.is_some(), kind == HmacHeader),
            ("timestamp-header", raw.timestamp_header.is_some(), kind == HmacHeader),
            ("actions", raw.actions.is_some(), alicloud),
            ("access-key", raw.access_key.is_some(), alicloud),
            ("rrsa", raw.rrsa.is_some(), alicloud),
            ("ram-role", raw.ram_role.is_some(), alicloud),
            ("environment", raw.environment, alicloud),
            ("assume-role", raw.assume_role.is_some(), alicloud && !raw.environment),
            ("sts-endpoint", raw.sts_endpoint.is_some(), alicloud && !raw.environment),
        ];
        match keys.into_iter().find(|(_, given, used)| *given && !used) {
            Some((key, ..)) if alicloud && raw.environment => {
                let message = "environment: true takes everything from the environment; leave this out".to_owned();
                Err(self.fail(&raw.kind, key, message, ALICLOUD))
            }
            Some((key, ..)) => {
                Err(self.fail(&raw.kind, key, "has no effect for this kind; leave it out".to_owned(), example))
            }
            None => Ok(()),
        }
    }

    fn place(&self, raw: &RawCredential, example: &'static str) -> Read<Place> {
        match (&raw.file, &raw.env) {
            (Some(file), None) => Ok(Place::File(file.clone())),
            (None, Some(name)) => Ok(Place::Variable(name.clone())),
            _ => {
                let message = "say where the secret is: file or env, one of them".to_owned();
                Err(self.fail(&raw.kind, "", message, example))
            }
        }
    }

    fn header(&self, text: Option<&Spanned<String>>, key: &str, default: &'static str) -> Read<HeaderName> {
        let Some(text) = text else { return Ok(HeaderName::from_static(default)) };
        HeaderName::try_from(text.value.as_str())
            .map_err(|_| self.fail(text, key, format!("{:?} is no name of a header", text.value), HMAC))
    }

    /// None: those of the environment.
    fn keys(&self, raw: RawCredential) -> Read<Option<KeyConfig>> {
        let given = [raw.access_key.is_some(), raw.rrsa.is_some(), raw.ram_role.is_some(), raw.environment];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let message = "say where keys come from: access-key, rrsa, ram-role or environment: true, one of them";
            return Err(self.fail(&raw.kind, "", message.to_owned(), ALICLOUD));
        }
        let origin = match (raw.access_key, raw.rrsa, raw.ram_role) {
            (Some(key), ..) => KeyOrigin::AccessKey(self.access_key(&raw.kind, key)?),
            (_, Some(rrsa), _) => KeyOrigin::Rrsa(self.rrsa(rrsa)?),
            (_, _, Some(role)) => KeyOrigin::RamRole(self.ram_role(role)?),
            (None, None, None) => return Ok(None),
        };
        let mut keys = KeyConfig::new(origin);
        if let Some(role) = raw.assume_role {
            let external_id = role.external_id;
            let role = self.role("assume-role", role.role_arn, role.session_name, role.duration_seconds)?;
            keys.assume = Some(Role { external_id, ..role });
        }
        if let Some(endpoint) = raw.sts_endpoint {
            keys.sts = self.endpoint(&endpoint, "sts-endpoint", false)?;
        }
        Ok(Some(keys))
    }

    fn access_key(&self, at: &Spanned<CredentialKind>, raw: RawAccessKey) -> Read<AccessKey> {
        let complain = || {
            let message = "say where the key is: folder (with access-key-id and access-key-secret), or id-file and \
                           secret-file, or id-env and secret-env";
            self.fail(at, "access-key", message.to_owned(), ALICLOUD)
        };
        let files = [&raw.id_file, &raw.secret_file, &raw.token_file].map(Option::is_some);
        let variables = [&raw.id_env, &raw.secret_env, &raw.token_env].map(Option::is_some);
        match raw {
            RawAccessKey { folder: Some(folder), .. } if files == [false; 3] && variables == [false; 3] => {
                let place = |name: &str| Place::File(folder.join(name));
                Ok(AccessKey {
                    id: place("access-key-id"),
                    secret: place("access-key-secret"),
                    token: Some(place("security-token")),
                })
            }
            RawAccessKey { folder: None, id_file: Some(id), secret_file: Some(secret), token_file, .. }
                if variables == [false; 3] =>
            {
                Ok(AccessKey { id: Place::File(id), secret: Place::File(secret), token: token_file.map(Place::File) })
            }
            RawAccessKey { folder: None, id_env: Some(id), secret_env: Some(secret), token_env, .. }
                if files == [false; 3] =>
            {
                let token = token_env.map(Place::Variable);
                Ok(AccessKey { id: Place::Variable(id), secret: Place::Variable(secret), token })
            }
            _ => Err(complain()),
        }
    }

    fn rrsa(&self, raw: RawRrsa) -> Read<Rrsa> {
        let role = self.role("rrsa", raw.role_arn, raw.session_name, raw.duration_seconds)?;
        Ok(Rrsa { provider_arn: raw.oidc_provider_arn, token_file: raw.oidc_token_file, role })
    }

    fn ram_role(&self, raw: RawRamRole) -> Read<RamRole> {
        let mut role = RamRole { name: raw.name, only_v2: raw.only_v2, ..RamRole::default() };
        if let Some(endpoint) = raw.endpoint {
            role.endpoint = self.endpoint(&endpoint, "ram-role.endpoint", true)?;
        }
        Ok(role)
    }

    /// AliCloud RAM, AssumeRole: forms of `RoleArn`, `RoleSessionName` and `DurationSeconds`.
    fn role(
        &self,
        key: &str,
        arn: Spanned<String>,
        session: Option<Spanned<String>>,
        duration: Option<Spanned<u32>>,
    ) -> Read<Role> {
        if !arn.value.starts_with("acs:ram::") || !arn.value.contains(":role/") {
            let message = format!("{:?} is no role; expected acs:ram::ACCOUNT:role/NAME", arn.value);
            return Err(self.fail(&arn, &format!("{key}.role-arn"), message, RRSA));
        }
        if let Some(session) = &session {
            let fits = |c: char| c.is_ascii_alphanumeric() || ".@_-".contains(c);
            if !(2..=64).contains(&session.value.len()) || !session.value.chars().all(fits) {
                let message =
                    format!("{:?} cannot be a session name; use 2 to 64 of a-z, A-Z, 0-9 and .@_-", session.value);
                return Err(self.fail(session, &format!("{key}.session-name"), message, RRSA));
            }
        }
        if let Some(seconds) = duration.as_ref().filter(|seconds| !(900..=43_200).contains(&seconds.value)) {
            let message = format!("{} is not between 900 and 43200", seconds.value);
            return Err(self.fail(seconds, &format!("{key}.duration-seconds"), message, RRSA));
        }
        Ok(Role {
            arn: arn.value,
            session_name: session.map(|session| session.value),
            duration_seconds: duration.map(|seconds| seconds.value),
            external_id: None,
        })
    }

    /// Base address of a service. A token must not travel in the open, except on this machine or to the metadata service.
    fn endpoint(&self, text: &Spanned<String>, key: &str, plain: bool) -> Read<String> {
        let example = if plain { RAM_ROLE } else { RRSA };
        let fail = |message: &str| self.fail(text, key, format!("{:?} {message}", text.value), example);
        let url = url::Url::parse(&text.value).map_err(|_| fail("is no address"))?;
        let here = url.host().is_some_and(|host| matches!(host, url::Host::Ipv4(address) if address.is_loopback()));
        if url.scheme() != "https" && !(url.scheme() == "http" && (plain || here)) {
            return Err(fail("must begin with https://"));
        }
        if url.path() != "/" || url.query().is_some() || !url.username().is_empty() {
            return Err(fail("must end after the host or port"));
        }
        Ok(text.value.trim_end_matches('/').to_owned())
    }
}
