//! Scenes with one process on one device: each with one problem, or none, for any step duration and number of
//! kernels.

use super::host::{COLLECTIVES, COMPUTE, Host};
use super::model::{self, ALL_REDUCE, GEMM, LEFT, RIGHT, SGEMM};
use super::{Call, Cause, Direction, Kernel, Ns, Run, Scene, What};

/// The figures of a scene.
#[derive(Copy, Clone, Debug)]
pub struct Shape {
    /// Approximate duration of a step.
    pub step: Ns,
    /// How many steps.
    pub steps: i64,
    /// Number of kernels per step.
    pub kernels: usize,
    /// Whether the user marked the steps.
    pub marked: bool,
}

/// Which time belongs to the problem.
pub enum Owner {
    /// Events of this kind.
    Of(fn(&What) -> bool),
    /// All idle time of the device.
    Idle,
    /// Nothing that can be known in advance.
    Open,
}

impl Shape {
    /// This many hundredths of the step.
    pub fn part(&self, hundredths: Ns) -> Ns {
        self.step / 100 * hundredths
    }

    /// The kernels of a step that take this many hundredths of it.
    pub fn kernels(&self, hundredths: Ns, product: Kernel) -> Vec<(Kernel, Ns)> {
        model::step(self.part(hundredths), self.kernels, product)
    }

    /// A process whose framework is fast enough for this number of kernels: preparing them takes a third of the
    /// step.
    pub fn host(&self, pid: i64) -> Host {
        let mut host = Host::new(pid);
        let each = self.step / 3 / self.kernels as Ns;
        host.op_ns = host.op_ns.min(each / 2);
        host.launch_ns = host.launch_ns.min(each / 2);
        host
    }

    /// The loop.
    pub(crate) fn each_step(&self, host: &mut Host, mut inside: impl FnMut(&mut Host, i64)) {
        (0..self.steps).for_each(|number| host.step(number, |host| inside(host, number)));
    }

    /// The recording of finished processes, and the truth about the first.
    pub fn recorded(&self, cause: Cause, variant: &str, hosts: Vec<Host>, owner: &Owner) -> Scene {
        let step = hosts.first().map_or(0, Host::usual_step);
        let runs: Vec<Run> = hosts.into_iter().map(Host::end).collect();
        let share = runs.first().map_or(0.0, |run| self.share(run, owner, step));
        let idle = runs.first().map_or(0.0, |run| self.share(run, &Owner::Idle, step));
        let runs = if self.marked { runs } else { runs.into_iter().map(Run::unmarked).collect() };
        let marks = if self.marked { "marked" } else { "bare" };
        let name = format!(
            "{cause:?}{variant} {}us x{} {} kernels {marks}",
            self.step / 1_000,
            self.steps,
            self.kernels
        );
        Scene { name, cause, runs, marked: self.marked, steps: self.steps, step, share, idle }
    }

    fn share(&self, run: &Run, owner: &Owner, step: Ns) -> f64 {
        let on_device =
            |what: &What| matches!(what, What::Kernel(_) | What::Node(..) | What::Graph | What::Copy { .. });
        let time = |wanted: &dyn Fn(&What) -> bool| {
            let events = run.events.iter().filter(|event| wanted(&event.what));
            events.map(|event| event.end - event.start).sum::<Ns>() as f64
        };
        let all = (step * self.steps).max(1) as f64;
        match owner {
            Owner::Of(wanted) => time(wanted) / all,
            Owner::Idle => 1.0 - time(&on_device) / all,
            Owner::Open => f64::NAN,
        }
    }
}

pub(super) fn kernels(what: &What) -> bool {
    matches!(what, What::Kernel(_) | What::Node(..) | What::Graph)
}

fn copies(what: &What) -> bool {
    matches!(what, What::Copy { .. })
}

fn is_all_reduce(what: &What) -> bool {
    *what == What::Kernel(ALL_REDUCE)
}

/// Busy matrix units, batches ready, the host far ahead.
pub fn healthy(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        host.wait_for_batch(shape.part(1));
        host.copy(COMPUTE, Direction::In, true, shape.part(1));
        host.model(&shape.kernels(98, GEMM));
    });
    shape.recorded(Cause::Healthy, "", vec![host], &Owner::Of(kernels))
}

/// A healthy step of another model: of images.
pub fn image_model(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    let kernels_of_step = model::image_step(shape.part(98), shape.kernels);
    shape.each_step(&mut host, |host, _| {
        host.copy(COMPUTE, Direction::In, true, shape.part(1));
        host.model(&kernels_of_step);
    });
    shape.recorded(Cause::Healthy, " images", vec![host], &Owner::Of(kernels))
}

