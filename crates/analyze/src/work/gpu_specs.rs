//! Peak specifications of devices by name, for figures that a profile does not contain.
//!
//! Upper bounds: dense, without structured sparsity, at the boost clock; matrix units with 32-bit accumulation
//! if the data sheet distinguishes them. A missing figure is unknown, or the device has no such units. For
//! cards with two devices, the figures are for one device; if one name covers cards with different memories,
//! they are for the most common card.
//!
//! How they were checked: half-precision, 32-bit and memory figures were compared with the vendors' data sheets
//! and architecture papers, as quoted by resellers, reviews and the tables of training libraries, for V100, T4,
//! A2 to A100, L4 to L40S, H100, H200, B100 to B300, RTX A4000 to A6000, RTX Ada, RTX PRO 6000, GeForce 3090,
//! 40 and 50, MI100 to MI355X; rates alone for GeForce 2070 SUPER to 3080 Ti, Quadro and Radeon. Everything
//! else is computed from units × clock and bus × data rate (mostly 64-bit rates of cards), or is from memory
//! and marked `not looked up`.

/// Peak rates of a device, in 10¹² operations per second.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Peaks {
    /// The common name.
    pub name: &'static str,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<u32>,
    /// 64-bit floating point, ordinary units.
    pub fp64: Option<f64>,
    /// 32-bit floating point, ordinary units.
    pub fp32: Option<f64>,
    /// 32-bit floating point with reduced precision, matrix units.
    pub tf32: Option<f64>,
    /// 16-bit floating point, matrix units.
    pub half: Option<f64>,
    /// 8-bit floating point, matrix units.
    pub fp8: Option<f64>,
    /// 8-bit integers, matrix units.
    pub int8: Option<f64>,
    /// Device memory, in 10⁹ bytes per second.
    pub memory: f64,
    /// Words that a name must contain, in capitals.
    words: &'static [&'static str],
}

/// How many times faster the matrix units of most data centre devices are than the ordinary units.
pub(crate) const USUAL_SPEEDUP: f64 = 16.0;

impl Peaks {
    /// How many times faster its 16-bit matrix units are than its ordinary 32-bit units; `None` if it has none.
    pub fn matrix_speedup(&self) -> Option<f64> {
        self.half.map(|half| self.fp32.map_or(USUAL_SPEEDUP, |ordinary| half / ordinary))
    }
}

/// Words that make another device with the same number, unless an entry has them.
const VARIANTS: &[&str] =
    &["TI", "SUPER", "LAPTOP", "MOBILE", "MAX", "MIG", "NVL", "D", "ADA", "XT", "XTX", "GRE", "S"];

/// The specifications of the device with this name; `None` if it is not listed, or if the name is ambiguous.
pub fn peaks_of(name: &str) -> Option<&'static Peaks> {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> =
        upper.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let fits = |peaks: &&Peaks| {
        peaks.words.iter().all(|word| words.contains(word))
            && words.iter().all(|word| !VARIANTS.contains(word) || peaks.words.contains(word))
    };
    let most = DEVICES.iter().filter(fits).map(|peaks| peaks.words.len()).max()?;
    let mut best = DEVICES.iter().filter(fits).filter(|peaks| peaks.words.len() == most);
    best.next().filter(|_| best.next().is_none())
}

/// A known figure.
const fn known(value: f64) -> Option<f64> {
    if value > 0.0 { Some(value) } else { None }
}

/// A row: rates in the order of [`Peaks`], 0 if there is none.
const fn row(
    name: &'static str,
    words: &'static [&'static str],
    multiprocessors: u32,
    rates: [f64; 6],
    memory: f64,
) -> Peaks {
    let [fp64, fp32, tf32, half, fp8, int8] = rates;
    Peaks {
        name,
        multiprocessors: if multiprocessors > 0 { Some(multiprocessors) } else { None },
        fp64: known(fp64),
        fp32: known(fp32),
        tf32: known(tf32),
        half: known(half),
        fp8: known(fp8),
        int8: known(int8),
        memory,
        words,
    }
}

