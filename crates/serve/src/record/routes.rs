//! Addresses below `/api/record`: the only ones that change anything, and therefore asked with POST.

use std::time::Duration;

use axum::Router;

use super::RecordWish;
use crate::answers::heavy;
use crate::routes::{Answer, App, Asked, Reply, act, data};

/// What a request that records has to be called for.
pub(crate) const STARTS: &str = "/api/record/start";
pub(crate) const CANCELS: &str = "/api/record/cancel";

/// All addresses about recording.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/api/record", data(|asked| Box::pin(about(asked))))
        .route(STARTS, act(|asked| Box::pin(start(asked))))
        .route(CANCELS, act(|asked| Box::pin(cancel(asked))))
}

async fn about(Asked { app, .. }: Asked) -> Answer {
    Ok(Reply::value(&app.captures.about()))
}

async fn start(Asked { app, query, .. }: Asked) -> Answer {
    let wish = RecordWish {
        address: query.text("address").unwrap_or("").to_owned(),
        duration: Duration::from_millis(query.number("duration_ms")?),
        until_steady: query.text("steady") == Some("1"),
    };
    heavy(move || {
        app.captures.start(wish, &app.store)?;
        Ok(Reply::value(&app.captures.about()))
    })
    .await
}

async fn cancel(Asked { app, .. }: Asked) -> Answer {
    heavy(move || {
        app.captures.cancel()?;
        Ok(Reply::value(&app.captures.about()))
    })
    .await
}
