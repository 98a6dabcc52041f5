//! A signature in a header, for APIs that have no scheme of their own.
//!
//! ```text
//! x-timestamp: 1717230600
//! x-signature: hex(HMAC-SHA256(key, METHOD "\n" PATH?QUERY "\n" TIMESTAMP "\n" hex(SHA256(BODY))))
//! ```

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderName, HeaderValue, Request};
use plimsoll_grants::{Environment, Place};
use secrecy::ExposeSecret as _;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

use super::alicloud::hex;
use super::place::read;
use super::{CredentialError, Exposed, Signer};
use crate::Pending;
use crate::clock::Clock;

/// Signs method, path, time and body with a key that is read anew for every request.
#[derive(Clone)]
pub struct HmacHeader {
    key: Place,
    environment: Environment,
    clock: Arc<dyn Clock>,
    header: HeaderName,
    timestamp_header: HeaderName,
}

impl HmacHeader {
    /// The key at this place; the signature goes into `header`, the time in seconds into `timestamp_header`.
    pub fn new(
        key: Place,
        environment: Environment,
        clock: Arc<dyn Clock>,
        header: HeaderName,
        timestamp_header: HeaderName,
    ) -> Self {
        Self { key, environment, clock, header, timestamp_header }
    }
}

impl Signer for HmacHeader {
    fn sign<'a>(&'a self, request: &'a mut Request<Bytes>) -> Pending<'a, Result<Exposed, CredentialError>> {
        Box::pin(async move {
            let key = read(&self.key, &self.environment).await?;
            let seconds = self.clock.wall().as_secs();
            let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            let body = hex(&Sha256::digest(request.body()));
            let text = format!("{}\n{target}\n{seconds}\n{body}", request.method());
            let mut hmac = Hmac::<Sha256>::new_from_slice(key.expose_secret().as_bytes())
                .map_err(|error| CredentialError::Other(error.to_string()))?;
            hmac.update(text.as_bytes());
            let signature = hex(&hmac.finalize().into_bytes());
            let mut value =
                HeaderValue::try_from(signature.as_str()).map_err(|error| CredentialError::Other(error.to_string()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(&self.header, value);
            request.headers_mut().insert(&self.timestamp_header, HeaderValue::from(seconds));
            Ok(Exposed(vec![key, signature.into()]))
        })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Time;

    use super::*;
    use crate::clock::VirtualClock;

    #[tokio::test]
    async fn signs_method_target_time_and_body() {
        let clock = Arc::new(VirtualClock::new(Time::from_millis(1_717_230_600_000)));
        let environment = Environment::of([("KEY", "testsecret")]);
        let signer = HmacHeader::new(
            Place::Variable("KEY".into()),
            environment,
            clock,
            HeaderName::from_static("x-signature"),
            HeaderName::from_static("x-timestamp"),
        );
        let mut request =
            Request::post("https://api.example.com/v1/pools?a=b").body(Bytes::from_static(b"{\"n\":1}")).unwrap();
        signer.sign(&mut request).await.unwrap();
        assert_eq!(request.headers()["x-timestamp"], "1717230600");
        // python3 -c "import hmac,hashlib as h; b=h.sha256(b'{\"n\":1}').hexdigest();
        //   print(hmac.new(b'testsecret', f'POST\n/v1/pools?a=b\n1717230600\n{b}'.encode(), h.sha256).hexdigest())"
        assert_eq!(
            request.headers()["x-signature"],
            "4ec4e7998c04b0448a630367f7a9ed52e496e8dc1f9f129ff4e38a3493f04b97"
        );
    }
}
