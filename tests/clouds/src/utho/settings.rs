//! What is not known of the API, to be set either way.

use serde::{Deserialize, Serialize};

use crate::chance::Chance;

/// How the cloud behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// Deleting a worker leaves the pool's count, and a replacement comes after a minute; else the count falls by one.
    pub delete_recreates: bool,
    /// So many milliseconds pass until a changed count shows in reads.
    pub count_lag_ms: u64,
    /// What the cloud refuses comes with status 200; else with a fitting 4xx.
    pub errors_in_200: bool,
    /// An unknown worker comes with status 200; else with 404.
    pub unknown_node_in_200: bool,
    /// An unknown `size` resizes the pool; else it is refused.
    pub unknown_size_resizes: bool,
    /// An update without `size` and `label` is refused.
    pub size_required: bool,
    /// Only the number 0 removes a pool, the text "0" is refused; else both remove it.
    pub zero_text_refused: bool,
    /// A plan that is out of stock is noticed after the update was accepted: machines do not come. Else it is refused.
    pub stock_checked_late: bool,
}

/// How answers look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// Numbers come without quotes.
    pub numbers_unquoted: bool,
    /// An empty map comes as `[]`.
    pub empty_map_as_list: bool,
    /// Of some workers only the id, the plan and the state are told.
    pub missing_worker_fields: bool,
    /// A worker that is on its way has no id yet.
    pub nameless_while_pending: bool,
    /// True is `"1"`, false is `"0"`.
    pub bool_as_one: bool,
    /// The state is in `app_status` only; else in `status`, with `app_status` beside it.
    pub state_in_app_status: bool,
    /// Ids of workers are no numbers.
    pub ids_not_numeric: bool,
    /// Reads that succeed say nothing of `status`.
    pub silent_success: bool,
    /// Lists of workers come as maps by position.
    pub lists_as_maps: bool,
}

impl Switches {
    /// Any setting.
    pub fn random(chance: &mut Chance) -> Self {
        Self {
            delete_recreates: chance.percent(50),
            count_lag_ms: if chance.percent(50) { 45_000 } else { 0 },
            errors_in_200: chance.percent(50),
            unknown_node_in_200: chance.percent(50),
            unknown_size_resizes: chance.percent(50),
            size_required: chance.percent(50),
            zero_text_refused: chance.percent(50),
            stock_checked_late: chance.percent(50),
        }
    }
}

impl Quirks {
    /// Any look.
    pub fn random(chance: &mut Chance) -> Self {
        Self {
            numbers_unquoted: chance.percent(50),
            empty_map_as_list: chance.percent(50),
            missing_worker_fields: chance.percent(50),
            nameless_while_pending: chance.percent(50),
            bool_as_one: chance.percent(50),
            state_in_app_status: chance.percent(50),
            ids_not_numeric: chance.percent(50),
            silent_success: chance.percent(50),
            lists_as_maps: chance.percent(50),
        }
    }
}
