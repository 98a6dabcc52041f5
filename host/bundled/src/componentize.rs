//! From a core module, as a compiler writes it, to a component, as the host loads it.

use wit_component::ComponentEncoder;

/// Turns a core module into a component that imports only what the module uses.
///
/// The module carries the description of its world in a custom section, as every guest built with `wit-bindgen` does. The
/// manifest section stays inside.
///
/// # Errors
/// The bytes are already a component, are no WebAssembly at all, or are a module that does not implement its world; the
/// text says what is missing.
pub fn componentize(core_module: &[u8]) -> Result<Vec<u8>, ComponentizeError> {
    match core_module {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {}
        [0, b'a', b's', b'm', _, 0, 1, 0, ..] => return Err(ComponentizeError::AlreadyComponent),
        _ => return Err(ComponentizeError::NotWasm),
    }
    let unfit = |error: _| ComponentizeError::Unfit(format!("{error:#}"));
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true).module(core_module).and_then(ComponentEncoder::encode).map_err(unfit)
}

/// Why a file did not become a component.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComponentizeError {
    /// There is nothing to do.
    #[error("this is a component already; the host can load it as it is")]
    AlreadyComponent,
    /// The file does not begin as WebAssembly does.
    #[error("this is no WebAssembly module; build the crate for wasm32-unknown-unknown and give the .wasm file")]
    NotWasm,
    /// The module does not implement a world.
    #[error("the module cannot become a component: {0}; was it built with an export macro of plimsoll-guest?")]
    Unfit(String),
}
