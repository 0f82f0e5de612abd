//! What counts as a step: loops that never do the same twice, marks and names around other things, pauses that recur.

use super::*;

#[test]
fn steps_need_not_be_equal() {
    let shapes = [(8_000_000, 40, 24), (90_000_000, 6, 60)];
    let shape = |(step, steps, kernels)| Shape { step, steps, kernels, marked: false };
    play(&shapes.map(shape).map(scenes_steps::awaited));
    play(&shapes.map(shape).map(scenes_steps::replayed));
}

#[test]
fn steps_after_the_last_device_event_do_not_count() {
    let shape = Shape { step: 30_000_000, steps: 24, kernels: 60, marked: true };
    let scene = scenes_steps::device_ends_early(shape);
    play(std::slice::from_ref(&scene));
    for recorder in ALL {
        let told = told(&scene, recorder);
        let mean = told.summary.step_ms.map_or(0.0, |moments| moments.mean);
        assert!((mean / (scene.step as f64 / 1e6) - 1.0).abs() < 0.05, "{recorder:?}: mean step of {mean}");
    }
}

#[test]
fn requests_on_several_threads_are_not_steps_of_one() {
    let shape = Shape { step: 9_000_000, steps: 38, kernels: 12, marked: true };
    play(&[scenes_steps::side_by_side(shape)]);
}

#[test]
fn kernels_that_repeat_in_a_corner_are_not_the_loop() {
    play(&[scenes_steps::copies_after_warm_up(Shape {
        step: 20_000_000,
        steps: 40,
        kernels: 9,
        marked: false,
    })]);
}

/// The mean step in milliseconds that each of these recorders shows.
fn mean_steps(scene: &Scene, recorders: &[Recorder]) -> Vec<(Recorder, f64)> {
    let mean = |told: Report| told.summary.step_ms.map_or(0.0, |moments| moments.mean);
    recorders.iter().map(|&recorder| (recorder, mean(told(scene, recorder)))).collect()
}

#[test]
fn marks_around_nothing_do_not_count() {
    let scene = scenes_steps::empty_marks(Shape { step: 20_000_000, steps: 24, kernels: 60, marked: true });
    for (recorder, mean) in mean_steps(&scene, &ALL) {
        assert!((mean / (scene.step as f64 / 1e6) - 1.0).abs() < 0.05, "{recorder:?}: mean step of {mean}");
    }
}

#[test]
fn a_range_around_the_program_is_no_step() {
    let shape = Shape { step: 20_000_000, steps: 24, kernels: 60, marked: false };
    let scene = scenes_steps::named_program(shape);
    for (recorder, mean) in mean_steps(&scene, &[Recorder::Kineto, Recorder::Nsys, Recorder::Rocm]) {
        assert!((mean / (scene.step as f64 / 1e6) - 1.0).abs() < 0.1, "{recorder:?}: mean step of {mean}");
    }
}

#[test]
fn named_ranges_around_iterations_are_steps() {
    let shape = Shape { step: 20_000_000, steps: 24, kernels: 60, marked: false };
    let scene = scenes_steps::named_turns(shape);
    for (recorder, mean) in mean_steps(&scene, &[Recorder::Kineto, Recorder::Nsys, Recorder::Rocm]) {
        assert!((mean / (scene.step as f64 / 1e6) - 1.0).abs() < 0.1, "{recorder:?}: mean step of {mean}");
    }
}

#[test]
fn steps_of_two_kinds_are_described_as_such() {
    let scene = scenes_steps::alternating(Shape { step: 20_000_000, steps: 24, kernels: 60, marked: true });
    for recorder in ALL {
        let told = told(&scene, recorder);
        let said = told.findings.iter().find(|finding| finding.id() == "step-variance").map(Finding::summary);
        assert!(said.as_ref().is_some_and(|said| said.contains("alternate")), "{recorder:?}: {said:?}");
    }
}

#[test]
fn what_recurs_between_epochs_is_part_of_the_mean_step() {
    let (shape, (steps, pause)) =
        (Shape { step: 20_000_000, steps: 36, kernels: 60, marked: true }, scenes_steps::EPOCH);
    let scene = scenes_steps::epochs(shape);
    let expected = scene.step as f64 / 1e6 * (steps + pause) as f64 / steps as f64;
    for (recorder, mean) in mean_steps(&scene, &ALL) {
        assert!((mean / expected - 1.0).abs() < 0.15, "{recorder:?}: mean step of {mean}, not {expected}");
    }
}
