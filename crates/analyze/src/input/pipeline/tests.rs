//! What would break.

use super::*;
use stepscope_trace::Dur;

fn ms(ms: i64) -> Dur {
    Dur::from_us(ms * 1_000)
}

fn tally(path: &str, parent: Option<usize>) -> Tally {
    Tally { path: path.into(), parent, calls: 10, ..Tally::default() }
}

#[test]
fn a_stage_that_waits_for_its_producer_does_not_bound() {
    let stages = vec![
        Tally { own: ms(1), ..tally("Root", None) },
        Tally { own: ms(900), dataset: Some("PrefetchDataset:2".into()), ..tally("Root::Prefetch", Some(0)) },
        Tally {
            own: ms(280),
            background: ms(800),
            parallelism: Some(4),
            dataset: Some("ParallelMapDatasetV2:1".into()),
            ..tally("Root::Prefetch::ParallelMapV2", Some(1))
        },
        Tally { own: ms(300), ..tally("Root::Prefetch::ParallelMapV2::TFRecord", Some(2)) },
    ];
    let pipeline = Pipeline::of(TfData { stages, batches_per_second: None }).unwrap();
    let bound = pipeline.bound.as_ref().unwrap();
    assert_eq!(pipeline.bottleneck().unwrap().name, "TFRecord", "30 ms a batch against 800 / 4 / 10 = 20");
    assert!((bound.unit_ms_per_batch - 30.0).abs() < 1e-9);
    assert!((pipeline.most_batches_per_second.unwrap() - 1_000.0 / 30.0).abs() < 1e-9);
    assert!(pipeline.has_prefetch_by_user && pipeline.has_parallel_map && !bound.on_consumer);
    assert_eq!(pipeline.stages[1].wait_ms, 900.0);
}

#[test]
fn calls_that_share_few_processors_bound_although_many_are_asked_for() {
    let map = |waited| {
        let stages = vec![
            tally("Root", None),
            Tally {
                own: ms(waited),
                background: ms(10_000),
                parallelism: Some(32),
                ..tally("Root::ParallelMapV2", Some(0))
            },
            Tally { own: ms(500), ..tally("Root::ParallelMapV2::TFRecord", Some(1)) },
        ];
        Pipeline::of(TfData { stages, batches_per_second: None }).unwrap()
    };
    assert_eq!(map(480).bottleneck().unwrap().name, "TFRecord", "10,000 / 32 / 10 = 31 ms against 50");
    let busy = map(2_100);
    assert_eq!(busy.bottleneck().unwrap().name, "ParallelMapV2", "nothing else explains 210 ms of waiting");
    assert!((busy.bound.as_ref().unwrap().unit_ms_per_batch - 160.0).abs() < 1e-9);
}

#[test]
fn what_runs_on_one_thread_adds_up() {
    let stages = vec![
        tally("Root", None),
        Tally { own: ms(40), batch_size: Some(8), ..tally("Root::BatchV2", Some(0)) },
        Tally { calls: 80, own: ms(10), function: ms(50), ..tally("Root::BatchV2::Map", Some(1)) },
    ];
    let pipeline = Pipeline::of(TfData { stages, batches_per_second: Some(5.0) }).unwrap();
    let bound = pipeline.bound.as_ref().unwrap();
    assert_eq!((pipeline.bottleneck().unwrap().name.as_str(), bound.on_consumer), ("Map", true));
    assert!((bound.unit_ms_per_batch - 10.0).abs() < 1e-9);
    assert!((bound.ms_per_batch - 6.0).abs() < 1e-9);
    assert_eq!(pipeline.examples_per_second(), Some(40.0));
}

#[test]
fn what_was_prepared_ahead_is_not_charged_to_the_batches_taken() {
    let stages = vec![
        Tally { calls: 1, ..tally("Root", None) },
        Tally { calls: 1, ..tally("Root::Prefetch", Some(0)) },
        Tally { calls: 4, own: ms(4), batch_size: Some(8), ..tally("Root::Prefetch::BatchV2", Some(1)) },
        Tally { calls: 32, own: ms(64), ..tally("Root::Prefetch::BatchV2::Map", Some(2)) },
    ];
    let pipeline = Pipeline::of(TfData { stages, batches_per_second: None }).unwrap();
    let costs: Vec<f64> = pipeline.stages.iter().filter_map(|stage| stage.ms_per_batch).collect();
    assert_eq!(costs, [0.0, 0.0, 1.0, 16.0]);
    assert_eq!(pipeline.batches, 1);
}

#[test]
fn a_file_name_that_makes_many_records_costs_each_of_them_little() {
    let stages = vec![
        tally("Root", None),
        Tally { calls: 10, batch_size: Some(100), ..tally("Root::BatchV2", Some(0)) },
        Tally { calls: 1_000, own: ms(100), ..tally("Root::BatchV2::FlatMap", Some(1)) },
        Tally { calls: 1_000, own: ms(300), ..tally("Root::BatchV2::FlatMap::TFRecord", Some(2)) },
        Tally { calls: 5, own: ms(50), ..tally("Root::BatchV2::FlatMap::Shuffle", Some(2)) },
    ];
    let pipeline = Pipeline::of(TfData { stages, batches_per_second: None }).unwrap();
    let costs: Vec<f64> = pipeline.stages.iter().filter_map(|stage| stage.ms_per_batch).collect();
    assert_eq!(costs, [0.0, 0.0, 10.0, 30.0, 5.0]);
    assert_eq!(pipeline.bottleneck().unwrap().name, "TFRecord");
}

#[test]
fn a_pipeline_without_time_has_no_bound_and_no_infinite_rate() {
    let stages = vec![Tally { calls: 0, ..tally("Root", None) }];
    let pipeline = Pipeline::of(TfData { stages, batches_per_second: None }).unwrap();
    assert_eq!((pipeline.bound, pipeline.most_batches_per_second), (None, None));
    assert_eq!(Pipeline::of(TfData::default()), None);
}

#[test]
fn batch_sizes_come_from_stages_or_from_shapes_that_agree() {
    let shaped = |shapes: &str| batch_size(&[Tally { shapes: Some(shapes.into()), ..Tally::default() }]);
    assert_eq!(shaped("[64,64] [64]"), Some((64, BatchFrom::Shapes)));
    assert_eq!(shaped("[64,64] [32]"), None);
    assert_eq!(shaped("[] []"), None);
    assert_eq!(shaped("[?,8]"), None);
}
