//! Checks permissions without changing anything. Writes are tried on a group that cannot exist: permission is checked
//! before existence.

use plimsoll_guest::http::Transport;
use plimsoll_guest::{Deadline, Diagnostic, ErrorClass, PluginError, Severity};

use crate::api::{Api, Call, PAGE_SIZE, Product};
use crate::settings::Settings;

/// A group that nobody has.
const NOBODYS_GROUP: &str = "asg-plimsoll-permission-check";

/// One finding for each permission that is missing, and for each place that cannot be reached.
pub(crate) fn run<T: Transport>(api: &mut Api<T>, settings: &Settings) -> Vec<Diagnostic> {
    let mut findings = vec![];
    for (call, needed) in questions(settings) {
        let deadline = Deadline::after_ms(5_000);
        if let Err(error) = api.ask(&call, deadline) {
            findings.extend(finding(&call, error, needed));
        }
    }
    findings
}

fn finding(call: &Call, error: PluginError, needed: bool) -> Option<Diagnostic> {
    let trouble =
        matches!(error.class, ErrorClass::Auth | ErrorClass::Transient | ErrorClass::Throttled | ErrorClass::Billing)
            || error.code == "denied";
    // Whatever else is wrong is wrong with the question, which was allowed to be asked.
    if !trouble {
        return None;
    }
    let severity = if needed { Severity::Error } else { Severity::Warning };
    let message = format!("{} (checked with {})", error.message, call.permission());
    Some(Diagnostic { severity, message, ..error.into() })
}

/// What is asked, and whether scaling works without it.
fn questions(settings: &Settings) -> Vec<(Call, bool)> {
    if let Some(cluster) = &settings.ack_cluster {
        return vec![(crate::ack::pools_question(cluster), true)];
    }
    let group = settings.groups.first().map_or(NOBODYS_GROUP, |spec| spec.id.as_str());
    let read = |action| Call::read(Product::Ess, action).with("PageSize", PAGE_SIZE);
    let write = |action| Call::write(Product::Ess, action).group(NOBODYS_GROUP);
    vec![
        (read("DescribeScalingGroups").each("ScalingGroupId", [group]), true),
        (read("DescribeScalingInstances").group(group), true),
        (read("DescribeScalingConfigurations").group(group), true),
        (read("DescribeScalingActivities").group(group), true),
        (
            write("ScaleWithAdjustment").with("AdjustmentType", "QuantityChangeInCapacity").with("AdjustmentValue", 1),
            true,
        ),
        (write("RemoveInstances").each("InstanceId", ["i-plimsollpermissioncheck"]), true),
        (write("ModifyScalingGroup").with("DesiredCapacity", 0), true),
        (Call::read(Product::Ecs, "DescribeInstanceTypes").each("InstanceTypes", ["ecs.g7.xlarge"]), true),
        (Call::read(Product::Ecs, "DescribeInstances").with("InstanceIds", "[\"i-plimsollpermissioncheck\"]"), false),
        (
            Call::read(Product::Ecs, "DescribeLaunchTemplateVersions")
                .with("LaunchTemplateId", "lt-plimsollpermissioncheck"),
            false,
        ),
        (Call::read(Product::Vpc, "DescribeVSwitches").with("VSwitchId", "vsw-plimsollpermissioncheck"), false),
        (Call::read(Product::Ecs, "DescribePrice").with("InstanceType", "ecs.g7.xlarge"), false),
    ]
}
