//! Input, memory, devices and inference as the binary shows them: snapshots of the project's own profiles, and
//! known facts about profiles of the corpus, if available.

mod support;

use stepscope_testkit::corpus::corpus;
use support::{json, run};

#[test]
fn the_input_pipeline_as_a_tree() {
    for fixture in ["tf-input-bound", "tf-train", "keras-fit", "torch-train", "jax-train"] {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("input_{fixture}"), run(&["input", &path]));
    }
    insta::assert_snapshot!("input_json", run(&["input", "fixtures/tf-input-bound", "--json"]));
}

#[test]
fn memory_at_its_peak() {
    for fixture in ["tf-train", "torch-train", "jax-plain"] {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("memory_{fixture}"), run(&["memory", &path, "--top", "5"]));
    }
}

#[test]
fn devices_and_inference_of_a_training_run() {
    insta::assert_snapshot!("devices_tf-train", run(&["devices", "fixtures/tf-train"]));
    insta::assert_snapshot!("devices_csv", run(&["devices", "fixtures/torch-train", "--csv"]));
    insta::assert_snapshot!("inference_tf-train", run(&["inference", "fixtures/tf-train"]));
    insta::assert_snapshot!("inference_json", run(&["inference", "fixtures/tf-train", "--json"]));
}

/// What TensorFlow itself wrote beside three of its profiles when it captured them: allocator, peak, capacity,
/// and peak of the program's life.
const TENSORFLOW_SAYS: [(&str, &str, i64, i64, i64); 6] = [
    ("2021_04_08_07_18_48", "GPU_0_bfc", 2_623_595_008, 10_561_793_600, 2_657_149_952),
    ("2021_04_08_07_18_48", "gpu_host_bfc", 691_323_904, 68_719_476_736, 691_324_160),
    ("2021_04_10_15_10_29", "GPU_0_bfc", 2_564_189_696, 10_560_499_904, 2_605_658_624),
    ("2021_04_10_15_10_29", "gpu_host_bfc", 691_324_672, 68_719_476_736, 691_324_928),
    ("2021_04_14_13_32_46", "GPU_0_bfc", 3_252_414_208, 5_623_321_728, 4_069_639_936),
    ("2021_04_14_13_32_46", "gpu_host_bfc", 86_436_096, 68_719_476_736, 86_436_352),
];

#[test]
fn memory_agrees_with_tensorflows_own_results() {
    for (session, allocator, peak, capacity, lifetime) in TENSORFLOW_SAYS {
        let Some(path) = corpus(&format!("xplane-public/k0styamba+CNN-food-101/{session}")) else { return };
        let memory = json("memory", &path);
        let ours =
            memory["allocators"].as_array().unwrap().iter().find(|ours| ours["name"] == allocator).unwrap();
        assert_eq!(ours["peak_bytes"], peak, "{session} {allocator}");
        assert_eq!(ours["capacity_bytes"], capacity, "{session} {allocator}");
        assert_eq!(ours["lifetime_peak_bytes"], lifetime, "{session} {allocator}");
    }
}

#[test]
fn a_tensor_kept_every_step_is_growth() {
    let Some(path) = corpus("labelled/memory_pressure") else { return };
    let memory = json("memory", &path);
    let ours = &memory["allocators"][0];
    assert_eq!(ours["allocations"].as_u64().unwrap() - ours["frees"].as_u64().unwrap(), 12);
    assert_eq!(ours["growth"]["grows"], true);
    assert_eq!(ours["kept"][0]["steps"], 11, "one a step; the last may still free its own");
    for steady in ["compute_matmul", "compute_conv", "concat_dominated", "keras_fit"] {
        let Some(path) = corpus(&format!("labelled/{steady}")) else { return };
        let memory = json("memory", &path);
        for allocator in memory["allocators"].as_array().unwrap() {
            assert_ne!(allocator["growth"]["grows"], true, "{steady}: {}", allocator["name"]);
        }
    }
}

#[test]
fn the_stage_that_was_made_slow_bounds_the_pipeline() {
    for (case, stage) in [("input_slow_map", "ParallelMapV2"), ("input_py_generator", "Generator")] {
        let Some(path) = corpus(&format!("labelled/{case}")) else { return };
        let input = json("input", &path);
        let bottleneck = input["bounding_stage"].as_str().unwrap();
        assert!(bottleneck.ends_with(stage), "{case}: {bottleneck}");
    }
}

#[test]
fn a_loader_without_workers_is_told_from_one_with() {
    let name = "pytorch/kineto_resnet50_num_workers";
    let cases = [
        (
            format!("{name}_0_worker0.1623143089861.pt.trace.json.gz"),
            "_SingleProcessDataLoaderIter",
            0.35,
            0.45,
        ),
        (
            format!("{name}_4_worker0.1623212756351.pt.trace.json.gz"),
            "_MultiProcessingDataLoaderIter",
            0.0,
            0.03,
        ),
    ];
    for (file, loader, least, most) in cases {
        let Some(path) = corpus(&file) else { return };
        let input = json("input", &path);
        assert_eq!(input["rows"][0]["name"], loader);
        let waits = input["wait_fraction"].as_f64().unwrap();
        assert!((least..most).contains(&waits), "{loader}: {waits}");
    }
}

#[test]
fn requests_of_a_predicting_program_have_the_stopwatchs_latency() {
    let Some(path) = corpus("labelled/keras_predict") else { return };
    let inference = json("inference", &path);
    let mean = inference["rows"][0]["mean_ms"].as_f64().unwrap();
    assert!((mean - 81.0).abs() < 4.0, "81 ms by the stopwatch, not {mean}");
    let split: f64 = ["compute_ms", "transfer_ms", "input_ms", "host_ms"]
        .iter()
        .map(|key| inference["rows"][0][*key].as_f64().unwrap())
        .sum();
    assert!((split - mean).abs() < 0.001 * mean);
}
