//! Mesa's lavapipe, a Vulkan on the processor, for the tests of the portable backend.

use crate::Failure;

use super::system_package::install;

/// Finds it, or installs it where this is a Debian with root's rights. Whether it, or a GPU's own Vulkan,
/// may be there: where not, the tests say that they compare nothing.
///
/// # Errors
/// When the package manager fails.
pub fn vulkan() -> Result<bool, Failure> {
    // Metal and DirectX 12 come with their systems.
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