/// All known devices.
#[rustfmt::skip]
pub(crate) const DEVICES: &[Peaks] = &[
    // name, words, multiprocessors, [fp64, fp32, tf32, half, fp8, int8], memory
    row("P100 SXM2", &["P100", "SXM2"], 56, [5.3, 10.6, 0.0, 0.0, 0.0, 0.0], 732.0), // not looked up
    row("P100 PCIe", &["P100", "PCIE", "16GB"], 56, [4.7, 9.3, 0.0, 0.0, 0.0, 0.0], 732.0), // not looked up
    row("V100 SXM2", &["V100", "SXM2"], 80, [7.8, 15.7, 0.0, 125.0, 0.0, 0.0], 900.0),
    row("V100 SXM3", &["V100", "SXM3"], 80, [8.1, 16.3, 0.0, 130.0, 0.0, 0.0], 981.0), // not looked up
    row("V100 PCIe", &["V100", "PCIE"], 80, [7.0, 14.0, 0.0, 112.0, 0.0, 0.0], 900.0),
    row("V100S", &["V100S"], 80, [8.2, 16.4, 0.0, 130.0, 0.0, 0.0], 1134.0),
    row("T4", &["T4"], 40, [0.25, 8.1, 0.0, 65.0, 0.0, 130.0], 320.0),
    row("A2", &["A2"], 10, [0.07, 4.5, 9.0, 18.0, 0.0, 36.0], 200.0),
    row("A10", &["A10"], 72, [0.49, 31.2, 62.5, 125.0, 0.0, 250.0], 600.0),
    row("A10G", &["A10G"], 80, [0.55, 35.0, 35.0, 70.0, 0.0, 140.0], 600.0),
    row("A30", &["A30"], 56, [5.2, 10.3, 82.0, 165.0, 0.0, 330.0], 933.0),
    row("A40", &["A40"], 84, [0.58, 37.4, 74.8, 149.7, 0.0, 299.3], 696.0),
    row("A100 40GB", &["A100", "40GB"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 1555.0),
    row("A100 SXM 80GB", &["A100", "80GB", "SXM4"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 2039.0),
    row("A100 SXM 80GB", &["A100", "80GB", "SXM"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 2039.0),
    row("A100 PCIe 80GB", &["A100", "80GB", "PCIE"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 1935.0),
    row("A800 SXM 80GB", &["A800", "80GB", "SXM4"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 2039.0),
    row("A800 PCIe 80GB", &["A800", "80GB", "PCIE"], 108, [9.7, 19.5, 156.0, 312.0, 0.0, 624.0], 1935.0), // memory not looked up
    row("L4", &["L4"], 58, [0.47, 30.3, 60.0, 121.0, 242.5, 242.5], 300.0),
    row("L40", &["L40"], 142, [1.4, 90.5, 90.5, 181.0, 362.0, 362.0], 864.0),
    row("L40S", &["L40S"], 142, [1.4, 91.6, 183.0, 362.0, 733.0, 733.0], 864.0),
    row("RTX 6000 Ada", &["RTX", "6000", "ADA"], 142, [1.4, 91.1, 182.1, 364.2, 728.5, 728.5], 960.0),
    row("RTX 5000 Ada", &["RTX", "5000", "ADA"], 100, [1.02, 65.3, 130.6, 261.1, 522.2, 522.2], 576.0), // memory not looked up
    row("H100 SXM", &["H100", "HBM3"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 3350.0),
    row("H100 SXM", &["H100", "SXM5"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 3350.0),
    row("H100 PCIe", &["H100", "PCIE"], 114, [25.6, 51.2, 378.0, 756.0, 1513.0, 1513.0], 2039.0),
    row("H100 NVL", &["H100", "NVL"], 132, [30.0, 60.0, 417.5, 835.5, 1670.5, 1670.5], 3938.0),
    row("H200", &["H200"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 4800.0),
    row("H200 NVL", &["H200", "NVL"], 132, [30.0, 60.0, 417.5, 835.5, 1670.5, 1670.5], 4800.0),
    row("H20", &["H20"], 78, [1.0, 44.0, 74.0, 148.0, 296.0, 296.0], 4000.0), // not looked up but for half
    row("GH200 96GB", &["GH200", "480GB"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 4000.0), // memory not looked up
    row("GH200 96GB", &["GH200", "120GB"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 4000.0), // memory not looked up
    row("GH200 144GB", &["GH200", "144G"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 4900.0), // memory not looked up
    row("GH200 144GB", &["GH200", "144GB"], 132, [33.5, 66.9, 494.7, 989.4, 1978.9, 1978.9], 4900.0), // memory not looked up
    row("B100", &["B100"], 0, [30.0, 60.0, 900.0, 1750.0, 3500.0, 3500.0], 8000.0),
    row("B200", &["B200"], 148, [37.0, 75.0, 1125.0, 2250.0, 4500.0, 4500.0], 8000.0),
    row("GB200", &["GB200"], 152, [40.0, 80.0, 1250.0, 2500.0, 5000.0, 5000.0], 8000.0),
    row("B300", &["B300"], 0, [1.25, 75.0, 1125.0, 2250.0, 4500.0, 0.0], 8000.0),
    row("GB300", &["GB300"], 0, [0.0, 0.0, 0.0, 2500.0, 5000.0, 0.0], 8000.0),
    row("Jetson AGX Orin", &["AGX", "ORIN"], 16, [0.0, 5.3, 0.0, 42.5, 0.0, 85.0], 204.8), // not looked up
    row("GTX 1660 SUPER", &["GTX", "1660", "SUPER"], 22, [0.16, 5.0, 0.0, 0.0, 0.0, 0.0], 336.0),
    row("GTX 1660 Ti", &["GTX", "1660", "TI"], 24, [0.17, 5.4, 0.0, 0.0, 0.0, 0.0], 288.0),
    row("GTX 1650", &["GTX", "1650"], 14, [0.09, 3.0, 0.0, 0.0, 0.0, 0.0], 128.0),
    row("RTX 2060", &["RTX", "2060"], 30, [0.2, 6.5, 0.0, 25.8, 0.0, 103.0], 336.0),
    row("RTX 2060 SUPER", &["RTX", "2060", "SUPER"], 34, [0.22, 7.2, 0.0, 28.7, 0.0, 114.9], 448.0),
    row("RTX 2070", &["RTX", "2070"], 36, [0.25, 7.9, 0.0, 31.5, 0.0, 126.0], 448.0),
    row("RTX 2070 SUPER", &["RTX", "2070", "SUPER"], 40, [0.28, 9.1, 0.0, 36.3, 0.0, 145.0], 448.0),
    row("RTX 2080", &["RTX", "2080"], 46, [0.33, 10.6, 0.0, 42.4, 0.0, 169.6], 448.0),
    row("RTX 2080 SUPER", &["RTX", "2080", "SUPER"], 48, [0.35, 11.2, 0.0, 44.6, 0.0, 178.4], 496.0),
    row("RTX 2080 Ti", &["RTX", "2080", "TI"], 68, [0.44, 14.2, 0.0, 56.9, 0.0, 227.7], 616.0),
    row("TITAN RTX", &["TITAN", "RTX"], 72, [0.51, 16.3, 0.0, 130.5, 0.0, 261.0], 672.0),
    row("Quadro RTX 5000", &["QUADRO", "RTX", "5000"], 48, [0.35, 11.2, 0.0, 89.2, 0.0, 178.4], 448.0),
    row("Quadro RTX 6000", &["QUADRO", "RTX", "6000"], 72, [0.51, 16.3, 0.0, 130.5, 0.0, 261.0], 672.0),
    row("Quadro RTX 8000", &["QUADRO", "RTX", "8000"], 72, [0.51, 16.3, 0.0, 130.5, 0.0, 261.0], 672.0),
    row("RTX 3060", &["RTX", "3060"], 28, [0.2, 12.7, 12.7, 25.5, 0.0, 102.0], 360.0),
    row("RTX 3060 Ti", &["RTX", "3060", "TI"], 38, [0.25, 16.2, 16.2, 32.4, 0.0, 129.6], 448.0),
    row("RTX 3070", &["RTX", "3070"], 46, [0.32, 20.3, 20.3, 40.6, 0.0, 162.6], 448.0),
    row("RTX 3070 Ti", &["RTX", "3070", "TI"], 48, [0.34, 21.7, 21.7, 43.5, 0.0, 174.0], 608.0),
    row("RTX 3080", &["RTX", "3080"], 68, [0.46, 29.8, 29.8, 59.5, 0.0, 238.0], 760.0),
    row("RTX 3080 Ti", &["RTX", "3080", "TI"], 80, [0.53, 34.1, 34.1, 68.2, 0.0, 272.8], 912.0),
    row("RTX 3090", &["RTX", "3090"], 82, [0.56, 35.6, 35.6, 71.0, 0.0, 284.0], 936.0),
    row("RTX 3090 Ti", &["RTX", "3090", "TI"], 84, [0.63, 40.0, 40.0, 80.0, 0.0, 320.0], 1008.0),
    row("RTX A4000", &["RTX", "A4000"], 48, [0.3, 19.2, 38.3, 76.7, 0.0, 153.4], 448.0),
    row("RTX A4500", &["RTX", "A4500"], 56, [0.37, 23.7, 47.3, 94.6, 0.0, 189.2], 640.0),
    row("RTX A5000", &["RTX", "A5000"], 64, [0.43, 27.8, 55.6, 111.1, 0.0, 222.2], 768.0),
    row("RTX A6000", &["RTX", "A6000"], 84, [0.6, 38.7, 77.4, 154.8, 0.0, 309.7], 768.0),
    row("RTX 4060", &["RTX", "4060"], 24, [0.24, 15.1, 15.1, 30.2, 60.5, 121.0], 272.0),
    row("RTX 4060 Ti", &["RTX", "4060", "TI"], 34, [0.34, 22.1, 22.1, 44.1, 88.2, 176.5], 288.0),
    row("RTX 4070", &["RTX", "4070"], 46, [0.46, 29.1, 29.1, 58.3, 116.6, 233.2], 504.0),
    row("RTX 4070 SUPER", &["RTX", "4070", "SUPER"], 56, [0.55, 35.5, 35.5, 71.0, 141.9, 283.8], 504.0),
    row("RTX 4070 Ti", &["RTX", "4070", "TI"], 60, [0.63, 40.1, 40.1, 80.2, 160.4, 320.7], 504.0),
    row("RTX 4070 Ti SUPER", &["RTX", "4070", "TI", "SUPER"], 66, [0.69, 44.1, 44.1, 88.2, 176.4, 352.8], 672.0),
    row("RTX 4080", &["RTX", "4080"], 76, [0.76, 48.7, 48.7, 97.5, 194.9, 389.9], 717.0),
    row("RTX 4080 SUPER", &["RTX", "4080", "SUPER"], 80, [0.82, 52.2, 52.2, 104.4, 208.9, 417.7], 736.0),
    row("RTX 4090", &["RTX", "4090"], 128, [1.29, 82.6, 82.6, 165.2, 330.3, 660.6], 1008.0),
    row("RTX 5060 Ti", &["RTX", "5060", "TI"], 36, [0.37, 23.7, 23.7, 47.4, 94.8, 189.6], 448.0),
    row("RTX 5070", &["RTX", "5070"], 48, [0.48, 30.9, 30.9, 61.7, 123.5, 246.9], 672.0),
    row("RTX 5070 Ti", &["RTX", "5070", "TI"], 70, [0.69, 43.9, 43.9, 87.9, 175.8, 351.5], 896.0),
    row("RTX 5080", &["RTX", "5080"], 84, [0.88, 56.3, 56.3, 112.6, 225.1, 450.2], 960.0),
    row("RTX 5090", &["RTX", "5090"], 170, [1.64, 104.8, 104.8, 209.5, 419.0, 838.0], 1792.0),
    row("RTX PRO 6000 Workstation", &["RTX", "PRO", "6000", "BLACKWELL", "WORKSTATION"], 188, [1.97, 126.0, 251.9, 503.8, 1007.6, 1007.6], 1792.0),
    row("RTX PRO 6000 Server", &["RTX", "PRO", "6000", "BLACKWELL", "SERVER"], 188, [1.88, 120.0, 240.0, 480.0, 960.0, 960.0], 1597.0),
    row("Instinct MI100", &["MI100"], 120, [11.5, 23.1, 0.0, 184.6, 0.0, 184.6], 1229.0),
    row("Instinct MI210", &["MI210"], 104, [22.6, 22.6, 0.0, 181.0, 0.0, 181.0], 1638.0),
    row("Instinct MI250", &["MI250"], 104, [22.6, 22.6, 0.0, 181.0, 0.0, 181.0], 1638.0),
    row("Instinct MI250X", &["MI250X"], 110, [23.9, 23.9, 0.0, 191.5, 0.0, 191.5], 1638.0),
    row("Instinct MI250X", &["MI250X", "MI250"], 110, [23.9, 23.9, 0.0, 191.5, 0.0, 191.5], 1638.0),
    row("Instinct MI300A", &["MI300A"], 228, [61.3, 122.6, 490.3, 980.6, 1961.2, 1961.2], 5300.0),
    row("Instinct MI300X", &["MI300X"], 304, [81.7, 163.4, 653.7, 1307.4, 2614.9, 2614.9], 5300.0),
    row("Instinct MI325X", &["MI325X"], 304, [81.7, 163.4, 653.7, 1307.4, 2614.9, 2614.9], 6000.0),
    row("Instinct MI350X", &["MI350X"], 256, [72.1, 144.2, 0.0, 2306.9, 4613.7, 4613.7], 8000.0),
    row("Instinct MI355X", &["MI355X"], 256, [78.6, 157.3, 0.0, 2516.6, 5033.2, 5033.2], 8000.0),
    row("Radeon RX 7900 XT", &["RX", "7900", "XT"], 84, [0.0, 51.6, 0.0, 103.0, 0.0, 103.0], 800.0),
    row("Radeon RX 7900 XTX", &["RX", "7900", "XTX"], 96, [0.0, 61.4, 0.0, 122.8, 0.0, 122.8], 960.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_drivers_write_them_mean_one_device() {
        for (name, want) in [
            ("Tesla V100-SXM2-16GB", "V100 SXM2"),
            ("Tesla T4", "T4"),
            ("NVIDIA A10G", "A10G"),
            ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
            ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
            ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
            ("NVIDIA H100 80GB HBM3", "H100 SXM"),
            ("NVIDIA H100 PCIe", "H100 PCIe"),
            ("NVIDIA H100 NVL", "H100 NVL"),
            ("NVIDIA GH200 480GB", "GH200 96GB"),
            ("NVIDIA GH200 144G HBM3e", "GH200 144GB"),
            ("A100-SXM-80GB", "A100 SXM 80GB"),
            ("NVIDIA B200", "B200"),
            ("NVIDIA GB300", "GB300"),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Server"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Workstation"),
            ("NVIDIA L40S", "L40S"),
            ("NVIDIA GeForce RTX 3070 Ti", "RTX 3070 Ti"),
            ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"),
            ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
            ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
            ("NVIDIA RTX A6000", "RTX A6000"),
            ("Quadro RTX 6000", "Quadro RTX 6000"),
            ("NVIDIA GeForce GTX 1660 SUPER", "GTX 1660 SUPER"),
            ("AMD Instinct MI300X", "Instinct MI300X"),
            ("AMD Instinct MI250X/MI250", "Instinct MI250X"),
            ("AMD Radeon RX 7900 XTX", "Radeon RX 7900 XTX"),
        ] {
            assert_eq!(peaks_of(name).map(|peaks| peaks.name), Some(want), "{name}");
        }
    }

    #[test]
    fn variants_slices_and_strangers_are_unknown() {
        for name in [
            "",
            "NVIDIA GeForce RTX 4060 Laptop GPU",
            "NVIDIA GeForce RTX 4090 D",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "NVIDIA H100",
            "NVIDIA A100-PG509-200",
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            "Orin",
            "GPU 0",
            "TPU v5e",
        ] {
            assert_eq!(peaks_of(name), None, "{name}");
        }
    }

    #[test]
    fn every_row_means_itself_alone_and_its_figures_are_in_order() {
        for peaks in DEVICES {
            assert_eq!(peaks_of(&peaks.words.join(" ")), Some(peaks), "{}", peaks.name);
            let rates = [peaks.fp64, peaks.fp32, peaks.half, peaks.fp8];
            let rates: Vec<f64> = rates.into_iter().flatten().collect();
            assert!(rates.is_sorted(), "{}: smaller types are not slower: {rates:?}", peaks.name);
            assert!((100.0..10_000.0).contains(&peaks.memory), "{}", peaks.name);
        }
    }

    #[test]
    fn figures_are_those_of_the_data_sheets() {
        // Half precision in matrix units and memory, as sheets print them without sparsity.
        for (name, half, memory) in [
            ("NVIDIA A100-SXM4-80GB", 312.0, 2039.0),
            ("NVIDIA A10G", 70.0, 600.0),
            ("NVIDIA A40", 149.7, 696.0),
            ("NVIDIA L4", 121.0, 300.0),
            ("NVIDIA L40", 181.0, 864.0),
            ("NVIDIA L40S", 362.0, 864.0),
            ("NVIDIA RTX 6000 Ada Generation", 364.2, 960.0),
            ("NVIDIA GeForce RTX 4090", 165.2, 1008.0),
            ("NVIDIA GeForce RTX 5090", 209.5, 1792.0),
            ("AMD Instinct MI300X", 1307.4, 5300.0),
        ] {
            let found = peaks_of(name).map(|peaks| (peaks.half, peaks.memory));
            assert_eq!(found, Some((Some(half), memory)), "{name}");
        }
    }

    #[test]
    fn units_and_clocks_make_the_rates() {
        // Lanes of 32-bit arithmetic in a multiprocessor, by the rate of 64-bit arithmetic and generation, are 64, 128
        // or (two instructions at once) 256; whatever they are, the clock that follows is one that devices have.
        for peaks in DEVICES {
            let (Some(units), Some(fp32)) = (peaks.multiprocessors, peaks.fp32) else { continue };
            let clock = |lanes: f64| fp32 * 1e3 / (f64::from(units) * lanes * 2.0);
            let fits = [64.0, 128.0, 256.0].into_iter().any(|lanes| (1.2..2.7).contains(&clock(lanes)));
            assert!(fits, "{}: {fp32} of {units}", peaks.name);
        }
    }

    #[test]
    fn matrix_units_follow_from_the_figures() {
        let peaks = |name| peaks_of(name).copied();
        assert_eq!(peaks("NVIDIA GeForce GTX 1660 SUPER").map(|peaks| peaks.matrix_speedup()), Some(None));
        let speedup = |name| peaks(name).and_then(|peaks| peaks.matrix_speedup());
        assert_eq!(speedup("NVIDIA A100-SXM4-40GB"), Some(16.0));
        assert!(speedup("Tesla T4").is_some_and(|times| (times - 8.0).abs() < 0.1));
    }
}
