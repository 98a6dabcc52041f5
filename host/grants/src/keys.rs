//! How requests are signed and where keys come from, as configured. What is named here is read and kept by the host only.

use std::fmt;
use std::path::PathBuf;

/// How requests of a slot are signed, as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignerConfig {
    /// A token in the header `authorization`.
    Bearer(Place),
    /// User name and password in the header `authorization`.
    Basic {
        /// The user.
        user: String,
        /// Where the password is.
        password: Place,
    },
    /// A signature in a header.
    HmacHeader {
        /// Where the key is.
        key: Place,
        /// Header for the signature.
        header: http::HeaderName,
        /// Header for the time.
        timestamp_header: http::HeaderName,
    },
    /// AliCloud's signatures.
    Alicloud {
        /// Which one.
        generation: Generation,
        /// Where keys come from; none: from what the environment speaks of.
        keys: Option<KeyConfig>,
    },
}

/// Which of AliCloud's two signatures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// ACS3-HMAC-SHA256, in headers.
    V3,
    /// HMAC-SHA1, in the query. Only for RPC style operations.
    V1,
}

/// Where a secret text lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a file, such as a mounted Secret.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
        }
    }
}

/// Where the keys of a cloud account come from, as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyConfig {
    /// The first key.
    pub origin: KeyOrigin,
    /// A role that is assumed with it, if any.
    pub assume: Option<Role>,
    /// Base address of the token service.
    pub sts: String,
}

/// Where a first key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrigin {
    /// Files or environment variables.
    AccessKey(AccessKey),
    /// The service account's token, exchanged for a role (RRSA).
    Rrsa(Rrsa),
    /// The role of the instance, from its metadata service.
    RamRole(RamRole),
}

/// A key that an operator made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessKey {
    /// Where its id is.
    pub id: Place,
    /// Where its secret is.
    pub secret: Place,
    /// Where its token is, for a temporary key; an unset or missing one is no error.
    pub token: Option<Place>,
}

/// RAM Roles for Service Accounts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rrsa {
    /// `acs:ram::ACCOUNT:oidc-provider/NAME`.
    pub provider_arn: String,
    /// File with the service account's token.
    pub token_file: PathBuf,
    /// The role.
    pub role: Role,
}

/// A role to assume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// `acs:ram::ACCOUNT:role/NAME`.
    pub arn: String,
    /// Name of the session, in the cloud's audit log; none: `cluster-autoscaler-UNIX_SECONDS`.
    pub session_name: Option<String>,
    /// Life of its keys in seconds; none: the cloud's default, an hour.
    pub duration_seconds: Option<u32>,
    /// External id that the role's trust policy asks for.
    pub external_id: Option<String>,
}

/// The role that is attached to the instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RamRole {
    /// Its name; none: the metadata service tells.
    pub name: Option<String>,
    /// Base address of the metadata service.
    pub endpoint: String,
    /// Refuse to ask without a token (hardened mode only).
    pub only_v2: bool,
}

/// Base address of AliCloud's metadata service.
pub(crate) const METADATA: &str = "http://100.100.100.200";
/// Base address of AliCloud's token service.
pub(crate) const STS: &str = "https://sts.aliyuncs.com";

impl Default for RamRole {
    fn default() -> Self {
        Self { name: None, endpoint: METADATA.to_owned(), only_v2: false }
    }
}

impl KeyConfig {
    /// Keys from here, with the public token service.
    pub fn new(origin: KeyOrigin) -> Self {
        Self { origin, assume: None, sts: STS.to_owned() }
    }
}
