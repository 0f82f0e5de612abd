//! AMD's GPUs, through the files that the `amdgpu` driver shows below /sys/class/drm.

use std::path::{Path, PathBuf};

use super::Gpu;
use crate::sample::file::{number, read_once};

/// AMD's number among the vendors of PCI devices.
const VENDOR: &str = "0x1002";

/// One card.
pub(super) struct Card {
    device: PathBuf,
    /// The folder of its sensors.
    sensors: Option<PathBuf>,
    name: Option<String>,
}

/// All of AMD's cards, by their numbers.
pub(super) fn cards(sys: &Path) -> Vec<Card> {
    let Ok(entries) = std::fs::read_dir(sys.join("class/drm")) else { return Vec::new() };
    let mut found: Vec<(u32, Card)> = entries
        .flatten()
        .filter_map(|entry| {
            // `card0` is a card, `card0-DP-1` one of its sockets.
            let card = entry.file_name().to_str()?.strip_prefix("card")?.parse().ok()?;
            Some((card, Card::open(entry.path().join("device"))?))
        })
        .collect();
    found.sort_by_key(|(card, _)| *card);
    found.into_iter().map(|(_, card)| card).collect()
}

impl Card {
    fn open(device: PathBuf) -> Option<Self> {
        let vendor = read_once(&device.join("vendor"))?;
        // Old cards run by another driver have none of the files.
        if vendor.trim() != VENDOR || !device.join("gpu_busy_percent").exists() {
            return None;
        }
        let mut folders: Vec<PathBuf> = std::fs::read_dir(device.join("hwmon"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|it| it.path())
            .collect();
        folders.sort();
        let name = read_once(&device.join("product_name")).map(|name| name.trim().to_owned());
        let name = name.filter(|name| !name.is_empty());
        Some(Card { sensors: folders.into_iter().next(), name, device })
    }

    pub(super) fn read(&self, index: u32) -> Gpu {
        let file = |name: &str| number(&self.device.join(name));
        let sensor = |name: &str| number(&self.sensors.as_ref()?.join(name)).map(|value| value as f64);
        Gpu {
            index,
            name: self.name.clone(),
            busy: file("gpu_busy_percent").map(|percent| percent as f64 / 100.0),
            memory_busy: file("mem_busy_percent").map(|percent| percent as f64 / 100.0),
            memory_used: file("mem_info_vram_used"),
            memory_total: file("mem_info_vram_total"),
            // Microwatts, hertz and thousandths of degrees.
            power: sensor("power1_average").or_else(|| sensor("power1_input")).map(|value| value / 1e6),
            power_limit: sensor("power1_cap").map(|value| value / 1e6),
            clock: sensor("freq1_input").map(|value| value / 1e6),
            memory_clock: sensor("freq2_input").map(|value| value / 1e6),
            temperature: sensor("temp1_input").map(|value| value / 1e3),
            ..Gpu::default()
        }
    }
}
