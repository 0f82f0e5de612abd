//! The simulator: one process that calls a device's runtime, and the device's queues.
//!
//! The host has one clock, whichever of its threads runs. Device work starts when its call was made, the queue
//! is free and everything it waits for is done; the queue is then busy until it ends. The runtime accepts
//! [`QUEUE`] pieces ahead; a call that finds it full blocks. All times have a little jitter, always the same.

use std::collections::{BTreeMap, VecDeque};

use super::{Call, Direction, Event, Kernel, Ns, Place, Run, What};

/// From the end of a launching call to the start of its work on an idle queue.
const LATENCY: Ns = 4_000;
/// Between two pieces of work that follow each other in a queue.
const BETWEEN: Ns = 700;
/// From the end of device work until a waiting host continues.
const WAKE: Ns = 6_000;
/// Number of pieces of work that the runtime accepts ahead.
const QUEUE: usize = 1_024;
/// The queue that frameworks compute on.
pub const COMPUTE: i64 = 7;
/// The queue of collectives.
pub const COLLECTIVES: i64 = 20;
/// Cost of a call that is not a launch.
const CALL: Ns = 1_500;

/// A process under construction.
#[derive(Debug)]
pub struct Host {
    /// What it has done so far.
    pub run: Run,
    /// The host's clock.
    pub now: Ns,
    /// The current thread.
    pub thread: i64,
    /// The device that calls go to.
    pub device: i64,
    /// How long a launching call takes.
    pub launch_ns: Ns,
    /// How long a framework prepares an op before the launch.
    pub op_ns: Ns,
    free: BTreeMap<(i64, i64), Ns>,
    queued: VecDeque<Ns>,
    last_id: i64,
    jitter: u64,
    finished: Vec<Ns>,
    requests: Vec<Ns>,
}

