use super::*;
use plimsoll_guest::testing::FakeCloud;

/// An API over a cloud that cannot be reached, at a fixed time.
pub(crate) fn api() -> Api<FakeCloud> {
    let settings = Settings { region: "cn-hangzhou".into(), ..Settings::default() };
    Api::new(FakeCloud::default(), &settings, "plimsoll-test", Rc::new(|| 1_717_230_600_000))
}
