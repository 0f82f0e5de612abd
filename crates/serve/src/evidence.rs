//! What a finding is about, for the timeline: where to look, which stretches it owns, and its figure.

use axum::body::Bytes;
use serde_json::Value;
use stepscope_analyze::Category;
use stepscope_timeline::evidence;
use stepscope_timeline::model::{Model, ps};

use crate::answers;
use crate::error::Refusal;
use crate::store::Opened;

/// The evidence of the finding with this id, from what the page knows of the report.
pub(crate) fn answer(opened: &Opened, model: &Model, id: &str) -> Result<Bytes, Refusal> {
    let report: Value = serde_json::from_slice(&answers::report(opened)?).map_err(|_| Refusal::Broken)?;
    opened.answer(&format!("evidence/{id}/{}", model.aligned), |_| {
        let all = report["findings"].as_array().into_iter().flatten();
        let finding = all.into_iter().find(|row| row["id"] == id && !row["place"].is_null());
        let finding = finding.ok_or(Refusal::Missing("finding"))?;
        let place = &finding["place"];
        let (Some(host), Some(start), Some(end)) =
            (place["host"].as_str(), place["start_ns"].as_f64(), place["end_ns"].as_f64())
        else {
            return Err(Refusal::Missing("place"));
        };
        let named = |category: &Category| {
            place["categories"].as_array().is_some_and(|keys| keys.iter().any(|key| key == category.key()))
        };
        let categories: Vec<Category> = Category::ALL.into_iter().filter(named).collect();
        let mut answer = evidence::answer(model, host, (ps(start), ps(end)), &categories)
            .ok_or(Refusal::Missing("host"))?;
        answer["title"] = finding["title"].clone();
        answer["figure"] = place["figure"].clone();
        Ok(answers::bytes(&answer))
    })
}
