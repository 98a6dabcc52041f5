//! Cloud provider for the simulated cloud.
