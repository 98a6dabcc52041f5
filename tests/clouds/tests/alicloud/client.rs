//! A client that does as it is told, right or wrong.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use plimsoll_tests_clouds::alicloud::signature::{canonical_request, sha256_hex, v1, v3};
use plimsoll_tests_clouds::alicloud::wire::{Incoming, encode};
use plimsoll_tests_clouds::alicloud::{AliCloud, Group, Order, Scenario};
use plimsoll_tests_clouds::{Answer, Cloud, Fake, UnixMs};
use serde_json::Value;

pub(crate) const ESS: &str = "ess.aliyuncs.com";

/// Hosts and versions of the products.
pub(crate) fn version(host: &str) -> &'static str {
    match host.split(['.', '-']).next().unwrap() {
        "ess" => "2014-08-28",
        "ecs" => "2014-05-26",
        "sts" => "2015-04-01",
        "vpc" => "2016-04-28",
        "cs" => "2015-12-15",
        _ => "2015-06-12",
    }
}

pub(crate) struct Client {
    pub(crate) fake: Fake<AliCloud>,
    pub(crate) key: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
    /// How far the client's clock is ahead.
    pub(crate) skew_s: i64,
    nonce: u32,
}

/// A request, still open to change.
pub(crate) struct Draft {
    pub(crate) method: &'static str,
    pub(crate) host: String,
    pub(crate) parameters: Vec<(String, String)>,
}

impl Draft {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.parameters.retain(|(known, _)| known != name);
        self.parameters.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.parameters.retain(|(known, _)| known != name);
    }

    pub(crate) fn query(&self) -> String {
        let pairs: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        pairs.join("&")
    }

    pub(crate) fn sign(&mut self, secret: &str) {
        let pairs = self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let signature = v1(self.method, pairs, secret).signature;
        self.set("Signature", &signature);
    }

    pub(crate) fn request(&self) -> Request<Bytes> {
        let uri = format!("https://{}/?{}", self.host, self.query());
        Request::builder().method(self.method).uri(uri).header("host", &self.host).body(Bytes::new()).unwrap()
    }
}

