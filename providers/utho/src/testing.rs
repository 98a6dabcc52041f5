//! What unit tests share.

use plimsoll_guest::Deadline;
use plimsoll_guest::http::{Answer, Client, Request, Response};
use plimsoll_guest::testing::FakeCloud;

/// An answer as a client hands it out.
pub(crate) fn response(answer: Answer) -> Response {
    let cloud = FakeCloud::new(move |_| Ok(answer.clone()));
    let client = Client::new("https://api.utho.com/v2", &cloud).unwrap();
    client.send(&Request::get("/"), Deadline::after_ms(60_000)).unwrap()
}
