//! Where the products answer. The table covers every region, so no lookup is needed; it is there for those who want it.

use crate::api::Product;

/// Which of a product's names is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Network {
    /// Reachable from anywhere.
    #[default]
    Public,
    /// Resolved and reachable only inside a VPC of the region.
    Vpc,
}

/// Regions that ESS serves from its central address.
const CENTRAL_ESS: &[&str] = &["cn-qingdao", "cn-beijing", "cn-hangzhou", "cn-shanghai", "cn-shenzhen", "cn-nanjing"];

/// The host name of a product in a region.
pub(crate) fn host(product: Product, region: &str, network: Network) -> String {
    let name = product.name();
    match (product, network) {
        (Product::Location, Network::Public) => "location.aliyuncs.com".to_owned(),
        (Product::Ess, Network::Public) if CENTRAL_ESS.contains(&region) => "ess.aliyuncs.com".to_owned(),
        (Product::Cs, Network::Vpc) => format!("cs-anony-vpc.{region}.aliyuncs.com"),
        (_, Network::Public) => format!("{name}.{region}.aliyuncs.com"),
        (_, Network::Vpc) => format!("{name}-vpc.{region}.aliyuncs.com"),
    }
}

/// A base URL from what an operator wrote: a host name, or a whole URL. Without a scheme it is `https`.
pub(crate) fn base_url(written: &str) -> String {
    if written.contains("://") { written.to_owned() } else { format!("https://{written}") }
}

/// Whether a host that a lookup named may be believed.
pub(crate) fn is_alibaba(host: &str) -> bool {
    let legal =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    host.strip_suffix(".aliyuncs.com").is_some_and(|rest| rest.split('.').all(legal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::central_ess(Product::Ess, "cn-hangzhou", Network::Public, "ess.aliyuncs.com")]
    #[case::ess_elsewhere(Product::Ess, "eu-central-1", Network::Public, "ess.eu-central-1.aliyuncs.com")]
    #[case::ess_inside(Product::Ess, "cn-hangzhou", Network::Vpc, "ess-vpc.cn-hangzhou.aliyuncs.com")]
    #[case::ecs(Product::Ecs, "cn-hangzhou", Network::Public, "ecs.cn-hangzhou.aliyuncs.com")]
    #[case::ecs_inside(Product::Ecs, "ap-southeast-1", Network::Vpc, "ecs-vpc.ap-southeast-1.aliyuncs.com")]
    #[case::networks(Product::Vpc, "cn-beijing", Network::Public, "vpc.cn-beijing.aliyuncs.com")]
    #[case::pools(Product::Cs, "cn-beijing", Network::Public, "cs.cn-beijing.aliyuncs.com")]
    #[case::location(Product::Location, "cn-beijing", Network::Public, "location.aliyuncs.com")]
    #[case::location_inside(Product::Location, "cn-beijing", Network::Vpc, "location-vpc.cn-beijing.aliyuncs.com")]
    fn table(#[case] product: Product, #[case] region: &str, #[case] network: Network, #[case] expected: &str) {
        assert_eq!(host(product, region, network), expected);
        assert!(is_alibaba(expected));
    }

    #[rstest]
    #[case::suffix("ess.aliyuncs.com.evil.example")]
    #[case::glued("evilaliyuncs.com")]
    #[case::bare("aliyuncs.com")]
    #[case::path("evil.example/.aliyuncs.com")]
    #[case::user("me@ess.aliyuncs.com")]
    #[case::empty_label("..aliyuncs.com")]
    fn strangers_are_not_believed(#[case] host: &str) {
        assert!(!is_alibaba(host));
    }

    #[test]
    fn a_scheme_may_be_written() {
        assert_eq!(base_url("ess.example"), "https://ess.example");
        assert_eq!(base_url("http://127.0.0.1:1"), "http://127.0.0.1:1");
    }
}
