//! A cluster and a cloud that live in memory on a virtual clock.
