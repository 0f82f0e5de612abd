//! Launches and collectives of ranks, on recorded and on aligned clocks.

use serde_json::Value;
use stepscope_testkit::chrome::{ChromeEvent, ChromeTrace};
use stepscope_trace::Dur;

use super::super::model::Model;
use super::super::{collectives, critical};
use super::{details, opened, slice};

/// Steps of 1 ms on a host with one GPU: an op that launches a kernel, and an exchange that starts at `late` µs.
fn rank(late: i64) -> ChromeTrace {
    rank_ahead(late, 0)
}

/// The same by a clock that is ahead by this many microseconds.
fn rank_ahead(late: i64, ahead: i64) -> ChromeTrace {
    let event = |name: &str, category: &str, place: (i64, i64), start: i64, length: i64| {
        ChromeEvent::slice(name, category, place.0, place.1, &start.to_string(), &length.to_string())
    };
    let mut trace = ChromeTrace::new()
        .head("schemaVersion", "1")
        .head("deviceProperties", "[{\"id\": 0}]")
        .head("baseTimeNanoseconds", "1700000000000000000");
    for step in 0..5 {
        let (at, number) = (step * 1_000 + ahead, (step + 1).to_string());
        let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
        trace = trace
            .event(&event(&format!("ProfilerStep#{step}"), "user_annotation", (9, 1), at, 1_000))
            .event(&event("aten::mm", "cpu_op", (9, 1), at + 10, 50))
            .event(&event("cudaLaunchKernel", "cuda_runtime", (9, 1), at + 20, 5).arg("correlation", &number))
            .event(
                &event("gemm", "kernel", (0, 7), at + 100, 150)
                    .arg("correlation", &number)
                    .arg("device", "0"),
            )
            .event(&event(name, "kernel", (0, 7), at + late, 900 - late).arg("device", "0"));
    }
    trace
}

#[test]
fn an_op_shows_what_calls_inside_it_launched() {
    let opened = opened(&[rank(300)]);
    let model = &opened.model;
    let found = super::searched(model, "aten::mm").page(model, 0, 1);
    let number = |key: &str| u32::try_from(found["hits"][0][key].as_u64().unwrap()).unwrap();
    let flows = details(model, number("track"), number("event")).unwrap()["flows"].clone();
    assert_eq!((&flows[0]["kind"], &flows[0]["name"]), (&"launch inside".into(), &"gemm".into()), "{flows}");
    assert_eq!(flows.as_array().map(Vec::len), Some(1));
}

#[test]
fn collectives_show_who_waits_for_whom() {
    let answer = collectives::answer(&opened(&[rank(300), rank(700)]).model);
    let runs = answer["runs"].as_array().unwrap();
    let of = |last: bool| {
        runs.iter().filter(|run| run["last"] == last).map(|run| &run["waited_ns"]).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(true), of(false)),
        (vec![&Value::from(0.0); 5], vec![&Value::from(400_000.0); 5]),
        "{answer}"
    );
    assert_eq!(collectives::answer(&opened(&[rank(300)]).model)["total"], 0);
}

#[test]
fn ranks_are_drawn_where_their_collectives_end_together() {
    let opened = opened(&[rank_ahead(300, 0), rank_ahead(700, 2_500)]);
    let ends = |model: &Model| -> Vec<f64> {
        let runs = collectives::answer(model)["runs"].clone();
        let mut ends: Vec<f64> =
            runs.as_array().unwrap().iter().map(|run| run["end_ns"].as_f64().unwrap()).collect();
        ends.sort_by(f64::total_cmp);
        ends
    };
    let at = |step: i64, ahead: i64| ((step * 1_000 + 900 + ahead) * 1_000) as f64;
    let steps = || (0..5).flat_map(|step| [at(step, 0), at(step, 0)]);
    assert_eq!(ends(&opened.model), steps().collect::<Vec<f64>>());
    let mut recorded: Vec<f64> = (0..5).flat_map(|step| [at(step, 0), at(step, 2_500)]).collect();
    recorded.sort_by(f64::total_cmp);
    assert_eq!(ends(opened.recorded()), recorded);
    assert!(opened.model.aligned && !opened.recorded().aligned);
    assert_eq!(opened.model.moves[1].map(|one| one.shift), Some(Dur::from_us(-2_500)));
    // A search counts its hits on the clock that is asked for.
    let hits = |model: &Model| {
        let page = super::searched(model, "AllReduce").page(model, 9, 1);
        page["hits"][0]["start_ns"].as_f64()
    };
    assert_eq!(hits(&opened.model), Some((4_000.0 + 700.0) * 1e3));
    assert_eq!(hits(opened.recorded()), Some((4_000.0 + 700.0 + 2_500.0) * 1e3));
}

#[test]
fn ranks_without_common_collectives_stay_on_recorded_clocks() {
    let lone = ChromeTrace::new().event(&slice("a", 1, 0, 1_000));
    let opened = opened(&[rank(300), lone]);
    assert!(!opened.model.aligned && opened.model.moves.is_empty());
}

#[test]
fn a_critical_path_has_places_on_tracks_or_says_why_it_is_unknown() {
    let opened = opened(&[rank(300)]);
    let path = critical::answer(&opened.model, 0, 2).unwrap();
    // The exchange has no call, and takes most of the device's time.
    assert!(path["unknown"].as_str().unwrap().starts_with("the launching call"), "{path}");
    assert!(critical::answer(&opened.model, 7, 2).is_none());
    let mut trace = ChromeTrace::new().head("schemaVersion", "1").head("deviceProperties", "[{\"id\": 0}]");
    for step in 0..5 {
        let (at, id) = (step * 1_000, (step + 1).to_string());
        let event = |name: &str, category: &str, place: (i64, i64), start: i64, length: i64| {
            ChromeEvent::slice(
                name,
                category,
                place.0,
                place.1,
                &(at + start).to_string(),
                &length.to_string(),
            )
        };
        trace = trace
            .event(&event(&format!("ProfilerStep#{step}"), "user_annotation", (9, 1), 0, 1_000))
            .event(&event("cudaLaunchKernel", "cuda_runtime", (9, 1), 20, 10).arg("correlation", &id))
            .event(&event("gemm", "kernel", (0, 7), 50, 700).arg("correlation", &id).arg("device", "0"))
            .event(&event("cudaDeviceSynchronize", "cuda_runtime", (9, 1), 100, 660));
    }
    let opened = super::opened(&[trace]);
    let path = critical::answer(&opened.model, 0, 2).unwrap();
    assert_eq!(path["unknown"], Value::Null);
    let pieces = path["pieces"].as_array().unwrap();
    let kernel = pieces.iter().find(|piece| piece["kind"] == "kernel").unwrap();
    assert_eq!((&kernel["start_ns"], &kernel["end_ns"]), (&2_050_000.0.into(), &2_750_000.0.into()));
    let number = |key: &str| u32::try_from(kernel[key].as_u64().unwrap()).unwrap();
    assert_eq!(details(&opened.model, number("track"), number("event")).unwrap()["name"], "gemm");
}
