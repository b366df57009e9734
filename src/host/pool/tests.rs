//! Pooling beside its definition.
