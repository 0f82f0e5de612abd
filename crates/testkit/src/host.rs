//! Logs of Python programs (`stepscope.host.v1`), as `stepscope run` writes them beside profiles.

/// The nanoseconds since 1970 at which the log starts.
pub const START_NS: i64 = 1_700_000_000_000_000_000;

/// A log of four steps of 10 ms, of which `make_batch` takes the first 8 ms; the loop runs on thread 7.
pub fn log() -> String {
    let samples: Vec<String> =
        (0..20).map(|at| format!("[{},2000000,{}]", (at + 1) * 2_000_000, u8::from(at % 5 == 4))).collect();
    let site = |line: u32, first: u32, function: &str, user: bool| {
        format!(
            "{{\"file\":\"train.py\",\"line\":{line},\"first_line\":{first},\"function\":\"{function}\",\"user\":{user},\
             \"generator\":false}}"
        )
    };
    format!(
        "{{\"schema\":\"stepscope.host.v1\",\"pid\":7,\"python\":\"3.11.7\",\"clock\":[[{START_NS},5],[{START_NS},6]],\
         \"loop_thread\":7,\"sites\":[{},{},{}],\"stacks\":[[0,1],[2]],\
         \"threads\":[{{\"id\":7,\"name\":\"MainThread\",\"samples\":[{}]}},\
         {{\"id\":null,\"name\":\"\",\"samples\":[[2000000,2000000,0]]}}],\
         \"collections\":[[1000000,500000,2]],\"opens\":[[3000000,7,\"/data/a.bin\",true]],\
         \"children\":[[4000000,7,\"/bin/true\"]],\"lost\":0,\"versions\":{{\"torch\":\"2.9\"}},\
         \"window\":{{\"first_step\":12,\"steps\":4}},\
         \"steps\":{{\"source\":\"update\",\"loop\":{{\"file\":\"train.py\",\"function\":\"main\",\"line\":20}},\
         \"times\":[0,10000000,20000000,30000000,40000000]}}}}",
        site(20, 18, "main", true),
        site(43, 41, "make_batch", true),
        site(21, 18, "main", true),
        samples.join(",")
    )
}

/// The profile of the same process, as PyTorch writes it: one op of 2 ms at the end of each step, on a clock that runs
/// `late_us` behind.
pub fn profile(late_us: i64) -> String {
    let start = START_NS / 1_000 + late_us;
    let mark = format!(
        "{{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"stepscope/clock#100000\",\"pid\":7,\"tid\":7,\"ts\":{},\"dur\":5}}",
        start + 100
    );
    let ops = (0..4).map(|step| {
        let at = start + step * 10_000 + 8_000;
        format!("{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":7,\"tid\":7,\"ts\":{at},\"dur\":2000}}")
    });
    let events: Vec<String> = std::iter::once(mark).chain(ops).collect();
    format!("{{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[{}]}}", events.join(","))
}
