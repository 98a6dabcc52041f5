use super::*;
use ErrorClass::*;
use rstest::rstest;

/// Where a case's failure must reach.
#[derive(Clone, Copy)]
enum To {
    Provider,
    Group,
    Type,
}

fn error(code: &str, status: u16) -> PluginError {
    let message = "ecs.g7.xlarge cannot be had in cn-hangzhou-h.";
    let refusal = Refusal { code, message, status, action: "ess:ScaleWithAdjustment", group: Some("asg-1") };
    Classifier::default().error(&refusal)
}

#[rstest]
// Node pools.
#[case("RecommendEmpty.InstanceTypeNoStock", OutOfResources, To::Group)]
#[case("OperationDenied.NoStock", OutOfResources, To::Group)]
#[case("RecommendEmpty.DiskTypeNoStock", OutOfResources, To::Group)]
#[case("NodepoolScaleFailed.PartialSuccess", OutOfResources, To::Group)]
#[case("InvalidResourceType.NotSupported", OutOfResources, To::Group)]
#[case("QuotaExceed.ElasticQuota", Quota, To::Type)]
#[case("QuotaExceeded.PrivateIpAddress", Quota, To::Group)]
#[case("InvalidAccountStatus.NotEnoughBalance", Billing, To::Provider)]
#[case("InsufficientBalance.CreditPay", Billing, To::Provider)]
#[case("Account.Arrearage", Billing, To::Provider)]
#[case("RecommendEmpty.InstanceTypeNotAuthorized", Auth, To::Type)]
#[case("InvalidParameter.KMSKeyId.KMSUnauthorized", Auth, To::Group)]
#[case("InvalidParameter.KmsNotEnabled", Config, To::Group)]
#[case("InvalidParameter.NotMatch", Config, To::Group)]
#[case("InvalidImage.NotSupported", Config, To::Group)]
#[case("InvalidInstanceType.NotSupported", Config, To::Group)]
#[case("InvalidParameter.Conflict", Config, To::Group)]
#[case("NotSupportSnapshotEncrypted.DiskCategory", Config, To::Group)]
#[case("ScalingActivityInProgress", Conflict, To::Group)]
#[case("ApiServer.TooManyRequests", Throttled, To::Provider)]
#[case("ApiServer.InternalError", Transient, To::Provider)]
#[case("Err.QueryEndpoints", Transient, To::Provider)]
#[case("Instance.StartInstanceFailed", Transient, To::Group)]
#[case("NodepoolScaleFailed.WaitForDesiredSizeTimeout", Transient, To::Group)]
#[case("NodepoolScaleFailed.FailedJoinCluster", Bootstrap, To::Group)]
// Stock.
#[case("ResourceNotAvailable.ECS", OutOfResources, To::Group)]
#[case("Some.NoStock", OutOfResources, To::Group)]
#[case("SomeNoStock", OutOfResources, To::Group)]
#[case("Zone.NotOnSale", OutOfResources, To::Group)]
#[case("InvalidInstanceType.ZoneNotSupported", OutOfResources, To::Group)]
#[case("OperationDenied.CloudSSDNotSupported", OutOfResources, To::Group)]
// Quotas.
#[case("QuotaExceed.Instance", Quota, To::Group)]
#[case("QuotaExceeded.ScalingInstance", Quota, To::Group)]
#[case("QuotaExceeded.AfterpayInstance", Quota, To::Group)]
#[case("Operation.QuotaExceeded", Quota, To::Group)]
#[case("InvalidVSwitchId.IpNotEnough", Quota, To::Group)]
#[case("IncorrectCapacity.MaxSize", Quota, To::Group)]
// Money.
#[case("InsufficientBalance", Billing, To::Provider)]
#[case("InvalidAccountStatus.SecurityRiskControl", Billing, To::Provider)]
#[case("InvalidPayMethod", Billing, To::Provider)]
// Who asks.
#[case("InvalidAccessKeyId.NotFound", Auth, To::Provider)]
#[case("InvalidAccessKeyId.Inactive", Auth, To::Provider)]
#[case("SignatureDoesNotMatch", Auth, To::Provider)]
#[case("IncompleteSignature", Auth, To::Provider)]
#[case("InvalidSecurityToken.Expired", Auth, To::Provider)]
#[case("InvalidSecurityToken.MismatchWithAccessKey", Auth, To::Provider)]
#[case("Forbidden", Auth, To::Provider)]
#[case("Forbidden.RAM", Auth, To::Provider)]
#[case("Forbidden.Unauthorized", Auth, To::Provider)]
#[case("Forbidden.RiskControl", Auth, To::Provider)]
#[case("NoPermission", Auth, To::Provider)]
#[case("AuthenticationFail.NoPermission", Auth, To::Provider)]
#[case("AuthenticationFail.OIDCToken.Expired", Auth, To::Provider)]
#[case("EntityNotExist.Role", Auth, To::Provider)]
#[case("InvalidTimeStamp.Expired", Auth, To::Provider)]
#[case("InvalidTimeStamp.Format", Auth, To::Provider)]
#[case("SignatureNonceUsed", Transient, To::Provider)]
// Too often.
#[case("Throttling", Throttled, To::Provider)]
#[case("Throttling.User", Throttled, To::Provider)]
#[case("Throttling.Api", Throttled, To::Provider)]
#[case("Some.FlowControl.Exceeded", Throttled, To::Provider)]
// In the way.
#[case("IDEMPOTENCE_PROCESSING", Conflict, To::Group)]
#[case("IncorrectCapacity.NoChange", Conflict, To::Group)]
// Set up wrongly.
#[case("IncorrectScalingGroupStatus", Config, To::Group)]
#[case("IncorrectCapacity.MinSize", Config, To::Group)]
#[case("IncorrectLoadBalancerStatus", Config, To::Group)]
#[case("IncorrectLoadBalancerHealthCheck", Config, To::Group)]
#[case("IncorrectDBInstanceStatus", Config, To::Group)]
#[case("InvalidZone.NotMatch", Config, To::Group)]
#[case("InvalidSystemDiskCategory.ValueNotSupported", Config, To::Group)]
#[case("InvalidParameter", Config, To::Group)]
#[case("InvalidParameter.Region", Config, To::Group)]
#[case("MissingParameter", Config, To::Group)]
#[case("UnsupportedOperation", Config, To::Group)]
#[case("SDK.CanNotResolveEndpoint", Config, To::Provider)]
// Ours, gone, broken.
#[case("IDEMPOTENCE_SIGNATURE_MISMATCH", Other, To::Group)]
#[case("IdempotentParameterMismatch", Other, To::Group)]
#[case("InvalidScalingGroupId.NotFound", NotFound, To::Group)]
#[case("InvalidInstanceId.NotFound", NotFound, To::Group)]
#[case("InvalidAction.NotFound", Unsupported, To::Provider)]
#[case("InternalError", Transient, To::Provider)]
#[case("ServiceUnavailable", Transient, To::Provider)]
#[case("NeverHeardOf", Other, To::Group)]
fn every_code(#[case] code: &str, #[case] class: ErrorClass, #[case] to: To) {
    // Statuses vary for the same code, so they must not decide.
    for status in [0, 400, 404] {
        let error = error(code, status);
        let scope = match to {
            To::Provider => ErrorScope::Provider,
            To::Group => ErrorScope::Group("asg-1".into()),
            To::Type => ErrorScope::InstanceType("ecs.g7.xlarge".into()),
        };
        assert_eq!((error.class, error.scope, error.code.as_str()), (class, scope, code), "status {status}");
    }
}

