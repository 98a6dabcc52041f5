//! One operation of one product, before it becomes a request.

use plimsoll_guest::PluginError;
use plimsoll_guest::http::{Method, Request};

/// A product with an API of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Product {
    /// Auto Scaling.
    Ess,
    /// Machines and their types.
    Ecs,
    /// Networks.
    Vpc,
    /// Container Service for Kubernetes.
    Cs,
    /// Endpoint lookup.
    Location,
}

impl Product {
    /// Its short name, which is also the service in a RAM policy.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ess => "ess",
            Self::Ecs => "ecs",
            Self::Vpc => "vpc",
            Self::Cs => "cs",
            Self::Location => "location",
        }
    }

    /// Date of the API that is spoken.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Ess => "2014-08-28",
            Self::Ecs => "2014-05-26",
            Self::Vpc => "2016-04-28",
            Self::Cs => "2015-12-15",
            Self::Location => "2015-06-12",
        }
    }
}

/// An operation with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) product: Product,
    pub(crate) action: &'static str,
    pub(crate) writes: bool,
    /// The scaling group or node pool that it is about, for the scope of failures.
    pub(crate) group: Option<String>,
    method: Method,
    path: String,
    parameters: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Call {
    /// An operation that changes nothing.
    pub(crate) fn read(product: Product, action: &'static str) -> Self {
        Self {
            product,
            action,
            writes: false,
            group: None,
            method: Method::Post,
            path: "/".to_owned(),
            parameters: vec![],
            body: None,
        }
    }

    /// An operation that changes something.
    pub(crate) fn write(product: Product, action: &'static str) -> Self {
        Self { writes: true, ..Self::read(product, action) }
    }

    /// For the products that name things by path.
    pub(crate) fn at(self, method: Method, path: String) -> Self {
        Self { method, path, ..self }
    }

    /// With a JSON body.
    pub(crate) fn json(self, value: &serde_json::Value) -> Self {
        Self { body: Some(value.to_string().into_bytes()), ..self }
    }

    /// About a group.
    pub(crate) fn about(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// About a group that a parameter names.
    pub(crate) fn group(self, group: &str) -> Self {
        self.about(group).with("ScalingGroupId", group)
    }

    /// With a parameter; an empty value leaves it out.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        if !value.is_empty() {
            self.parameters.push((name.to_owned(), value));
        }
        self
    }

    /// With a list, numbered from 1: `InstanceId.1`, `InstanceId.2`, ….
    pub(crate) fn each<S: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let numbered = values.into_iter().enumerate();
        numbered.fold(self, |call, (index, value)| call.with(&format!("{name}.{}", index + 1), value.as_ref()))
    }

    /// The action as a RAM policy writes it, such as `ess:RemoveInstances`.
    pub(crate) fn permission(&self) -> String {
        format!("{}:{}", self.product.name(), self.action)
    }

    /// The request. The host adds everything that belongs to the signature.
    pub(crate) fn request(&self, region: &str) -> Request {
        let mut request = Request::new(self.method, &self.path)
            .header("x-acs-action", self.action)
            .header("x-acs-version", self.product.version())
            .header("accept", "application/json");
        if self.product != Product::Cs && self.parameters.iter().all(|(name, _)| name != "RegionId") {
            request = request.query("RegionId", region);
        }
        for (name, value) in &self.parameters {
            request = request.query(name, value);
        }
        if let Some(body) = &self.body {
            request = request.body("application/json", body.clone());
        } else if !matches!(self.method, Method::Get | Method::Head) {
            // So that a length of zero is sent rather than chunks.
            request = request.body("application/x-www-form-urlencoded", vec![]);
        }
        if self.writes { request.changes_something() } else { request.read_only() }
    }

    /// What an answer lacks that it should have.
    pub(crate) fn incomplete(&self, what: &str) -> PluginError {
        let message = format!("the answer to {} has no {what}", self.permission());
        let error = PluginError::transient(message).with_code("undecodable");
        match &self.group {
            Some(group) => error.for_group(group),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_guest::Deadline;
    use plimsoll_guest::http::{Answer, Client};
    use plimsoll_guest::testing::FakeCloud;

    fn sent(call: &Call) -> plimsoll_guest::http::Outgoing {
        let cloud = FakeCloud::new(|_| Ok(Answer::text(200, "{}")));
        let client = Client::new("https://ess.aliyuncs.com", &cloud).unwrap();
        client.send(&call.request("cn-hangzhou"), Deadline::after_ms(60_000)).unwrap();
        cloud.requests().remove(0)
    }

    #[test]
    fn lists_are_numbered_and_values_encoded_once() {
        let call = Call::write(Product::Ess, "RemoveInstances")
            .group("asg-bp18p2yfxow2dloq****")
            .each("InstanceId", ["i-1", "i-2"])
            .with("Empty", "");
        let request = sent(&call);
        assert_eq!(
            request.path_and_query,
            "/?RegionId=cn-hangzhou&ScalingGroupId=asg-bp18p2yfxow2dloq%2A%2A%2A%2A&InstanceId.1=i-1&InstanceId.2=i-2"
        );
        assert_eq!(request.header("x-acs-action"), Some("RemoveInstances"));
        assert_eq!(request.header("x-acs-version"), Some("2014-08-28"));
        assert_eq!(request.header("content-length"), Some("0"));
        assert_eq!(call.permission(), "ess:RemoveInstances");
    }

    /// Every character outside the unreserved set is encoded, in capital hexadecimal digits, bytes of UTF-8 one by one.
    #[test]
    fn the_encoder_is_that_of_the_signature() {
        let reference = |text: &str| {
            let byte = |byte: u8| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
                other => format!("%{other:02X}"),
            };
            text.bytes().map(byte).collect::<String>()
        };
        // Every character of the basic plane, and a few beyond it.
        for block in (1..0xd800u32).step_by(512).chain([0x1_f600, 0x10_fc00]) {
            let text: String = (block..block + 512).filter_map(char::from_u32).collect();
            let request = sent(&Call::read(Product::Ess, "X").with("A", &text));
            assert_eq!(request.path_and_query, format!("/?RegionId=cn-hangzhou&A={}", reference(&text)), "{block:x}");
        }
    }
}
