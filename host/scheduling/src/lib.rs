//! Where a pod may run: predicates, a snapshot with undo, packing.
