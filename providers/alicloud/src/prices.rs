//! What machines cost, as far as the cloud tells: pay-as-you-go by the hour, spot at its price now.

use std::collections::BTreeMap;

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, PluginError, PriceBook, TemplatePrice, log};

use crate::api::{Api, Call, Lenient, Product};
use crate::memory::Memory;
use crate::settings::Settings;
use crate::template::{self, Source};

/// How long prices may be used.
const VALID_FOR_MS: u64 = 24 * 3_600_000;

/// Prices of the templates of all groups that are known.
///
/// # Errors
/// No price at all can be read; the permission may be missing, or the account may not ask for prices.
pub(crate) fn read<T: Transport>(
    api: &mut Api<T>,
    settings: &Settings,
    memory: &mut Memory,
    deadline: Deadline,
) -> Result<PriceBook, PluginError> {
    let ids: Vec<_> = match memory.groups.is_empty() {
        true => settings.groups.iter().map(|spec| spec.id.clone()).collect(),
        false => memory.groups.keys().cloned().collect(),
    };
    let mut known: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut book = PriceBook::new("CNY", vec![], vec![]);
    let mut first_error = None;
    for id in ids {
        let made = match template::make(api, settings, memory, &id, deadline) {
            Ok(made) => made,
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        // The machine that is had if nothing is sold out; templates of several types name none.
        let Some(instance_type) = made.source.types.first() else {
            log::info(&format!("scaling group {id} names cores and memory instead of a type; it has no price"));
            continue;
        };
        let question = question(&made.source, instance_type);
        let named = format!("{question:?}");
        let price = match known.get(&named) {
            Some(price) => Ok(price.clone()),
            None => api
                .ask(&question, deadline)
                .and_then(|answer| price_in(&answer).ok_or_else(|| question.incomplete("price"))),
        };
        match price {
            Ok((micros_per_hour, currency)) => {
                let one = |template: &plimsoll_guest::NodeTemplate| TemplatePrice {
                    group: id.clone(),
                    template_key: template.key.clone(),
                    micros_per_hour,
                };
                book.templates.extend(made.templates.iter().map(one));
                book.currency.clone_from(&currency);
                known.insert(named, (micros_per_hour, currency));
            }
            Err(error) => {
                log::warn(&format!("the price of scaling group {id} cannot be read: {}", error.summary()));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if book.templates.is_empty() => Err(error),
        _ => Ok(PriceBook { valid_until: Some(api.now_ms() + VALID_FOR_MS), ..book }),
    }
}

fn question(source: &Source, instance_type: &str) -> Call {
    let call = Call::read(Product::Ecs, "DescribePrice")
        .with("ResourceType", "instance")
        .with("InstanceType", instance_type)
        .with("PriceUnit", "Hour")
        .with("SpotStrategy", if source.spot { "SpotAsPriceGo" } else { "" })
        .with("SystemDisk.Category", &source.system_disk_category);
    let size = source.system_disk_gib;
    if size > 0 { call.with("SystemDisk.Size", size) } else { call }
}

/// Millionths per hour, with the currency.
fn price_in(answer: &serde_json::Value) -> Option<(u64, String)> {
    let price = answer.get("PriceInfo")?.get("Price")?;
    let amount = price.decimal("TradePrice").or_else(|| price.decimal("OriginalPrice"))?;
    let currency = Some(price.text("Currency")).filter(|text| !text.is_empty()).unwrap_or_else(|| "CNY".to_owned());
    (amount >= 0.0).then(|| ((amount * 1e6).round() as u64, currency))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_price_is_in_millionths() {
        let answer = json!({"PriceInfo": {"Price": {"TradePrice": 0.8125, "Currency": "USD"}}});
        assert_eq!(price_in(&answer), Some((812_500, "USD".to_owned())));
        let text = json!({"PriceInfo": {"Price": {"OriginalPrice": "1.2"}}});
        assert_eq!(price_in(&text), Some((1_200_000, "CNY".to_owned())));
        assert_eq!(price_in(&json!({"PriceInfo": {}})), None);
    }
}
