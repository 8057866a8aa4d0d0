//! Ticks of a byte axis.

use vramscope_engine::units::Bytes;

/// Round steps in MiB; from 1024 on they are whole GiB.
const STEPS_MIB: [u64; 17] = [
    1, 2, 5, 10, 20, 50, 100, 256, 512, 1024, 2048, 5120, 10_240, 20_480, 51_200, 102_400, 204_800,
];

/// Round amounts from zero to `highest`, about `wanted` of them.
pub fn ticks(highest: Bytes, wanted: u64) -> Vec<Bytes> {
    let step = STEPS_MIB
        .into_iter()
        .map(|mib| Bytes::mib(mib).get())
        .find(|step| highest.get() / step <= wanted)
        .unwrap_or(highest.get().max(1));
    (0..=highest.get() / step).map(|i| Bytes::new(i * step)).collect()
}

/// Formats a tick label without superfluous decimals.
pub fn tick_label(tick: Bytes) -> String {
    const MIB: u64 = 1 << 20;
    match tick.get() / MIB {
        0 => "0".into(),
        mib if mib % 1024 == 0 => format!("{} GiB", mib / 1024),
        mib if mib > 1024 => format!("{:.1} GiB", tick.as_gib()),
        mib => format!("{mib} MiB"),
    }
}
