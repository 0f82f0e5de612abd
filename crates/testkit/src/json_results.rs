//! Small results of tools that write JSON of their own.

/// rocprofv3: a kernel with its launch, a copy, a call and a marker of one process.
pub const ROCPROF: &str = r#"{"rocprofiler-sdk-tool": [{
  "metadata": {"pid": 7, "init_time": 100, "command": ["/usr/bin/python3", "train.py"], "node": {"hostname": "node1"}},
  "agents": [{"id": {"handle": 11}, "type": 1, "name": "CPU"},
    {"id": {"handle": 42}, "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "cu_count": 304,
     "wave_front_size": 64, "max_waves_per_cu": 32, "lds_size_in_kb": 64, "max_engine_clk_fcompute": 2100, "gpu_index": 0}],
  "strings": {"buffer_records": [{"kind": "NONE", "operations": []},
      {"kind": "HIP_RUNTIME_API", "operations": ["hipFree", "hipLaunchKernel"]},
      {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
      {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxRangePush"]}],
    "marker_api": [{"key": 5, "value": "train_step"}]},
  "kernel_symbols": [{"kernel_id": 3, "kernel_name": "_Z1k.kd", "formatted_kernel_name": "k(float*)", "arch_vgpr_count": 32,
     "group_segment_size": 1024}],
  "buffer_records": {
    "kernel_dispatch": [{"kind": 11, "operation": 2, "thread_id": 7, "correlation_id": {"internal": 9, "external": 0},
      "start_timestamp": 5000, "end_timestamp": 9000, "dispatch_info": {"agent_id": {"handle": 42},
      "queue_id": {"handle": 1}, "kernel_id": 3, "workgroup_size": {"x": 256, "y": 1, "z": 1},
      "grid_size": {"x": 1000, "y": 2, "z": 1}}, "stream_id": {"handle": 4}}],
    "memory_copy": [{"kind": 2, "operation": 1, "thread_id": 7, "correlation_id": {"internal": 8},
      "start_timestamp": 2000, "end_timestamp": 3000, "dst_agent_id": {"handle": 42}, "src_agent_id": {"handle": 11},
      "bytes": 4096}],
    "hip_api": [{"kind": 1, "operation": 1, "thread_id": 7, "correlation_id": {"internal": 9}, "start_timestamp": 4000,
      "end_timestamp": 4500}],
    "marker_api": [{"kind": 3, "operation": 0, "thread_id": 7, "correlation_id": {"internal": 5}, "start_timestamp": 1000,
      "end_timestamp": 9500}]}}]}"#;

/// Triton: a request in two pieces, a model inside an ensemble, and a request that never ended.
pub const TRITON: &str = r#"[{"id":1,"model_name":"simple","model_version":1,"timestamps":[{"name":"HTTP_RECV_START","ns":900},
      {"name":"REQUEST_START","ns":1000},{"name":"QUEUE_START","ns":1100}]},
      {"id":1,"timestamps":[{"name":"COMPUTE_START","ns":4100},{"name":"COMPUTE_INPUT_END","ns":4200},
      {"name":"COMPUTE_OUTPUT_START","ns":8200},{"name":"COMPUTE_END","ns":8300},{"name":"REQUEST_END","ns":9000}]},
      {"id":2,"parent_id":1,"model_name":"inner","timestamps":[{"name":"request handler start","ns":2000},
      {"name":"request handler end","ns":3000}]},
      {"id":3,"model_name":"simple","timestamps":[{"name":"REQUEST_START","ns":5000}]}]"#;