/// The same, with the loss read after every step.
pub fn healthy_with_loss(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        host.copy(COMPUTE, Direction::In, true, shape.part(1));
        host.model(&shape.kernels(99, GEMM));
        host.item();
    });
    shape.recorded(Cause::Healthy, " read", vec![host], &Owner::Of(kernels))
}

/// Collectives that run under the backward pass.
pub fn healthy_collectives(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        let kernels = shape.kernels(98, GEMM);
        let (there, back) = kernels.split_at(kernels.len() / 2);
        host.function("forward", there);
        host.order(COLLECTIVES, COMPUTE);
        host.launch(COLLECTIVES, ALL_REDUCE, shape.part(30));
        host.function("backward", back);
        host.order(COMPUTE, COLLECTIVES);
    });
    let busy = |what: &What| kernels(what) && !is_all_reduce(what);
    shape.recorded(Cause::Healthy, " hidden collectives", vec![host], &Owner::Of(busy))
}

/// A healthy step launched by one call.
pub fn healthy_graph(shape: Shape, whole: bool) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        host.copy(COMPUTE, Direction::In, true, shape.part(1));
        let graph = shape.kernels(97, GEMM);
        host.within(What::Function("train_step"), |host| host.launch_graph(&graph, whole));
    });
    let variant = if whole { " whole graph" } else { " graph" };
    shape.recorded(Cause::Healthy, variant, vec![host], &Owner::Of(kernels))
}

/// Many very short kernels in a graph: nothing to gain from faster launches.
pub fn small_kernels(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        let graph = shape.kernels(100, GEMM);
        host.within(What::Function("train_step"), |host| host.launch_graph(&graph, false));
    });
    shape.recorded(Cause::SmallKernels, "", vec![host], &Owner::Of(kernels))
}

/// The loader is too slow. With `read`, the host waits for the device before it requests the next batch.
pub fn input(shape: Shape, read: bool) -> Scene {
    let mut host = shape.host(4_000);
    let (wait, work) = if read { (65, 30) } else { (80, 40) };
    host.op_ns /= 3;
    host.launch_ns /= 3;
    shape.each_step(&mut host, |host, _| {
        host.wait_for_batch(shape.part(wait));
        host.copy(COMPUTE, Direction::In, true, shape.part(1));
        host.model(&shape.kernels(work, GEMM));
        if read {
            host.item();
        }
    });
    let waits = |what: &What| *what == What::WaitForBatch;
    let variant = if read { " read" } else { "" };
    shape.recorded(Cause::Input, variant, vec![host], &Owner::Of(waits))
}

/// Kernels that take a third of the time needed to launch them.
pub fn launching(shape: Shape) -> Scene {
    let mut host = Host::new(4_000);
    host.launch_ns = shape.step / shape.kernels as Ns / 2;
    host.op_ns = host.launch_ns;
    shape.each_step(&mut host, |host, _| host.model(&shape.kernels(30, GEMM)));
    shape.recorded(Cause::Launching, "", vec![host], &Owner::Idle)
}

/// The same with products in single precision: shorter kernels would only wait longer for their launches.
pub fn launching_single_precision(shape: Shape) -> Scene {
    let mut host = Host::new(4_000);
    host.launch_ns = shape.step / shape.kernels as Ns / 2;
    host.op_ns = host.launch_ns;
    shape.each_step(&mut host, |host, _| host.model(&shape.kernels(30, SGEMM)));
    shape.recorded(Cause::Launching, " single precision", vec![host], &Owner::Idle)
}

/// Metrics are computed in Python after each step, after the loss was `read` or without waiting for it.
pub fn python(shape: Shape, read: bool) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        host.model(&shape.kernels(35, GEMM));
        if read {
            host.item();
        }
        host.python("update_metrics", shape.part(if read { 60 } else { 67 }));
    });
    shape.recorded(Cause::Python, if read { " read" } else { "" }, vec![host], &Owner::Idle)
}

/// The batch is copied from unpinned memory, in four parts.
pub fn pageable_copies(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        for _ in 0..4 {
            host.within(What::Op("aten::copy_"), |host| {
                host.copy(COMPUTE, Direction::In, false, shape.part(11));
            });
        }
        host.model(&shape.kernels(55, GEMM));
    });
    shape.recorded(Cause::PageableCopies, "", vec![host], &Owner::Of(copies))
}

/// Large copies from pinned memory, in the compute queue.
pub fn pinned_copies(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        for _ in 0..3 {
            host.within(What::Op("aten::copy_"), |host| {
                host.copy(COMPUTE, Direction::In, true, shape.part(15));
            });
        }
        host.model(&shape.kernels(55, GEMM));
    });
    shape.recorded(Cause::PinnedCopies, "", vec![host], &Owner::Of(copies))
}

