//! What the tests against a real cluster stand on.
//!
//! ```text
//!  plane: etcd, kube-apiserver, scheduler, controller manager       cloud: the fake of Alibaba Cloud, over TLS
//!        ▲                     ▲                                      ▲               │ machines
//!        │ (through a Proxy,   │ nodes, leases, pods' states          │ its plug-in   ▼
//!        │  if a test wants)   └───────────────────────── kubelets ◄──┼───────────────┘
//!        └──────────────────────── plimsoll run ──────────────────────┘
//! ```
//!
//! The control plane and Helm come from `scripts/testplane.sh`; the variable `TESTPLANE` names the folder that holds them.

pub mod autoscaler;
pub mod cloud;
pub mod cluster;
pub mod http_get;
pub mod kubelet;
pub mod pair;
pub mod plane;
pub mod pod_metrics;
pub mod proxy;
pub mod rights;
pub mod settle;
pub mod stage;
pub mod wait;
pub mod workload;