impl Client {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self {
            fake: AliCloud::start(scenario).unwrap(),
            key: "testid".to_owned(),
            secret: "testsecret".to_owned(),
            token: None,
            skew_s: 0,
            nonce: 0,
        }
    }

    pub(crate) fn of(groups: Vec<Group>) -> Self {
        Self::new(Scenario::with_groups(groups))
    }

    fn time(&mut self) -> (String, String) {
        self.nonce += 1;
        let moment = UnixMs(self.fake.now().0 + self.skew_s * 1000);
        (moment.seconds(), format!("nonce-{}", self.nonce))
    }

    pub(crate) fn draft(&mut self, host: &str, action: &str, parameters: &[(&str, &str)]) -> Draft {
        let (time, nonce) = self.time();
        let mut draft = Draft { method: "POST", host: host.to_owned(), parameters: vec![] };
        let common = [
            ("Action", action),
            ("Version", version(host)),
            ("Format", "JSON"),
            ("RegionId", "cn-hangzhou"),
            ("Timestamp", &time),
            ("SignatureMethod", "HMAC-SHA1"),
            ("SignatureVersion", "1.0"),
            ("SignatureNonce", &nonce),
            ("AccessKeyId", &self.key.clone()),
        ];
        for (name, value) in common.iter().chain(parameters) {
            draft.set(name, value);
        }
        if let Some(token) = &self.token {
            draft.set("SecurityToken", token);
        }
        draft
    }

    pub(crate) fn send(&mut self, request: Request<Bytes>) -> (u16, Value) {
        let response = self.fake.handle(request).within(Duration::from_secs(10)).expect("a whole answer");
        let status = response.status().as_u16();
        (status, serde_json::from_slice(response.body()).unwrap_or_default())
    }

    pub(crate) fn send_draft(&mut self, mut draft: Draft) -> (u16, Value) {
        draft.sign(&self.secret);
        self.send(draft.request())
    }

    /// Ask in signature version 1.0.
    pub(crate) fn ask(&mut self, host: &str, action: &str, parameters: &[(&str, &str)]) -> (u16, Value) {
        let draft = self.draft(host, action, parameters);
        self.send_draft(draft)
    }

    /// Ask, and get what the transport gets.
    pub(crate) fn answer(&mut self, action: &str, parameters: &[(&str, &str)]) -> Answer {
        let mut draft = self.draft(ESS, action, parameters);
        draft.sign(&self.secret);
        self.fake.handle(draft.request())
    }

    /// Ask ESS and expect success.
    pub(crate) fn ess(&mut self, action: &str, parameters: &[(&str, &str)]) -> Value {
        let (status, body) = self.ask(ESS, action, parameters);
        assert_eq!(status, 200, "{action}: {body}");
        body
    }

    /// Ask ESS and expect an error: its code.
    pub(crate) fn refused(&mut self, action: &str, parameters: &[(&str, &str)]) -> String {
        let (status, body) = self.ask(ESS, action, parameters);
        assert!(status >= 400, "{action} is not refused: {body}");
        body["Code"].as_str().unwrap().to_owned()
    }

    /// A request with signature ACS3.
    pub(crate) fn acs3(&mut self, host: &str, action: &str, version: &str, query: &str) -> Request<Bytes> {
        let (time, nonce) = self.time();
        let mut request = Request::builder()
            .method("POST")
            .uri(format!("https://{host}/?{query}"))
            .header("host", host)
            .header("x-acs-action", action)
            .header("x-acs-version", version)
            .header("x-acs-date", time)
            .header("x-acs-signature-nonce", nonce)
            .header("x-acs-content-sha256", sha256_hex(b""));
        if let Some(token) = &self.token {
            request = request.header("x-acs-security-token", token);
        }
        let request = request.body(Bytes::new()).unwrap();
        self.sign_acs3(request)
    }

    pub(crate) fn sign_acs3(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        request.headers_mut().remove("authorization");
        let mut names: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        let names = names.join(";");
        let signature = v3(&canonical_request(&Incoming::read(&request), &names), &self.secret).signature;
        let text = format!("ACS3-HMAC-SHA256 Credential={},SignedHeaders={names},Signature={signature}", self.key);
        request.headers_mut().insert("authorization", text.parse().unwrap());
        request
    }

    pub(crate) fn advance(&mut self, seconds: u64) {
        self.fake.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn obey(&mut self, order: &Order) {
        self.fake.with(|cloud, context| cloud.obey(order, context)).unwrap();
    }

    /// The first group that an answer shows.
    pub(crate) fn group(&mut self, id: &str) -> Value {
        let body = self.ess("DescribeScalingGroups", &[("ScalingGroupId.1", id)]);
        body["ScalingGroups"]["ScalingGroup"][0].clone()
    }

    /// Identifiers and states of a group's machines.
    pub(crate) fn instances(&mut self, group: &str) -> Vec<(String, String)> {
        let body = self.ess("DescribeScalingInstances", &[("ScalingGroupId", group), ("PageSize", "50")]);
        let list = body["ScalingInstances"]["ScalingInstance"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        list.iter().map(|entry| (text(&entry["InstanceId"]), text(&entry["LifecycleState"]))).collect()
    }

    /// A group's newest activity.
    pub(crate) fn activity(&mut self, group: &str) -> Value {
        let body = self.ess("DescribeScalingActivities", &[("ScalingGroupId", group), ("PageSize", "50")]);
        body["ScalingActivities"]["ScalingActivity"][0].clone()
    }

    /// A relative change of size.
    pub(crate) fn grow(&mut self, group: &str, by: &str) -> (u16, Value) {
        let parameters =
            [("ScalingGroupId", group), ("AdjustmentType", "QuantityChangeInCapacity"), ("AdjustmentValue", by)];
        self.ask(ESS, "ScaleWithAdjustment", &parameters)
    }

    /// A relative change of the size of a group with desired capacity.
    pub(crate) fn grow_now(&mut self, group: &str, by: &str) -> (u16, Value) {
        let parameters = [
            ("ScalingGroupId", group),
            ("AdjustmentType", "QuantityChangeInCapacity"),
            ("AdjustmentValue", by),
            ("SyncActivity", "true"),
        ];
        self.ask(ESS, "ScaleWithAdjustment", &parameters)
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.fake.journal().violations()
    }
}
