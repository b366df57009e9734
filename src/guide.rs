#![doc = include_str!("../docs/write-a-backend.md")]
