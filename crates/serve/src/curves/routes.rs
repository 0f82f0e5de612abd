//! Addresses below `/api/curves`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use super::{Curves, csv, findings, heat, listing, model, pictures, points, profiles, range, state, study};
use crate::answers::heavy;
use crate::routes::{Answer, App, Asked, Reply, data};

/// How long a request waits for files that are being read.
const PATIENCE: Duration = Duration::from_millis(250);

/// All addresses about curves.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/state", data(|asked| Box::pin(state_of(asked))))
        .route("/runs", data(|asked| Box::pin(runs(asked))))
        .route("/points", data(|asked| Box::pin(points_of(asked))))
        .route("/range", data(|asked| Box::pin(range_of(asked))))
        .route("/csv", data(|asked| Box::pin(csv_of(asked))))
        .route("/heat", data(|asked| Box::pin(heat_of(asked))))
        .route("/pictures", data(|asked| Box::pin(pictures_of(asked))))
        .route("/picture", data(|asked| Box::pin(picture_of(asked))))
        .route("/study", data(|asked| Box::pin(study_of(asked))))
        .route("/graph", data(|asked| Box::pin(graph_of(asked))))
        .route("/graph/find", data(|asked| Box::pin(found_in_graph(asked))))
        .route("/findings", data(|asked| Box::pin(findings_of(asked))))
        .route("/profiles", data(|asked| Box::pin(profiles_of(asked))))
}

/// The curves after a look at the files, unless that takes long: then it goes on behind the answer.
async fn looked(app: &App) -> Arc<Curves> {
    let curves = app.store.curves();
    let (look, looking) = (curves.clone(), curves.clone());
    let work = tokio::task::spawn_blocking(move || look.look());
    let _ = tokio::time::timeout(PATIENCE, work).await;
    looking
}

async fn state_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = looked(&app).await;
    heavy(move || state(&curves, &query).map(|value| Reply::value(&value))).await
}

async fn runs(Asked { app, .. }: Asked) -> Answer {
    let curves = looked(&app).await;
    heavy(move || Ok(Reply::value(&listing(&curves)))).await
}

async fn points_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || {
        let body = points(&curves, &query)?.into();
        Ok(Reply { kind: "application/octet-stream", body, file: None })
    })
    .await
}

async fn range_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || range(&curves, &query).map(|value| Reply::value(&value))).await
}

async fn csv_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || {
        let body = csv(&curves, &query)?.into();
        Ok(Reply { kind: "text/csv; charset=utf-8", body, file: Some("curves.csv".to_owned()) })
    })
    .await
}

async fn heat_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || heat(&curves, &query).map(|value| Reply::value(&value))).await
}

async fn findings_of(Asked { app, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || Ok(Reply::value(&findings(&curves)))).await
}

async fn profiles_of(Asked { app, .. }: Asked) -> Answer {
    let (curves, files) = (app.store.curves(), app.store.profile_files());
    heavy(move || Ok(Reply::value(&profiles(&curves, &files)))).await
}

async fn pictures_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || pictures::steps(&curves, &query).map(|value| Reply::value(&value))).await
}

async fn picture_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || pictures::picture(&curves, &query)).await
}

async fn study_of(Asked { app, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || Ok(Reply::value(&study::study(&curves)))).await
}

async fn graph_of(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || model::level(&curves, &query).map(|value| Reply::value(&value))).await
}

async fn found_in_graph(Asked { app, query, .. }: Asked) -> Answer {
    let curves = app.store.curves();
    heavy(move || model::find(&curves, &query).map(|value| Reply::value(&value))).await
}
