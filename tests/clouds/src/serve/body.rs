//! Answers on their way: late, in pieces, broken off.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;

use crate::answer::Reply;

/// A body that broke off.
#[derive(Debug, thiserror::Error)]
#[error("the body breaks off, on purpose")]
pub(super) struct Broken;

/// A body as it is sent.
pub(super) type Sent = UnsyncBoxBody<Bytes, Broken>;

/// An answer that comes at once.
pub(super) fn whole(response: Response<Bytes>) -> Response<Sent> {
    response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
}

/// Pieces of a body that takes its time.
const SLOW_PIECES: usize = 10;

/// An answer that arrives as the reply says.
pub(super) async fn paced(reply: Reply) -> Response<Sent> {
    tokio::time::sleep(reply.head_after).await;
    if reply.chunk_bytes.is_none() && reply.body_over.is_zero() && !reply.broken {
        return whole(reply.response);
    }
    let (parts, body) = reply.response.into_parts();
    let length = reply.chunk_bytes.unwrap_or(body.len().div_ceil(SLOW_PIECES)).max(1);
    let pieces: Vec<Bytes> = body.chunks(length).map(Bytes::copy_from_slice).collect();
    let pause = reply.body_over.checked_div(u32::try_from(pieces.len()).unwrap_or(1)).unwrap_or_default();
    let end = if reply.broken { Some(Err(Broken)) } else { None };
    let pieces = pieces.into_iter().map(|piece| Ok(Frame::data(piece))).chain(end);
    let paced = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        piece
    });
    Response::from_parts(parts, StreamBody::new(paced).boxed_unsync())
}
