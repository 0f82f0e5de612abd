//! A connection to one bucket, with the credentials that the environment names: keys, tokens, roles of a cloud's machines.

use std::sync::{Arc, Once};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::error::{Error, Kind};
use crate::location::{Location, Scheme};
use crate::service::Connector;

/// How long a connection may take, and how long a server may say nothing.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
/// How often a request is repeated, and for how long at most.
const RETRIES: usize = 4;
const RETRY_FOR: Duration = Duration::from_secs(60);

/// Variables that count beside those of the environment, for S3.
pub(crate) type Settings = Vec<(String, String)>;

/// A bucket, or one file on a web server.
#[derive(Clone)]
pub(crate) struct Bucket {
    /// Its objects.
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Its folders; a web server has none.
    pub(crate) folders: Option<Arc<dyn PaginatedListStore>>,
}

impl Bucket {
    fn of<S: ObjectStore + PaginatedListStore>(store: S) -> Self {
        let store = Arc::new(store);
        Bucket { objects: store.clone(), folders: Some(store) }
    }

    /// Prepares a connection. Nothing is asked yet.
    pub(crate) fn connect(location: &Location, settings: &Settings) -> Result<Self, Error> {
        cryptography();
        let failed = |error: object_store::Error| Error::of(location, &error);
        let connector = Connector { streams: location.scheme == Scheme::Web };
        match location.scheme {
            Scheme::S3 => {
                let mut builder = AmazonS3Builder::from_env().with_url(&location.root);
                for (name, value) in settings {
                    if let Ok(key) = name.to_ascii_lowercase().parse() {
                        builder = builder.with_config(key, value);
                    }
                }
                let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
                    .iter()
                    .find_map(|key| builder.get_config_value(key));
                let builder = builder.with_client_options(options(endpoint.as_deref()));
                builder
                    .with_retry(retry())
                    .with_http_connector(connector)
                    .build()
                    .map(Bucket::of)
                    .map_err(failed)
            }
            Scheme::Gcs => {
                let mut builder = GoogleCloudStorageBuilder::from_env().with_url(&location.root);
                // The variable that Google's own libraries take.
                let emulator = std::env::var("STORAGE_EMULATOR_HOST").ok().filter(|host| !host.is_empty());
                let emulator =
                    emulator.map(|host| if host.contains("://") { host } else { format!("http://{host}") });
                if let Some(emulator) = &emulator {
                    builder = builder.with_base_url(emulator).with_skip_signature(true);
                }
                let builder = builder.with_client_options(options(emulator.as_deref())).with_retry(retry());
                builder.with_http_connector(connector).build().map(Bucket::of).map_err(failed)
            }
            Scheme::Azure => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(&location.root);
                let endpoint = builder.get_config_value(&object_store::azure::AzureConfigKey::Endpoint);
                let builder = builder.with_client_options(options(endpoint.as_deref())).with_retry(retry());
                builder.with_http_connector(connector).build().map(Bucket::of).map_err(failed)
            }
            Scheme::Web => {
                if location.root.ends_with('/') {
                    return Err(Error::at(location, Kind::NoFolder));
                }
                let builder = HttpBuilder::new().with_url(&location.root).with_retry(retry());
                let builder = builder.with_client_options(options(Some(&location.root)));
                let store = builder.with_http_connector(connector).build().map_err(failed)?;
                Ok(Bucket { objects: Arc::new(store), folders: None })
            }
        }
    }
}

/// Only who names a server without encryption gets a connection without it.
fn options(server: Option<&str>) -> ClientOptions {
    let plain = server.is_some_and(|server| server.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(plain)
        .with_connect_timeout(CONNECT)
        .with_read_timeout(SILENCE)
        // A large range over a slow line takes long; silence ends it.
        .with_timeout_disabled()
}

fn retry() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(200),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_FOR }
}

/// The HTTP client takes the process's library for cryptography; without one it would panic.
fn cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only if one is there already, which does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
