//! stub
pub struct DataLayer;