/// Copies from pinned memory and nothing else: no kernel is missing.
pub fn copies_alone(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        for _ in 0..3 {
            host.within(What::Op("aten::copy_"), |host| {
                host.copy(COMPUTE, Direction::In, true, shape.part(32));
            });
        }
    });
    shape.recorded(Cause::PinnedCopies, " alone", vec![host], &Owner::Of(copies))
}

/// The first launches load code, so that the first step is twice as long; nothing is compiled.
pub fn loading(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    let usual = host.launch_ns;
    shape.each_step(&mut host, |host, number| {
        host.launch_ns = if number == 0 { 2 * shape.step / shape.kernels as Ns } else { usual };
        host.model(&shape.kernels(98, GEMM));
    });
    shape.recorded(Cause::Healthy, " loading", vec![host], &Owner::Open)
}

/// After each of four parts of a step, the host waits for its result, reading it or not, and only then prepares
/// what follows, which would have been hidden under the previous part.
pub fn waiting(shape: Shape, read: bool) -> Scene {
    const PARTS: [&str; 4] = ["first", "second", "third", "fourth"];
    let mut host = shape.host(4_000);
    (host.op_ns, host.launch_ns) = (0, host.launch_ns.min(3_000));
    shape.each_step(&mut host, |host, _| {
        let kernels = shape.kernels(60, GEMM);
        for (name, part) in PARTS.into_iter().zip(kernels.chunks(kernels.len().div_ceil(PARTS.len()))) {
            host.within(What::Function("prepare"), |host| {
                host.within(What::Op("aten::where"), |host| host.pause(shape.part(10)));
            });
            host.function(name, part);
            match read {
                true => host.item(),
                false => host.wait(Call::StreamSynchronize, Some(COMPUTE)),
            }
        }
    });
    shape.recorded(Cause::Waiting, if read { " read" } else { "" }, vec![host], &Owner::Idle)
}

/// Memory is allocated before and freed after the work of every step.
pub fn allocation(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    host.op_ns /= 4;
    host.launch_ns /= 4;
    shape.each_step(&mut host, |host, _| {
        host.within(What::Op("aten::empty"), |host| host.memory(Call::Malloc, shape.part(15)));
        host.model(&shape.kernels(60, GEMM));
        host.memory(Call::Free, shape.part(20));
    });
    shape.recorded(Cause::Allocation, "", vec![host], &Owner::Idle)
}

/// Gradients are summed over ranks after the backward pass, and the optimizer waits for them.
pub fn communication(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        host.model(&shape.kernels(60, GEMM));
        host.order(COLLECTIVES, COMPUTE);
        host.launch(COLLECTIVES, ALL_REDUCE, shape.part(38));
        host.order(COMPUTE, COLLECTIVES);
    });
    shape.recorded(Cause::Communication, "", vec![host], &Owner::Of(is_all_reduce))
}

/// Products in single precision on ordinary units.
pub fn single_precision(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| host.model(&shape.kernels(100, SGEMM)));
    let products = |what: &What| *what == What::Kernel(SGEMM);
    shape.recorded(Cause::SinglePrecision, "", vec![host], &Owner::Of(products))
}

/// Two queues with small grids, each of which starts where the other ends, because of how the host launches.
pub fn serial_streams(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| {
        for (stream, name, kernel) in [(COMPUTE, "left", LEFT), (13, "right", RIGHT)] {
            host.within(What::Function(name), |host| host.launch(stream, kernel, shape.part(48)));
            host.wait(Call::StreamSynchronize, Some(stream));
        }
    });
    let right = |what: &What| *what == What::Kernel(RIGHT);
    shape.recorded(Cause::SerialStreams, "", vec![host], &Owner::Of(right))
}

/// Every tenth step writes a checkpoint, which takes as long as twelve steps.
pub fn variance(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, number| {
        host.model(&shape.kernels(98, GEMM));
        if number % 5 == 4 {
            host.item();
            host.python("save_checkpoint", 12 * shape.step);
        }
    });
    shape.recorded(Cause::Variance, "", vec![host], &Owner::Open)
}

/// The first step compiles for much longer than all others take together.
pub fn startup(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, number| {
        if number == 0 {
            host.compile(2 * shape.steps * shape.step);
        }
        host.model(&shape.kernels(98, GEMM));
    });
    shape.recorded(Cause::Startup, "", vec![host], &Owner::Open)
}

/// Requests of equal length that arrive at any time.
pub fn requests(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    for number in 0..shape.steps {
        host.request(number, |host| {
            host.copy(COMPUTE, Direction::In, true, shape.part(3));
            host.model(&shape.kernels(90, GEMM));
            host.item();
        });
        host.pause(shape.step * (1 + number * number % 7));
    }
    shape.recorded(Cause::Requests, "", vec![host], &Owner::Open)
}
