//! `wasi:http` in the linker. The runtime's own function for sending requests keeps the options of each request for ever, so
//! that a plug-in runs into its limit of open objects after a thousand requests; here they are let go.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::{self, ErrorCode, Host as _};
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{WasiHttp, WasiHttpView as _};

use crate::store::PluginState;

/// The interface, in the version of the runtime; a guest may be made for another one of the same major.
const HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

type Sent = Result<Resource<HostFutureIncomingResponse>, ErrorCode>;

/// Adds everything of `wasi:http` that a provider may use.
pub(crate) fn add_to_linker(linker: &mut Linker<PluginState>) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    types::add_to_linker::<_, WasiHttp>(linker, &(&options).into(), PluginState::http)?;
    linker.instance(HANDLER)?.func_wrap("handle", send)
}

fn send(
    mut store: StoreContextMut<'_, PluginState>,
    (request, options): (Resource<HostOutgoingRequest>, Option<Resource<types::RequestOptions>>),
) -> wasmtime::Result<(Sent,)> {
    let mut view = store.data_mut().http();
    let read = options.as_ref().map(|options| Resource::new_own(options.rep()));
    let sent = view.handle(request, read);
    if let Some(options) = options {
        view.table.delete(options)?;
    }
    Ok((match sent {
        Ok(response) => Ok(response),
        Err(error) => Err(view.convert_error_code(error)?),
    },))
}
