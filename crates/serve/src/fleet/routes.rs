//! Addresses below `/api/fleet`.

use axum::Router;
use stepscope_render::fleet::write_step_map;

use crate::answers::heavy;
use crate::error::Refusal;
use crate::routes::{Answer, App, Asked, Reply, data};

/// All addresses about the fleet.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/", data(|asked| Box::pin(state(asked))))
        .route("/report", data(|asked| Box::pin(report(asked))))
        .route("/steps", data(|asked| Box::pin(steps(asked))))
}

async fn state(Asked { app, .. }: Asked) -> Answer {
    heavy(move || Ok(Reply::value(&app.store.fleet().answer(&app.store)))).await
}

async fn report(Asked { app, .. }: Asked) -> Answer {
    let ready = app.store.fleet().state().ready.clone().ok_or(Refusal::Missing("report"))?;
    Ok(Reply::json(ready.document.clone()))
}

async fn steps(Asked { app, query, .. }: Asked) -> Answer {
    let ready = app.store.fleet().state().ready.clone().ok_or(Refusal::Missing("report"))?;
    let recording = query.text("recording").unwrap_or("").to_owned();
    heavy(move || {
        let map = stepscope_fleet::step_map(&ready.set, &recording).map_err(|_| Refusal::Broken)?;
        let map = map.ok_or(Refusal::Missing("recording"))?;
        let mut text = Vec::new();
        write_step_map(&map, &mut text).map_err(|_| Refusal::Broken)?;
        Ok(Reply::json(text))
    })
    .await
}
