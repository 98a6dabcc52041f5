//! For authors of Plimsoll plug-ins: providers and expanders as WebAssembly components.
