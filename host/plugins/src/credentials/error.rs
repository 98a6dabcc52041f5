//! Why a credential cannot be used.

/// Why a request could not be signed. The text is for the operator and never holds a secret; the guest learns only that
/// it was so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CredentialError {
    /// The secret cannot be had.
    #[error("the secret cannot be read from {place}: {reason}")]
    Unreadable {
        /// Where it should be.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// The secret cannot be put into a request.
    #[error("the secret in {place} is empty or has characters that no header may have")]
    Unusable {
        /// Where it is.
        place: String,
    },
    /// Key id and secret cannot be read as a pair.
    #[error("{place} keeps changing while it is read, so key id and secret cannot be told to belong together")]
    Unsteady {
        /// Where they are.
        place: String,
    },
    /// The guest's request does not fit the way of signing.
    #[error("{0}")]
    Request(String),
    /// A token or metadata service cannot be asked.
    #[error("{service} does not answer: {reason}")]
    Unreachable {
        /// Its address.
        service: String,
        /// What went wrong.
        reason: String,
    },
    /// A token or metadata service says no.
    #[error("{service} refused with {code} (HTTP {status}): {message}{}", advice(code))]
    Refused {
        /// Its address.
        service: String,
        /// HTTP status.
        status: u16,
        /// Its code, such as `AuthenticationFail.NoPermission`.
        code: String,
        /// Its words, cut.
        message: String,
    },
    /// A token or metadata service answers something else than credentials.
    #[error("{service} answers what is no credential: {what}")]
    Nonsense {
        /// Its address.
        service: String,
        /// What is wrong with it.
        what: String,
    },
    /// A credential that is no longer valid when it arrives.
    #[error(
        "{service} gave a credential that expired at {expired}, and it is {now}; is the clock of this machine right?"
    )]
    Stale {
        /// Its address.
        service: String,
        /// When it expired.
        expired: String,
        /// What time it is.
        now: String,
    },
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// What to do about a code of the token service. AliCloud RAM, "AssumeRoleWithOIDC" error codes.
fn advice(code: &str) -> &'static str {
    match code {
        "AuthenticationFail.NoPermission" => "; let the role trust this OIDC provider and service account",
        "AuthenticationFail.OIDCToken.Expired" => "; is the service account token file still rotated by the kubelet?",
        "AuthenticationFail.OIDCToken.AudienceNotMatch" => {
            "; the projected service account token needs the audience sts.aliyuncs.com"
        }
        "EntityNotExist.Role" => "; check the role's name",
        "NoPermission" => "; let the role trust the account or user of the key",
        _ => "",
    }
}