#[rstest]
#[case(429, Throttled)]
#[case(500, Transient)]
#[case(503, Transient)]
#[case(403, Auth)]
#[case(400, Other)]
fn an_unknown_code_is_read_by_its_status(#[case] status: u16, #[case] class: ErrorClass) {
    assert_eq!(error("NeverHeardOf", status).class, class);
}

#[test]
fn every_row_of_the_table_is_reached() {
    for (code, class, _) in table::EXACT {
        assert_eq!(Classifier::default().class(code, 400).0, *class, "{code}");
    }
    for (pattern, class, _) in table::PATTERNS {
        let code = pattern.replace('*', "Xyz");
        assert_eq!(Classifier::default().class(&code, 400).0, *class, "{code}");
    }
}

#[test]
fn the_operators_word_is_stronger() {
    let classifier = Classifier::with_overrides(vec![("Throttling*".into(), Transient), ("New.Code".into(), Quota)]);
    assert_eq!(classifier.class("Throttling.User", 400).0, Transient);
    assert_eq!(classifier.class("New.Code", 400), (Quota, Reach::Group));
    assert_eq!(classifier.class("New.Code2", 400).0, Other);
}

#[test]
fn signed_texts_and_tokens_stay_out() {
    let message =
        "Specified signature is not matched with our calculation. server string to sign is:POST&SecurityToken%3DCAIS";
    let refusal = Refusal { code: "SignatureDoesNotMatch", message, status: 400, action: "ess:X", group: None };
    let error = Classifier::default().error(&refusal);
    assert!(!error.message.contains("CAIS"), "{}", error.message);
    assert!(error.message.contains("not matched"), "{}", error.message);
}

#[test]
fn a_missing_permission_is_named() {
    let error = error("Forbidden.RAM", 403);
    assert!(error.message.contains("allow ess:ScaleWithAdjustment in the RAM policy"), "{}", error.message);
    let skew = self::error("InvalidTimeStamp.Expired", 400);
    assert!(skew.message.contains("clock"), "{}", skew.message);
}

#[test]
fn what_is_busy_is_worth_a_second_try() {
    assert_eq!(error("ScalingActivityInProgress", 400).retry_after_ms, Some(10_000));
    assert!(error("IDEMPOTENCE_PROCESSING", 400).outcome_unknown);
}

#[rstest]
#[case("no stock of ecs.g7.xlarge in zone cn-hangzhou-h.", Some("ecs.g7.xlarge"), Some("cn-hangzhou-h"))]
#[case("(\"ecs.gn7i-c8g1.2xlarge\",zone:cn-hangzhou-h)", Some("ecs.gn7i-c8g1.2xlarge"), Some("cn-hangzhou-h"))]
#[case("ecs.aliyuncs in cn-hangzhou", None, None)]
#[case("", None, None)]
fn type_and_zone_are_found_in_words(#[case] message: &str, #[case] kind: Option<&str>, #[case] zone: Option<&str>) {
    assert_eq!(instance_type_in(message).as_deref(), kind);
    assert_eq!(zone_in(message, "cn-hangzhou").as_deref(), zone);
}

#[rstest]
#[case("a*", "abc", true)]
#[case("*c", "abc", true)]
#[case("a*c", "abc", true)]
#[case("*b*", "abc", true)]
#[case("abc", "abc", true)]
#[case("abc", "abcd", false)]
#[case("a*d", "abc", false)]
#[case("*x*", "abc", false)]
#[case("ab*bc", "abc", false)]
fn patterns(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
    assert_eq!(fits(pattern, text), expected);
}
