//! Files in object stores (`s3://`, `gs://`, `az://`) and on web servers (`http://`, `https://`): looked up, listed folder by
//! folder, and copied to local files that have no name.
//!
//! ```text
//! location  a URL: which server, which bucket, which object
//! bucket    a connection to a bucket, with the credentials of the environment
//! service   every request: answers of bounded size, no long wait for a metadata server that is not there
//! names     names of folders that paths cannot hold
//! list      one folder, or a tree of folders in parallel, within the caller's rules
//! fetch     the beginning of an object, or all of it in parallel ranges of one version
//! space     where copies go, and whether they fit
//! client    the above as blocking calls, with what is known already
//! ```
//!
//! It never writes to a store. It knows nothing about profiles: the caller's [`Rules`] say which folders and names matter.
//! Errors are values; the caller has the words for them.

mod bucket;
mod client;
mod error;
mod fetch;
mod list;
mod location;
mod names;
mod service;
mod space;

pub use client::{Client, Found, Moved};
pub use error::{Error, Kind};
pub use list::{Object, Rules};
pub use location::{Location, Scheme};