impl Host {
    /// A process that has done nothing yet.
    pub fn new(pid: i64) -> Self {
        Host {
            run: Run { pid, events: Vec::new() },
            now: 2_000_000,
            thread: 0,
            device: 0,
            launch_ns: 4_500,
            op_ns: 6_000,
            free: BTreeMap::new(),
            queued: VecDeque::new(),
            last_id: 100,
            jitter: 0x9e37_79b9 ^ pid as u64,
            finished: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// A time within two percent of `time`.
    fn about(&mut self, time: Ns) -> Ns {
        self.jitter =
            self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (self.jitter >> 33) as i64 % 401 - 200;
        (time + time / 10_000 * part).max(0)
    }

    fn add(&mut self, place: Place, what: What, start: Ns, end: Ns, id: i64) {
        self.run.events.push(Event { place, what, start, end, id });
    }

    /// Spends host time.
    fn spend(&mut self, what: Option<What>, time: Ns, id: i64) {
        let start = self.now;
        self.now += self.about(time);
        if let Some(what) = what {
            self.add(Place::Thread(self.thread), what, start, self.now, id);
        }
    }

    /// Runs `inside` within `what`, which lasts as long.
    pub fn within(&mut self, what: What, inside: impl FnOnce(&mut Host)) {
        let (thread, start) = (self.thread, self.now);
        inside(self);
        self.add(Place::Thread(thread), what, start, self.now, 0);
    }

    /// An iteration of the loop.
    pub fn step(&mut self, number: i64, inside: impl FnOnce(&mut Host)) {
        let start = self.now;
        inside(self);
        self.marked_step(number, start);
    }

    /// An iteration that started at `start` and is already over.
    pub(crate) fn marked_step(&mut self, number: i64, start: Ns) {
        self.add(Place::Thread(self.thread), What::Step(number), start, self.now, 0);
        self.finished.push(self.device_end());
        self.now += 2_000;
    }

    /// A request, from its arrival to its answer.
    pub fn request(&mut self, number: i64, inside: impl FnOnce(&mut Host)) {
        let start = self.now;
        self.within(What::Request(number), inside);
        self.requests.push(self.now - start);
    }

    /// The usual time from one step's end to the next one's; of a request, if there are any.
    pub(crate) fn usual_step(&self) -> Ns {
        let mut lengths: Vec<Ns> = match self.requests.is_empty() {
            true => self.finished.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            false => self.requests.clone(),
        };
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }

    /// When all work launched so far is done.
    pub(crate) fn device_end(&self) -> Ns {
        self.free.values().copied().max().unwrap_or(0)
    }

    /// Time in which nothing is recorded.
    pub fn pause(&mut self, time: Ns) {
        self.spend(None, time, 0);
    }

    /// Python in the training loop.
    pub fn python(&mut self, function: &'static str, time: Ns) {
        self.spend(Some(What::Python(function)), time, 0);
    }

    /// Waits for the next batch.
    pub(crate) fn wait_for_batch(&mut self, time: Ns) {
        self.spend(Some(What::WaitForBatch), time, 0);
    }

    /// A compiler works.
    pub fn compile(&mut self, time: Ns) {
        self.spend(Some(What::Compile), time, 0);
    }

    fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// Adds work to a queue for a call that ended just now: when it runs.
    fn enqueue(&mut self, stream: i64, time: Ns) -> (Ns, Ns) {
        let time = self.about(time).max(500);
        let free = self.free.entry((self.device, stream)).or_insert(0);
        let start = (self.now + LATENCY).max(*free + BETWEEN);
        *free = start + time;
        self.queued.push_back(start);
        (start, start + time)
    }

    /// Blocks while the runtime's queue is full.
    fn wait_for_room(&mut self) {
        while self.queued.len() >= QUEUE {
            let started = self.queued.pop_front().unwrap_or(0);
            self.now = self.now.max(started);
        }
    }

    /// A kernel, launched from inside its op.
    pub fn launch(&mut self, stream: i64, kernel: Kernel, time: Ns) {
        self.within(What::Op(kernel.op), |host| {
            host.pause(host.op_ns);
            host.launch_alone(stream, kernel, time);
        });
    }

    /// A kernel whose launch has no enclosing event.
    pub(crate) fn launch_alone(&mut self, stream: i64, kernel: Kernel, time: Ns) {
        let (start, id) = (self.now, self.next_id());
        self.wait_for_room();
        self.now += self.about(self.launch_ns);
        self.add(Place::Thread(self.thread), What::Call(Call::Launch), start, self.now, id);
        let (start, end) = self.enqueue(stream, time);
        let place = Place::Stream { device: self.device, stream };
        self.add(place, What::Kernel(kernel), start, end, id);
    }

    /// The kernels of a graph, launched by one call.
    pub(crate) fn launch_graph(&mut self, kernels: &[(Kernel, Ns)], whole: bool) {
        let id = self.next_id();
        self.wait_for_room();
        self.spend(Some(What::Call(Call::GraphLaunch)), 12_000, id);
        let place = Place::Stream { device: self.device, stream: COMPUTE };
        let mut all: Option<(Ns, Ns)> = None;
        for (node, &(kernel, time)) in (1..).zip(kernels) {
            let (start, end) = self.enqueue(COMPUTE, time);
            all = Some((all.map_or(start, |(first, _)| first), end));
            if !whole {
                self.add(place, What::Node(kernel, node), start, end, id);
            }
        }
        if let Some((start, end)) = all.filter(|_| whole) {
            self.add(place, What::Graph, start, end, id);
        }
    }

    /// A copy with this duration. A copy with unpinned memory blocks until it is done.
    pub fn copy(&mut self, stream: i64, direction: Direction, pinned: bool, time: Ns) {
        let (start, id) = (self.now, self.next_id());
        self.wait_for_room();
        self.now += self.about(CALL + 3_000);
        let (from, to) = self.enqueue(stream, time);
        if !pinned {
            self.now = self.now.max(to + WAKE);
        }
        self.add(Place::Thread(self.thread), What::Call(Call::CopyAsync(direction)), start, self.now, id);
        // Twelve bytes per nanosecond over the bus from pinned memory, a third of it otherwise.
        let bytes = (to - from) * if pinned { 12 } else { 4 };
        let place = Place::Stream { device: self.device, stream };
        self.add(place, What::Copy { direction, pinned, bytes }, from, to, id);
    }

    /// Reads one number from the device, like `.item()`.
    pub fn item(&mut self) {
        self.within(What::Op("aten::item"), |host| {
            host.pause(2_000);
            host.copy(COMPUTE, Direction::Out, false, 1_200);
            host.wait(Call::StreamSynchronize, Some(COMPUTE));
        });
    }

    /// Waits for a queue, or for the device.
    pub fn wait(&mut self, call: Call, stream: Option<i64>) {
        let (start, id) = (self.now, self.next_id());
        let until = match stream {
            Some(stream) => self.free.get(&(self.device, stream)).copied().unwrap_or(0),
            None => self.device_end(),
        };
        self.now = (self.now + CALL).max(until + WAKE);
        self.add(Place::Thread(self.thread), What::Call(call), start, self.now, id);
    }

    /// Allocates device memory, or frees it, which first waits for the device.
    pub fn memory(&mut self, call: Call, time: Ns) {
        let (start, id) = (self.now, self.next_id());
        if call == Call::Free {
            self.now = self.now.max(self.device_end());
        }
        self.now += self.about(time);
        self.add(Place::Thread(self.thread), What::Call(call), start, self.now, id);
    }

    /// Makes one queue wait for everything currently in another.
    pub fn order(&mut self, stream: i64, after: i64) {
        for call in [Call::EventRecord, Call::StreamWaitEvent] {
            let id = self.next_id();
            self.spend(Some(What::Call(call)), CALL, id);
        }
        let other = self.free.get(&(self.device, after)).copied().unwrap_or(0);
        self.busy_until(stream, other);
    }

    /// Another process uses the device until then.
    pub fn busy_until(&mut self, stream: i64, until: Ns) {
        let own = self.free.entry((self.device, stream)).or_insert(0);
        *own = until.max(*own);
    }

    /// When a kernel that is launched now could start.
    pub fn ready(&self, stream: i64) -> Ns {
        let free = self.free.get(&(self.device, stream)).copied().unwrap_or(0);
        (self.now + self.op_ns + self.launch_ns + LATENCY).max(free + BETWEEN)
    }

    /// All kernels of a step: the forward pass from the loop's thread, the backward pass from another, as in
    /// PyTorch.
    pub fn model(&mut self, kernels: &[(Kernel, Ns)]) {
        self.function("train_step", kernels);
    }

    /// The same under another name, for a part of a step.
    pub fn function(&mut self, name: &'static str, kernels: &[(Kernel, Ns)]) {
        self.within(What::Function(name), |host| {
            let (there, back) = kernels.split_at(kernels.len().div_ceil(2));
            there.iter().for_each(|&(kernel, time)| host.launch(COMPUTE, kernel, time));
            host.thread += 1;
            back.iter().for_each(|&(kernel, time)| host.launch(COMPUTE, kernel, time));
            host.thread -= 1;
        });
    }

    /// Ends the recording: the profiler waits for the device.
    pub fn end(mut self) -> Run {
        self.wait(Call::DeviceSynchronize, None);
        self.run
    }
}

/// A collective that each process joins as soon as it is ready, and that ends for all at the same time, `time`
/// after the last has joined.
pub fn all_reduce(hosts: &mut [Host], kernel: Kernel, time: Ns) {
    let last = hosts.iter().map(|host| host.ready(COLLECTIVES)).max().unwrap_or(0);
    for host in hosts {
        let own = last + time - host.ready(COLLECTIVES);
        host.launch(COLLECTIVES, kernel, own);
    }
}
