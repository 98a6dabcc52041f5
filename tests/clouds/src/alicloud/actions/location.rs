//! Location: where the other products are.

use serde_json::{Value, json};

use crate::alicloud::action::{Action, Work};
use crate::alicloud::error::ApiError;
use crate::alicloud::parameters::{Kind, optional, required};

/// Its operations.
pub const ACTIONS: &[Action] = &[Action {
    name: "DescribeEndpoints",
    permission: "location:DescribeEndpoints",
    signed: true,
    host_is_ess: false,
    writes: false,
    parameters: &[
        required("Id", Kind::Text),
        required("ServiceCode", Kind::Text),
        optional("Type", Kind::OneOf(&["openAPI", "innerAPI"])),
    ],
    handler: endpoints,
}];

/// Regions whose ESS stands at the name without a region.
const CENTRAL_ESS: &[&str] = &["cn-qingdao", "cn-beijing", "cn-hangzhou", "cn-shanghai", "cn-shenzhen", "cn-nanjing"];

fn endpoints(work: &mut Work<'_, '_>) -> Result<Value, ApiError> {
    let id = work.parameters.text("Id").unwrap_or_default();
    let code = work.parameters.text("ServiceCode").unwrap_or_default();
    let region = &work.cloud.kept.world.region;
    if id != region || !["ess", "ecs", "sts", "vpc"].contains(&code) {
        return Ok(json!({"Success": true, "Endpoints": []}));
    }
    let central = code == "sts" || (code == "ess" && CENTRAL_ESS.contains(&region.as_str()));
    let endpoint = if central { format!("{code}.aliyuncs.com") } else { format!("{code}.{region}.aliyuncs.com") };
    let list = json!(["HTTP", "HTTPS"]);
    let protocols = if work.cloud.quirks.plain_protocols { list } else { json!({"Protocols": list}) };
    // The misspelt name is the real one.
    let entry = json!({
        "Protocols": protocols, "Type": "openAPI", "Namespace": "26842", "Id": region, "SerivceCode": code, "Endpoint": endpoint,
    });
    Ok(json!({"Success": true, "Endpoints": [entry]}))
}
