use crate::credentials::alicloud_from_environment;

#[tokio::test]
async fn a_key_of_the_environment_follows_it() {
    let services = super::services::Services::new();
    services.environment.set("ACCESS_KEY_ID", "id");
    services.environment.set("ACCESS_KEY_SECRET", "secret");
    let keys = services.broker().keys(&alicloud_from_environment(&services.environment).unwrap().keys);
    assert_eq!(super::sts::shown(&keys.key().await.unwrap()), ("id".into(), "secret".into(), None));
    services.environment.set("ACCESS_KEY_ID", "id2");
    services.environment.set("ACCESS_KEY_SECRET", "secret2\n");
    assert_eq!(super::sts::shown(&keys.key().await.unwrap()), ("id2".into(), "secret2".into(), None));
}
