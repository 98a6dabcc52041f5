//! Behaviours that the facts leave open. Each can be chosen; a provider must be right under all.

use serde::{Deserialize, Serialize};

/// Choices among behaviours that nobody has confirmed on a real account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probes {
    /// `QuantityChangeInCapacity` on a group with desired capacity moves `DesiredCapacity` too.
    pub quantity_moves_desired: bool,
    /// Protected and standby instances count in `TotalCapacity`.
    pub protected_and_standby_count: bool,
    /// `RemoveInstances` works while an activity runs on a group with desired capacity.
    pub remove_during_activity: bool,
    /// A change of the desired number alone (`SyncActivity=false`) works while an activity runs.
    pub capacity_change_during_activity: bool,
    /// A size beyond the group's bounds is refused; else it is cut to the bounds.
    pub beyond_bounds_is_refused: bool,
    /// Protected instances can be removed by name.
    pub protected_can_be_removed: bool,
    /// Groups that can be asked for at once: 20 or 50.
    pub group_ids_at_once: i64,
    /// Longest page of instances: 50 or 100.
    pub instance_page: i64,
    /// How long a `ClientToken` is remembered.
    pub client_token_hours: u32,
    /// A group's tags are `TagKey`/`TagValue`; else `Key`/`Value`.
    pub tag_key_names: bool,
    /// Status of a throttled request: 400, 429 or 503.
    pub throttled_status: u16,
    /// Seconds of `Retry-After` on a throttled request.
    pub throttled_retry_after_s: Option<u32>,
    /// Activities come newest first.
    pub newest_activity_first: bool,
    /// ESS takes signature ACS3.
    pub acs3_on_ess: bool,
    /// Status for an unknown key: 404 or 400.
    pub unknown_key_status: u16,
    /// The Location service has a name inside the VPC.
    pub location_in_vpc: bool,
    /// A repeated token with other parameters is `IdempotentParameterMismatch`; else `IDEMPOTENCE_SIGNATURE_MISMATCH`.
    pub newer_token_mismatch: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            quantity_moves_desired: true,
            protected_and_standby_count: true,
            remove_during_activity: false,
            capacity_change_during_activity: false,
            beyond_bounds_is_refused: false,
            protected_can_be_removed: true,
            group_ids_at_once: 20,
            instance_page: 50,
            client_token_hours: 24,
            tag_key_names: true,
            throttled_status: 400,
            throttled_retry_after_s: None,
            newest_activity_first: true,
            acs3_on_ess: true,
            unknown_key_status: 404,
            location_in_vpc: true,
            newer_token_mismatch: false,
        }
    }
}
