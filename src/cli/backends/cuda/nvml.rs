//! Reads clocks, temperature, power and other processes of a card through NVML.

use std::ptr::null_mut;

use vramscope_benchmark::Reading;

use super::api::{Handle, Nvml};
use super::device::text;

/// A card as NVML identifies it.
pub struct Monitor {
    api: Nvml,
    device: Handle,
}

/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const CLOCKS: [u32; 2] = [1, 2];

impl Monitor {
    /// Opens a card by its PCI bus ID.
    pub fn open(api: Nvml, bus_id: &[u8]) -> Option<Self> {
        let mut device = null_mut();
        // SAFETY: the id ends in zero; the handle is written.
        let code = unsafe {
            (api.nvmlInit_v2)();
            (api.nvmlDeviceGetHandleByPciBusId_v2)(bus_id.as_ptr().cast(), &mut device)
        };
        (code == 0).then_some(Self { api, device })
    }

    fn number(&self, ask: impl FnOnce(&Nvml, *mut u32) -> i32) -> Option<u32> {
        let mut value = 0;
        (ask(&self.api, &mut value) == 0).then_some(value)
    }

    /// Current state of the card.
    pub fn reading(&self) -> Reading {
        let device = self.device;
        // SAFETY: in each, the device exists and the number is written.
        let [sm, memory] =
            CLOCKS.map(|c| self.number(|api, out| unsafe { (api.nvmlDeviceGetClockInfo)(device, c, out) }));
        Reading {
            temperature_c: self.number(|api, out| unsafe { (api.nvmlDeviceGetTemperature)(device, 0, out) }),
            sm_clock_mhz: sm,
            memory_clock_mhz: memory,
            power_w: self
                .number(|api, out| unsafe { (api.nvmlDeviceGetPowerUsage)(device, out) })
                .map(|mw| f64::from(mw) / 1e3),
        }
    }

    /// Maximum clocks of multiprocessors and memory, in MHz.
    pub fn highest_clocks(&self) -> [Option<u32>; 2] {
        // SAFETY: the device exists and the number is written.
        CLOCKS.map(|c| self.number(|api, out| unsafe { (api.nvmlDeviceGetMaxClockInfo)(self.device, c, out) }))
    }

    /// Enforced power limit, in watts.
    pub fn power_limit(&self) -> Option<f64> {
        // SAFETY: as above.
        let mw = self.number(|api, out| unsafe { (api.nvmlDeviceGetEnforcedPowerLimit)(self.device, out) });
        mw.map(|mw| f64::from(mw) / 1e3)
    }

    /// True if ECC is enabled.
    pub fn ecc(&self) -> Option<bool> {
        let mut pending = 0;
        // SAFETY: as above.
        let now = self.number(|api, out| unsafe { (api.nvmlDeviceGetEccMode)(self.device, out, &mut pending) });
        now.map(|mode| mode == 1)
    }

    /// Version of the driver.
    pub fn driver(&self) -> Option<String> {
        let mut version = [0_u8; 96];
        // SAFETY: the buffer is as long as stated.
        let code = unsafe { (self.api.nvmlSystemGetDriverVersion)(version.as_mut_ptr().cast(), 96) };
        (code == 0).then(|| text(&version))
    }

    /// Number of processes that compute on the card, including this one.
    pub fn processes(&self) -> Option<u32> {
        /// `NVML_ERROR_INSUFFICIENT_SIZE`: the count is written nevertheless.
        const TOO_SMALL: i32 = 7;
        let mut count = 0;
        // SAFETY: room for none is offered, so only the count is written.
        let code = unsafe { (self.api.nvmlDeviceGetComputeRunningProcesses)(self.device, &mut count, null_mut()) };
        matches!(code, 0 | TOO_SMALL).then_some(count)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // SAFETY: it was started.
        unsafe { (self.api.nvmlShutdown)() };
    }
}
