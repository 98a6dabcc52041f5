//! Makes signers from what an operator configured.

use std::fmt;
use std::sync::Arc;

use plimsoll_grants::{
    AccessKey, Environment, EnvironmentError, KeyConfig, KeyOrigin, SignerConfig, alicloud_from_environment,
};

use super::alicloud::{Alicloud, Nonces, RandomNonces};
use super::hmac_header::HmacHeader;
use super::key::{Key, KeySource};
use super::metadata::Metadata;
use super::place::{Together, read_together};
use super::refresh::Refreshing;
use super::sts::{Desk, WithKey, WithOidc};
use super::token::{Basic, Bearer};
use super::{CredentialError, Signer};
use crate::Pending;
use crate::clock::{Clock, SystemClock};
use crate::egress::{AddressPolicy, Internet, InternetError, InternetOptions, Transport};

/// The broker cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("the token services cannot be reached: {0}")]
pub struct BrokerError(#[from] InternetError);

/// What signers need from the host: time, environment, and a way to token and metadata services that is the host's own.
#[derive(Clone)]
pub struct Broker {
    environment: Environment,
    desk: Desk,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("environment", &self.environment).finish_non_exhaustive()
    }
}

impl Broker {
    /// Asks token and metadata services through `transport`, which is the host's own and not bounded by any grant.
    pub fn new(clock: Arc<dyn Clock>, environment: Environment, transport: Arc<dyn Transport>) -> Self {
        Self::with(clock, environment, transport, Arc::new(RandomNonces))
    }

    pub(super) fn with(
        clock: Arc<dyn Clock>,
        environment: Environment,
        transport: Arc<dyn Transport>,
        nonces: Arc<dyn Nonces>,
    ) -> Self {
        Self { environment, desk: Desk { transport, clock, nonces } }
    }

    /// The clock, the environment and the network of this machine.
    ///
    /// # Errors
    /// If the network cannot be set up.
    pub fn of_this_machine(network: InternetOptions) -> Result<Self, BrokerError> {
        Self::reaching(Arc::new(SystemClock::new()), Environment::process(), network)
    }

    /// Reaches token and metadata services over this network, whatever their addresses.
    ///
    /// # Errors
    /// If the network cannot be set up.
    pub fn reaching(
        clock: Arc<dyn Clock>,
        environment: Environment,
        network: InternetOptions,
    ) -> Result<Self, BrokerError> {
        let transport = Arc::new(Internet::new(AddressPolicy::everything(), network)?);
        Ok(Self::new(clock, environment, transport))
    }

    /// Where keys are had.
    pub fn keys(&self, config: &KeyConfig) -> Arc<dyn KeySource> {
        let clock = || self.desk.clock.clone();
        let endpoint = config.sts.trim_end_matches('/').to_owned();
        let desk = self.desk.clone();
        let first: Arc<dyn KeySource> = match config.origin.clone() {
            KeyOrigin::AccessKey(key) => Arc::new(Fixed { key, environment: self.environment.clone() }),
            KeyOrigin::Rrsa(rrsa) => {
                let (provider_arn, token_file, role) = (rrsa.provider_arn, rrsa.token_file, rrsa.role);
                let fetch = WithOidc { desk: desk.clone(), endpoint: endpoint.clone(), provider_arn, token_file, role };
                Arc::new(Refreshing::new(fetch, clock()))
            }
            KeyOrigin::RamRole(role) => Arc::new(Refreshing::new(Metadata { desk: desk.clone(), role }, clock())),
        };
        match config.assume.clone() {
            Some(role) => Arc::new(Refreshing::new(WithKey { desk, endpoint, keys: first, role }, clock())),
            None => first,
        }
    }

    /// A signer.
    ///
    /// # Errors
    /// If keys should come from the environment, and that speaks of none.
    pub fn signer(&self, config: &SignerConfig) -> Result<Arc<dyn Signer>, EnvironmentError> {
        let (environment, clock) = (self.environment.clone(), self.desk.clock.clone());
        Ok(match config.clone() {
            SignerConfig::Bearer(place) => Arc::new(Bearer::new(place, environment)),
            SignerConfig::Basic { user, password } => Arc::new(Basic::new(user, password, environment)),
            SignerConfig::HmacHeader { key, header, timestamp_header } => {
                Arc::new(HmacHeader::new(key, environment, clock, header, timestamp_header))
            }
            SignerConfig::Alicloud { generation, keys } => {
                let keys = match keys {
                    Some(keys) => keys,
                    None => self.keys_of_the_environment()?,
                };
                Arc::new(Alicloud::with(generation, self.keys(&keys), clock, self.desk.nonces.clone()))
            }
        })
    }

    fn keys_of_the_environment(&self) -> Result<KeyConfig, EnvironmentError> {
        let chosen = alicloud_from_environment(&self.environment)?;
        tracing::info!(mode = chosen.mode, "AliCloud credentials come from the environment");
        for note in &chosen.notes {
            tracing::warn!("{note}");
        }
        Ok(chosen.keys)
    }
}

/// A key that an operator made; read anew each time, so that one that was replaced works at once.
struct Fixed {
    key: AccessKey,
    environment: Environment,
}

impl KeySource for Fixed {
    fn key(&self) -> Pending<'_, Result<Arc<Key>, CredentialError>> {
        Box::pin(async move {
            let AccessKey { id, secret, token } = self.key.clone();
            let places = Together { required: [id, secret], optional: token };
            let ([id, secret], token) = read_together(&places, &self.environment).await?;
            let id = secrecy::ExposeSecret::expose_secret(&id).to_owned();
            Ok(Arc::new(Key { id, secret, token, life: None }))
        })
    }
}
