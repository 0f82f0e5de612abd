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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stepscope_testkit::corpus::{corpus, repository};

    use super::*;
    use crate::SessionSource;
    use crate::offline::Offline;

    fn get(server: &Offline, address: &str) -> Value {
        let (status, body) = server.get_open(address).unwrap();
        assert_eq!(status, 200, "{address}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    /// Checks that the lane of steps, the table, the report and the evidence of the first session below a path are about the
    /// same stretches of time.
    fn agrees(path: &Path) {
        let server = Offline::new(SessionSource::Paths(vec![path.to_owned()])).unwrap().unwrap();
        let report = get(&server, "/api/s/0/report");
        let lane = get(&server, "/api/s/0/timeline")["steps"].clone();
        let table = get(&server, "/api/s/0/view/steps");
        let column = |key: &str| -> Vec<f64> {
            let found =
                table["columns"].as_array().unwrap().iter().find(|column| column["key"] == key).unwrap();
            found["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let drawn: Vec<(f64, f64)> = lane
            .as_array()
            .unwrap()
            .iter()
            .map(|step| (step["start_ns"].as_f64().unwrap() / 1e6, step["end_ns"].as_f64().unwrap() / 1e6))
            .collect();
        let listed = column("start_ms").into_iter().zip(column("duration_ms"));
        let first = drawn.first().map_or(0.0, |(start, _)| *start)
            - column("start_ms").first().copied().unwrap_or(0.0);
        for (&(start, end), (at, length)) in drawn.iter().zip(listed) {
            assert!(
                (start - first - at).abs() < 1e-5 && (end - start - length).abs() < 1e-5,
                "{start} {end}, {at} {length}"
            );
        }
        for finding in report["findings"].as_array().unwrap().iter().filter(|row| !row["place"].is_null()) {
            let place = &finding["place"];
            let (from, to) =
                (place["start_ns"].as_f64().unwrap() / 1e6, place["end_ns"].as_f64().unwrap() / 1e6);
            assert!(
                drawn.iter().any(|(start, end)| (start - from).abs() < 1e-5 && (end - to).abs() < 1e-5),
                "the evidence of {} is no step of the lane",
                finding["id"]
            );
            let id = finding["id"].as_str().unwrap();
            let shown = get(&server, &format!("/api/s/0/evidence?finding={id}"));
            let (start, end) =
                (shown["start_ns"].as_f64().unwrap() / 1e6, shown["end_ns"].as_f64().unwrap() / 1e6);
            assert!(
                start >= from - 1e-5 && end <= to + 1e-5 && start < end,
                "{id}: {start} to {end} of {from} to {to}"
            );
            assert!(!shown["pieces"].as_array().unwrap().is_empty(), "{id}: {shown}");
        }
    }

    #[test]
    fn lane_table_report_and_evidence_show_the_same_steps() {
        for fixture in ["tf-input-bound", "tf-train", "torch-train", "jax-train"] {
            agrees(&repository().join("fixtures").join(fixture));
        }
    }

    #[test]
    fn steps_of_a_device_that_lags_behind_are_the_same_everywhere() {
        let Some(folder) = corpus("pytorch") else { return };
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let lagging = files.filter(|path| path.to_string_lossy().contains("resnet50_num_workers"));
        lagging.for_each(|path| agrees(&path));
    }
}
