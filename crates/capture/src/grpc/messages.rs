//! The few messages of `tensorflow.ProfilerService` that a client needs, hand-written: their field numbers have
//! not changed since TensorFlow 2.2, and the profile itself stays bytes.

use prost::Message;
use prost::bytes::Bytes;

/// `tensorflow.ProfileRequest`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileRequest {
    /// Servers use the one in the options; kept equal for those that do not.
    #[prost(uint64, tag = "1")]
    pub(super) duration_ms: u64,
    #[prost(uint64, tag = "2")]
    pub(super) max_events: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) opts: Option<ProfileOptions>,
    /// Where a server that does not send the profile writes it, on its own disk.
    #[prost(string, tag = "5")]
    pub(super) repository_root: String,
    #[prost(string, tag = "6")]
    pub(super) session_id: String,
    #[prost(string, tag = "7")]
    pub(super) host_name: String,
    /// Send the profile in the response.
    #[prost(bool, tag = "9")]
    pub(super) emit_xspace: bool,
}

/// `tensorflow.ProfileOptions`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileOptions {
    #[prost(bool, tag = "1")]
    pub(super) include_dataset_ops: bool,
    #[prost(uint32, tag = "2")]
    pub(super) host_tracer_level: u32,
    #[prost(uint32, tag = "3")]
    pub(super) device_tracer_level: u32,
    #[prost(uint32, tag = "4")]
    pub(super) python_tracer_level: u32,
    /// At 1, the levels above apply as given; at 0, the server uses its own.
    #[prost(uint32, tag = "5")]
    pub(super) version: u32,
    #[prost(bool, tag = "7")]
    pub(super) enable_hlo_proto: bool,
    /// Start time, so that several hosts record the same window; 0 starts at once.
    #[prost(uint64, tag = "8")]
    pub(super) start_timestamp_ns: u64,
    #[prost(uint64, tag = "9")]
    pub(super) duration_ms: u64,
    /// Report an error if the profiler could not start, instead of sending an empty profile.
    #[prost(bool, tag = "13")]
    pub(super) raise_error_on_start_failure: bool,
}

/// `tensorflow.ProfileResponse`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileResponse {
    #[prost(bool, tag = "7")]
    pub(super) empty_trace: bool,
    /// An `XSpace`; on the wire, a message and bytes are the same.
    #[prost(bytes = "bytes", optional, tag = "8")]
    pub(super) xspace: Option<Bytes>,
}

/// A message without fields, for a call of which only the status matters.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Nothing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_bytes_that_servers_read() {
        let request = ProfileRequest {
            duration_ms: 500,
            max_events: 1,
            opts: Some(ProfileOptions {
                include_dataset_ops: true,
                host_tracer_level: 2,
                device_tracer_level: 1,
                python_tracer_level: 0,
                version: 1,
                enable_hlo_proto: true,
                start_timestamp_ns: 7,
                duration_ms: 500,
                raise_error_on_start_failure: true,
            }),
            repository_root: "r".to_owned(),
            session_id: "s".to_owned(),
            host_name: "h".to_owned(),
            emit_xspace: true,
        };
        let options = [8, 1, 16, 2, 24, 1, 40, 1, 56, 1, 64, 7, 72, 0xf4, 3, 104, 1];
        let mut expected = vec![8, 0xf4, 3, 16, 1, 0x22, options.len() as u8];
        expected.extend_from_slice(&options);
        expected.extend_from_slice(&[0x2a, 1, b'r', 0x32, 1, b's', 0x3a, 1, b'h', 72, 1]);
        assert_eq!(request.encode_to_vec(), expected);
    }

    #[test]
    fn a_profile_in_a_response_is_kept_as_it_came() {
        let wire = [0x38, 1, 0x42, 3, 0x0a, 1, 0];
        let response = ProfileResponse::decode(&wire[..]);
        let xspace = Bytes::from_static(&[0x0a, 1, 0]);
        assert_eq!(response, Ok(ProfileResponse { empty_trace: true, xspace: Some(xspace) }));
        assert_eq!(ProfileResponse::decode(&[][..]), Ok(ProfileResponse::default()));
    }
}
