//! Turns the openb trace into Kubernetes objects and node groups.
