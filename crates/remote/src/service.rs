//! Every request passes here. Answers that are held in memory have a limit, whatever length they announce: lists and error
//! pages. Objects are streamed and have none. Metadata servers, which know the credentials of a cloud's machines, are asked
//! once and briefly: elsewhere nothing answers at their addresses.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};

use crate::error::NoMetadata;
use crate::names::signed_list;

/// Largest list or error page. A list has at most 5,000 keys of at most 1 KB.
const MOST_BYTES: usize = 16 << 20;
/// How long a metadata server may take.
const METADATA_PATIENCE: Duration = Duration::from_secs(2);
/// Names and addresses of metadata servers.
const METADATA: &[&str] = &["169.254.169.254", "169.254.170.2", "metadata.google.internal", "metadata"];

/// Makes clients for the stores.
#[derive(Debug)]
pub(crate) struct Connector {
    /// Whether all successful answers are objects: web servers have no lists.
    pub(crate) streams: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Service { client, streams: self.streams }))
    }
}

#[derive(Debug)]
struct Service {
    client: HttpClient,
    streams: bool,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().host().is_some_and(|host| METADATA.contains(&host)) {
            return self.metadata(request).await;
        }
        let object = self.streams || request.headers().contains_key(http::header::RANGE);
        let list = request.uri().query().is_some_and(|query| query.contains("delimiter="));
        let answer = self.client.execute(request).await?;
        match answer.status().is_success() {
            true if object => Ok(answer),
            true if list => named(bounded(answer)).await,
            _ => Ok(bounded(answer)),
        }
    }
}

impl Service {
    async fn metadata(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Not worth another attempt: on a machine of a cloud it answers at once.
        let none = || HttpError::new(HttpErrorKind::Unknown, NoMetadata);
        match tokio::time::timeout(METADATA_PATIENCE, self.client.execute(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => Ok(bounded(answer)),
            _ => Err(none()),
        }
    }
}

/// A list whose keys the stores' library takes.
async fn named(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let bytes = body.bytes().await?;
    let signed = std::str::from_utf8(&bytes).ok().and_then(signed_list);
    Ok(HttpResponse::from_parts(parts, signed.map_or_else(|| bytes.into(), HttpResponseBody::from)))
}

fn bounded(answer: HttpResponse) -> HttpResponse {
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, MOST_BYTES);
    let body = body.map_err(|error| HttpError::new_boxed(HttpErrorKind::Decode, error));
    HttpResponse::from_parts(parts, HttpResponseBody::new(body))
}
