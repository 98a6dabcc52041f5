//! A Kubernetes cluster autoscaler with WebAssembly plug-ins.
fn main() {}
