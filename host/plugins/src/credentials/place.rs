//! Where a secret text lies, and how it is read: anew each time, so that one that was replaced works at once.

use plimsoll_grants::{Environment, Place};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::error::CredentialError;

/// Longest secret. AliCloud's OIDC tokens may have 20,000 characters.
const MOST_BYTES: u64 = 64 << 10;
/// How often a set of secrets that changes meanwhile is read again.
const ATTEMPTS: usize = 5;

/// The text without white space around it. Blocks.
fn read_now(place: &Place, environment: &Environment) -> Result<SecretString, CredentialError> {
    let fail = |reason: String| CredentialError::Unreadable { place: place.to_string(), reason };
    let text = match place {
        Place::Variable(name) => Zeroizing::new(environment.get(name).ok_or_else(|| fail("it is not set".into()))?),
        Place::File(path) => {
            let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?.len();
            if size > MOST_BYTES {
                return Err(fail(format!("it has {size} bytes; at most {MOST_BYTES} are read")));
            }
            Zeroizing::new(std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?)
        }
    };
    match text.trim() {
        "" => Err(CredentialError::Unusable { place: place.to_string() }),
        text => Ok(SecretString::from(text)),
    }
}

/// Reads one text, on a thread for blocking work.
pub(super) async fn read(place: &Place, environment: &Environment) -> Result<SecretString, CredentialError> {
    let (place, environment) = (place.clone(), environment.clone());
    blocking(move || read_now(&place, &environment)).await
}

/// Texts that belong together: required ones, and at the end an optional one.
#[derive(Clone)]
pub(super) struct Together<const N: usize> {
    pub(super) required: [Place; N],
    pub(super) optional: Option<Place>,
}

/// What was read of [`Together`].
pub(super) type Read<const N: usize> = ([SecretString; N], Option<SecretString>);

/// Reads until two readings agree, so that a Secret that is swapped in between never gives half old, half new.
pub(super) async fn read_together<const N: usize>(
    places: &Together<N>,
    environment: &Environment,
) -> Result<Read<N>, CredentialError> {
    let (places, environment) = (places.clone(), environment.clone());
    blocking(move || steady(&places, || once(&places, &environment))).await
}

fn steady<const N: usize>(
    places: &Together<N>,
    mut once: impl FnMut() -> Result<Read<N>, CredentialError>,
) -> Result<Read<N>, CredentialError> {
    let mut before = once();
    for _ in 0..ATTEMPTS {
        let now = once();
        match (before, now) {
            (Ok(a), Ok(b)) if same(&a, &b) => return Ok(b),
            (Err(a), Err(b)) if a == b => return Err(b),
            (_, now) => before = now,
        }
    }
    let place = places.required.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    Err(CredentialError::Unsteady { place })
}

fn once<const N: usize>(places: &Together<N>, environment: &Environment) -> Result<Read<N>, CredentialError> {
    let mut texts = Vec::with_capacity(N);
    for place in &places.required {
        texts.push(read_now(place, environment)?);
    }
    let texts = texts.try_into().map_err(|_| CredentialError::Other("a secret was lost".to_owned()))?;
    Ok((texts, places.optional.as_ref().and_then(|place| read_now(place, environment).ok())))
}

fn same<const N: usize>(a: &Read<N>, b: &Read<N>) -> bool {
    let equal = |a: &SecretString, b: &SecretString| a.expose_secret() == b.expose_secret();
    let optional = match (&a.1, &b.1) {
        (Some(a), Some(b)) => equal(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    optional && a.0.iter().zip(&b.0).all(|(a, b)| equal(a, b))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CredentialError> + Send + 'static,
) -> Result<T, CredentialError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CredentialError::Other(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(id: &str, secret: &str) -> Read<2> {
        ([id.to_owned().into(), secret.to_owned().into()], None)
    }

    fn places() -> Together<2> {
        Together { required: ["id", "secret"].map(|name| Place::File(name.into())), optional: None }
    }

    #[test]
    fn a_pair_that_is_swapped_between_two_reads_is_read_again() {
        // A swap between the id and the secret of the first reading.
        let mut readings = vec![pair("new", "new"), pair("new", "new"), pair("old", "new")];
        let ([id, secret], _) = steady(&places(), || Ok(readings.pop().unwrap())).unwrap();
        assert_eq!((id.expose_secret(), secret.expose_secret()), ("new", "new"));
    }

    #[test]
    fn a_pair_that_never_rests_is_an_error() {
        let mut turn = 0;
        let error = steady(&places(), || {
            turn += 1;
            Ok(pair(&turn.to_string(), "x"))
        });
        assert_eq!(error.unwrap_err(), CredentialError::Unsteady { place: "id and secret".into() });
    }
}
