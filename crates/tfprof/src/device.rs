//! The meaning of a device's name. TensorFlow records an op on a GPU on several lanes: the device itself
//! (scheduling), each stream (kernels), and `stream:all` (all streams together).

/// A device, by its name in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub name: String,
    /// True for a device that ops are placed on; its times are those of the host.
    pub canonical: bool,
    /// True for the lane of an accelerator that combines all its streams.
    pub accelerator: bool,
}

impl Device {
    pub fn new(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        Device { canonical: is_canonical(&name), accelerator: name.contains("stream:all"), name }
    }
}

/// `…/device:gpu:0`, `…/gpu:0`, `…/device:cpu:0`, `…/cpu:0`, and nothing behind it.
pub(crate) fn is_canonical(name: &str) -> bool {
    let Some((before, number)) = name.rsplit_once(':') else { return false };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let place = ["/device:gpu", "/gpu", "/device:cpu", "/cpu"];
    digits && place.iter().any(|place| before.ends_with(place)) && !before.contains('\n')
}

pub(crate) fn is_accelerator(name: &str) -> bool {
    name.contains("gpu")
}

pub(crate) fn is_cpu(name: &str) -> bool {
    name.contains("cpu")
}

/// The host of a device: `gpu:3` becomes `cpu:0`.
pub(crate) fn host_of(name: &str) -> String {
    let mut host = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("gpu:") {
        let (before, behind) = rest.split_at(at);
        let behind = &behind[4..];
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        host.push_str(before);
        host.push_str(if digits > 0 { "cpu:0" } else { "gpu:" });
        rest = &behind[digits..];
    }
    host.push_str(rest);
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_told_apart() {
        let gpu = "/job:localhost/replica:0/task:0/device:GPU:0";
        assert!(Device::new(gpu).canonical && Device::new("/device:cpu:0").canonical);
        assert!(Device::new("/gpu:11").canonical);
        for other in ["gpu:0", "/device:gpu:", "/device:gpu:0/stream:1", "/device:tpu:0", "/device:gpu:0 "] {
            assert!(!Device::new(other).canonical, "{other}");
        }
        assert!(Device::new(&format!("{gpu}/stream:all")).accelerator);
        assert_eq!(host_of("/device:gpu:13/x"), "/device:cpu:0/x");
        assert_eq!(host_of("/gpu:/cpu:0"), "/gpu:/cpu:0");
    }
}
