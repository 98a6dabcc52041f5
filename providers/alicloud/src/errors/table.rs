//! Codes of the cloud, with what each means. Data only; the operator can add to it.

use plimsoll_guest::ErrorClass::{self, *};

/// How far a failure reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Everything.
    Provider,
    /// The group that was asked about.
    Group,
    /// A machine type, if the message names one; else the group.
    Type,
}
use Reach::{Group, Provider, Type};

/// Codes that are matched whole, before any pattern.
pub(super) const EXACT: &[(&str, ErrorClass, Reach)] = &[
    // Node pools of ACK.
    ("RecommendEmpty.InstanceTypeNoStock", OutOfResources, Group),
    ("RecommendEmpty.DiskTypeNoStock", OutOfResources, Group),
    ("OperationDenied.NoStock", OutOfResources, Group),
    ("NodepoolScaleFailed.PartialSuccess", OutOfResources, Group),
    ("InvalidResourceType.NotSupported", OutOfResources, Group),
    ("QuotaExceed.ElasticQuota", Quota, Type),
    ("QuotaExceeded.PrivateIpAddress", Quota, Group),
    ("InvalidAccountStatus.NotEnoughBalance", Billing, Provider),
    ("InsufficientBalance.CreditPay", Billing, Provider),
    ("Account.Arrearage", Billing, Provider),
    ("RecommendEmpty.InstanceTypeNotAuthorized", Auth, Type),
    ("InvalidParameter.KMSKeyId.KMSUnauthorized", Auth, Group),
    ("InvalidParameter.KmsNotEnabled", Config, Group),
    ("InvalidParameter.NotMatch", Config, Group),
    ("InvalidImage.NotSupported", Config, Group),
    ("InvalidInstanceType.NotSupported", Config, Group),
    ("InvalidParameter.Conflict", Config, Group),
    ("NotSupportSnapshotEncrypted.DiskCategory", Config, Group),
    ("ApiServer.TooManyRequests", Throttled, Provider),
    ("ApiServer.InternalError", Transient, Provider),
    ("Err.QueryEndpoints", Transient, Provider),
    ("Instance.StartInstanceFailed", Transient, Group),
    ("NodepoolScaleFailed.WaitForDesiredSizeTimeout", Transient, Group),
    ("NodepoolScaleFailed.FailedJoinCluster", Bootstrap, Group),
    // Scaling groups, machines, tokens, lookup.
    ("ResourceNotAvailable.ECS", OutOfResources, Group),
    ("Zone.NotOnSale", OutOfResources, Group),
    ("InvalidInstanceType.ZoneNotSupported", OutOfResources, Group),
    ("OperationDenied.CloudSSDNotSupported", OutOfResources, Group),
    ("InvalidVSwitchId.IpNotEnough", Quota, Group),
    ("IncorrectCapacity.MaxSize", Quota, Group),
    ("InvalidPayMethod", Billing, Provider),
    ("SignatureDoesNotMatch", Auth, Provider),
    ("IncompleteSignature", Auth, Provider),
    ("SignatureNonceUsed", Transient, Provider),
    ("ScalingActivityInProgress", Conflict, Group),
    ("IDEMPOTENCE_PROCESSING", Conflict, Group),
    ("IncorrectCapacity.NoChange", Conflict, Group),
    ("IncorrectScalingGroupStatus", Config, Group),
    ("IncorrectCapacity.MinSize", Config, Group),
    ("MissingParameter", Config, Group),
    ("UnsupportedOperation", Config, Group),
    ("IDEMPOTENCE_SIGNATURE_MISMATCH", Other, Group),
    ("IdempotentParameterMismatch", Other, Group),
    ("InvalidScalingGroupId.NotFound", NotFound, Group),
    ("InvalidInstanceId.NotFound", NotFound, Group),
    ("ErrorNodePoolNotFound", NotFound, Group),
    ("ErrorClusterNotFound", Config, Provider),
    ("InvalidAction.NotFound", Unsupported, Provider),
    ("InternalError", Transient, Provider),
    ("ServiceUnavailable", Transient, Provider),
    ("SDK.CanNotResolveEndpoint", Config, Provider),
];

/// Patterns with `*`, in order; the first that fits decides.
pub(super) const PATTERNS: &[(&str, ErrorClass, Reach)] = &[
    ("Throttling*", Throttled, Provider),
    ("*FlowControl*", Throttled, Provider),
    ("*NoStock", OutOfResources, Group),
    ("InsufficientBalance*", Billing, Provider),
    ("InvalidAccountStatus*", Billing, Provider),
    ("Quota*", Quota, Group),
    ("*QuotaExceed*", Quota, Group),
    ("InvalidAccessKeyId*", Auth, Provider),
    ("InvalidSecurityToken*", Auth, Provider),
    ("Forbidden*", Auth, Provider),
    ("NoPermission*", Auth, Provider),
    ("AuthenticationFail.*", Auth, Provider),
    ("EntityNotExist.Role", Auth, Provider),
    ("InvalidTimeStamp.*", Auth, Provider),
    ("IncorrectLoadBalancer*", Config, Group),
    ("IncorrectDBInstance*", Config, Group),
    ("Invalid*NotMatch", Config, Group),
    ("InvalidSystemDiskCategory*", Config, Group),
    ("InvalidParameter*", Config, Group),
    ("MissingParameter*", Config, Group),
    ("NoSuchVersion", Config, Provider),
    ("InvalidVersion", Config, Provider),
];
