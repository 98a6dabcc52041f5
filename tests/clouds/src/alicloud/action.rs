//! Operations: what they are called, who may use them, what they take.

use serde_json::Value;

use super::AliCloud;
use super::actions;
use super::error::ApiError;
use super::front::Caller;
use super::parameters::{Parameter, Parameters};
use crate::fake::Context;

/// A product of the cloud.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    /// Where the others are.
    Location,
    /// Temporary keys.
    Sts,
    /// Scaling groups.
    Ess,
    /// Machines.
    Ecs,
    /// Networks.
    Vpc,
    /// Clusters.
    Cs,
    /// What a machine can ask about itself.
    Metadata,
}

impl Product {
    /// The product behind a host name.
    pub fn of_host(host: &str, region: &str, location_in_vpc: bool) -> Option<Self> {
        if host == "100.100.100.200" {
            return Some(Self::Metadata);
        }
        let name = host.strip_suffix(".aliyuncs.com")?;
        let (name, inside) = match name.split_once('.') {
            Some((name, place)) if place == region => match name.strip_suffix("-vpc") {
                Some(name) => (name, true),
                None => (name, false),
            },
            Some(_) => return None,
            None => (name, false),
        };
        match name {
            "location" if !inside || location_in_vpc => Some(Self::Location),
            "sts" => Some(Self::Sts),
            "ess" => Some(Self::Ess),
            "ecs" | "ecs-cn-hangzhou" => Some(Self::Ecs),
            "vpc" => Some(Self::Vpc),
            "cs" => Some(Self::Cs),
            _ => None,
        }
    }

    /// Versions of its API that are known here, oldest first.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Location => &["2015-06-12"],
            Self::Sts => &["2015-04-01"],
            Self::Ess => &["2014-08-28", "2022-02-22"],
            Self::Ecs => &["2014-05-26"],
            Self::Vpc => &["2016-04-28"],
            Self::Cs => &["2015-12-15"],
            Self::Metadata => &[],
        }
    }

    /// Operations that are known here.
    pub fn actions(self) -> &'static [Action] {
        match self {
            Self::Location => actions::location::ACTIONS,
            Self::Sts => actions::sts::ACTIONS,
            Self::Ess => actions::ess(),
            Self::Ecs => actions::ecs::ACTIONS,
            Self::Vpc => actions::vpc::ACTIONS,
            Self::Cs | Self::Metadata => &[],
        }
    }
}

/// What an operation works on.
#[derive(Debug)]
pub struct Work<'a, 'b> {
    /// The cloud.
    pub cloud: &'a mut AliCloud,
    /// What is asked.
    pub parameters: &'a Parameters,
    /// Who asks.
    pub caller: &'a Caller,
    /// Time, chance, journal.
    pub context: &'a mut Context<'b>,
}

/// What an operation does.
pub type Handler = fn(&mut Work<'_, '_>) -> Result<Value, ApiError>;

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// Name.
    pub name: &'static str,
    /// Permission that it needs.
    pub permission: &'static str,
    /// Whether it must be signed.
    pub signed: bool,
    /// Belongs to ESS.
    pub host_is_ess: bool,
    /// Whether it changes something.
    pub writes: bool,
    /// What it takes, beside what every operation takes.
    pub parameters: &'static [Parameter],
    /// What it does.
    pub handler: Handler,
}
