//! Installs Mesa's lavapipe, a Vulkan implementation on the CPU, for the tests of the portable backend.

use crate::Failure;

use super::system_package::install;

/// Finds lavapipe, or installs it if this is Debian and the user is root. Returns true if it, or a GPU's Vulkan, may be
/// available; otherwise the tests report that they compare nothing.
///
/// # Errors
/// If the package manager fails.
pub fn vulkan() -> Result<bool, Failure> {
    // Metal and DirectX 12 are part of their systems.
    if look() || cfg!(not(target_os = "linux")) {
        return Ok(true);
    }
    install(&["mesa-vulkan-drivers", "libvulkan1"])?;
    Ok(look())
}

fn look() -> bool {
    let drivers = std::fs::read_dir("/usr/share/vulkan/icd.d");
    drivers.is_ok_and(|mut files| files.next().is_some())
}
