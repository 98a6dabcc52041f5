use crate::{Chosen, Environment, KeyConfig, KeyOrigin, alicloud_from_environment};

const CURRENT: &str = "ALIBABA_CLOUD_OIDC_PROVIDER_ARN=provider;ALIBABA_CLOUD_OIDC_TOKEN_FILE=/token;\
    ALIBABA_CLOUD_ROLE_ARN=role;ALIBABA_CLOUD_SESSION_NAME=session";
const OLDER: &str = "ALICLOUD_OIDC_PROVIDER_ARN=old provider;ALICLOUD_OIDC_TOKEN_FILE_PATH=/old;\
    ALICLOUD_ROLE_ARN=old role;ALICLOUD_SESSION_NAME=old session";
const KEY: &str = "ACCESS_KEY_ID=id;ACCESS_KEY_SECRET=secret;REGION_ID=cn-hangzhou";

/// What ACK's webhook puts into a pod.
const WEBHOOK: &str =
    "ALIBABA_CLOUD_OIDC_PROVIDER_ARN=provider;ALIBABA_CLOUD_OIDC_TOKEN_FILE=/token;ALIBABA_CLOUD_ROLE_ARN=role";

fn told(keys: &KeyConfig) -> String {
    match &keys.origin {
        KeyOrigin::AccessKey(key) => {
            let token = key.token.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("key {} / {} / {token}", key.id, key.secret).replace("the environment variable ", "")
        }
        KeyOrigin::Rrsa(rrsa) => format!(
            "rrsa {} {} {} {}",
            rrsa.provider_arn,
            rrsa.token_file.display(),
            rrsa.role.arn,
            rrsa.role.session_name.as_deref().unwrap_or("-")
        ),
        KeyOrigin::RamRole(role) => {
            format!("metadata {} {} {}", role.name.as_deref().unwrap_or("-"), role.endpoint, role.only_v2)
        }
    }
}

fn environment(pairs: &[&str]) -> Environment {
    let pairs = pairs.iter().flat_map(|pairs| pairs.split(';')).filter_map(|pair| pair.split_once('='));
    Environment::of(pairs)
}

fn choose(pairs: &[&str]) -> Result<Chosen, String> {
    alicloud_from_environment(&environment(pairs)).map_err(|error| error.to_string())
}

#[rstest::rstest]
#[case::access_key(&[KEY], "key ACCESS_KEY_ID / ACCESS_KEY_SECRET / ")]
#[case::access_key_first(&[KEY, CURRENT], "key ACCESS_KEY_ID / ACCESS_KEY_SECRET / ")]
#[case::access_key_of_the_library(
    &["ALIBABA_CLOUD_ACCESS_KEY_ID=a;ALIBABA_CLOUD_ACCESS_KEY_SECRET=b"],
    "key ALIBABA_CLOUD_ACCESS_KEY_ID / ALIBABA_CLOUD_ACCESS_KEY_SECRET / ALIBABA_CLOUD_SECURITY_TOKEN"
)]
#[case::rrsa(&[CURRENT], "rrsa provider /token role session")]
#[case::rrsa_by_older_names(&[OLDER], "rrsa old provider /old old role old session")]
#[case::current_names_first(&[OLDER, CURRENT], "rrsa provider /token role session")]
#[case::empty_falls_through(
    &[OLDER, "ALIBABA_CLOUD_ROLE_ARN= "], "rrsa old provider /old old role old session"
)]
#[case::each_field_by_itself(
    &[OLDER, "ALIBABA_CLOUD_ROLE_ARN=new"], "rrsa old provider /old new old session"
)]
#[case::as_the_webhook_injects(&[WEBHOOK], "rrsa provider /token role -")]
#[case::session_of_the_library(
    &[WEBHOOK, "ALIBABA_CLOUD_ROLE_SESSION_NAME=lib"], "rrsa provider /token role lib"
)]
#[case::nothing(&[], "metadata - http://100.100.100.200 false")]
#[case::region_alone(&["REGION_ID=cn-hangzhou"], "metadata - http://100.100.100.200 false")]
#[case::metadata_elsewhere(
    &["METADATA_ENDPOINT=http://127.0.0.1:9;ALIBABA_CLOUD_ECS_METADATA=ca;ALIBABA_CLOUD_IMDSV1_DISABLED=true"],
    "metadata ca http://127.0.0.1:9 true"
)]
fn chooses(#[case] pairs: &[&str], #[case] expected: &str) {
    let chosen = choose(pairs).unwrap();
    assert_eq!((told(&chosen.keys).as_str(), chosen.notes.len()), (expected, 0));
}

#[test]
fn a_half_access_key_gives_way_to_a_whole_role_but_is_told() {
    let chosen = choose(&["ACCESS_KEY_ID=id", CURRENT]).unwrap();
    assert_eq!(chosen.mode, "RRSA");
    assert_eq!(chosen.notes, ["access key: ACCESS_KEY_ID is set, ACCESS_KEY_SECRET is not"]);
}

#[rstest::rstest]
#[case::half_a_key(
    &["ACCESS_KEY_ID=id"],
    "no AliCloud credentials in the environment:
  access key: ACCESS_KEY_ID is set, ACCESS_KEY_SECRET is not
  RAM role of the instance: not tried, as another way is begun; unset its variables, or set all of them"
)]
#[case::two_halves_of_different_keys(
    &["ACCESS_KEY_ID=a;ALIBABA_CLOUD_ACCESS_KEY_SECRET=b"],
    "no AliCloud credentials in the environment:
  access key: ACCESS_KEY_ID is set, ACCESS_KEY_SECRET is not
  RAM role of the instance: not tried, as another way is begun; unset its variables, or set all of them"
)]
#[case::part_of_rrsa(
    &["ALICLOUD_OIDC_PROVIDER_ARN=p;ALICLOUD_OIDC_TOKEN_FILE_PATH=/old"],
    "no AliCloud credentials in the environment:
  RRSA: ALICLOUD_OIDC_PROVIDER_ARN, ALICLOUD_OIDC_TOKEN_FILE_PATH is set, ALIBABA_CLOUD_ROLE_ARN is not
  RAM role of the instance: not tried, as another way is begun; unset its variables, or set all of them"
)]
#[case::nothing_and_switched_off(
    &["ALIBABA_CLOUD_ECS_METADATA_DISABLED=true"],
    "no AliCloud credentials in the environment:
  access key: ACCESS_KEY_ID and ACCESS_KEY_SECRET are not set
  RRSA: ALIBABA_CLOUD_OIDC_PROVIDER_ARN, ALIBABA_CLOUD_OIDC_TOKEN_FILE and ALIBABA_CLOUD_ROLE_ARN are not set
  RAM role of the instance: switched off by ALIBABA_CLOUD_ECS_METADATA_DISABLED"
)]
fn says_what_is_missing(#[case] pairs: &[&str], #[case] expected: &str) {
    assert_eq!(choose(pairs).unwrap_err(), expected);
}

#[rstest::rstest]
#[case::central("", "https://sts.aliyuncs.com")]
#[case::peer_region_alone("REGION_ID=cn-beijing", "https://sts.aliyuncs.com")]
#[case::region("ALIBABA_CLOUD_STS_REGION=cn-beijing", "https://sts.cn-beijing.aliyuncs.com")]
#[case::inside(
    "REGION_ID=cn-beijing;ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED=true",
    "https://sts-vpc.cn-beijing.aliyuncs.com"
)]
fn finds_the_token_service(#[case] pairs: &str, #[case] expected: &str) {
    assert_eq!(choose(&[pairs]).unwrap().keys.sts, expected);
}
