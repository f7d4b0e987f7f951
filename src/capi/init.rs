//! Start and end, versions, the last error, debug mode.

use super::guard::{control, last_text, number, plant, str_arg};
use crate::base::Result;
use crate::driver::DevArgs;
use crate::eal;
use crate::invalid;
use crate::{pool, port};
use core::ffi::{c_char, c_int};

/// Debug: pools made from now on track every packet, and report leaks and double frees.
pub const BL_DEBUG_POOLS: u32 = 1;
/// Debug: a queue that another thread than its owner uses is reported, and the call does nothing.
pub const BL_DEBUG_THREADS: u32 = 2;
/// Debug: the next control call of the calling thread panics inside, to see that it ends in -EFAULT and a text.
pub const BL_DEBUG_FAULT: u32 = 1073741824;

/// Reads the arguments of `argv` as DPDK's programs do (`-l`, `--vdev`, …, up to `--`) and makes the devices that they name.
///
/// Returns how many arguments were used: after `argc -= n; argv += n` the program finds its own from `argv[1]` on, and the
/// program's name in `argv[0]` again, which this call puts there. The strings stay the program's and must live until the return.
///
/// With `-l`, `-c` or `--lcores` the calling thread is pinned to the main lcore, until its `bl_cleanup`. The call is not needed
/// where a program makes its devices by `bl_vdev_probe` and pins no threads.
/// Errors: -EINVAL with the option, the value and what is allowed; -EALREADY; what a device says. Nothing is left then. With
/// `-h`: -ECANCELED, and the text is the help. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_init(argc: c_int, argv: *mut *mut c_char) -> c_int {
    number(|| {
        let n = usize::try_from(argc).unwrap_or(0);
        if n == 0 || argv.is_null() {
            return super::lcore::init(&["burstline".into()]).map(|_| 0);
        }
        // SAFETY: argv holds argc strings.
        let args = (0..n).map(|i| unsafe { str_arg(*argv.add(i), "an argument") }.map(str::to_owned));
        let used = super::lcore::init(&args.collect::<Result<Vec<_>>>()?)?.saturating_sub(1);
        // SAFETY: `used` is below argc.
        unsafe { *argv.add(used) = *argv };
        Ok(used as u32)
    })
}

/// Stops and closes every port, and ends what `bl_init` began. Pools, rings and poll groups are the program's to free.
/// Errors: -EBUSY where a thread stays inside a burst, or a launched lcore was not waited for; may be called again.
/// Control thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_cleanup() -> c_int {
    control(|| {
        super::lcore::may_end()?;
        port::Port::all().iter().try_for_each(|p| p.close())?;
        super::lcore::end()
    })
}

/// The library's version: "MAJOR.MINOR.PATCH". Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The library's BL_LAYOUT_VERSION: it must be the header's. See `bl_check_abi`. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_layout_version() -> u32 {
    crate::mbuf::layout::LAYOUT_VERSION
}

/// -EPROTO, with a text, where the library's layout version is not `header_version`. `bl_check_abi` passes the header's.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_layout_check(header_version: u32) -> c_int {
    control(|| {
        let ours = bl_layout_version();
        if header_version == ours {
            return Ok(());
        }
        let text = format!(
            "the program was compiled for packet layout {header_version}, the library has {ours}: compile it again \
             with the headers of burstline {}",
            env!("CARGO_PKG_VERSION")
        );
        Err(crate::base::Error::new(crate::base::Errno(libc::EPROTO), text))
    })
}

/// What the calling thread's last failed call has to say: which value, which limit. Never NULL; "" before the first one. It
/// is the library's, and good until the thread's next failed call. Hot calls (bursts, alloc, free, rings) leave no text.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_last_error() -> *const c_char {
    last_text()
}

/// Sets debug mode: BL_DEBUG_… or-ed, 0 for none. For pools made and queues started or bound from now on.
/// Errors: -EINVAL for bits that mean nothing. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn bl_debug_set(flags: u32) -> c_int {
    control(|| {
        let known = BL_DEBUG_POOLS | BL_DEBUG_THREADS | BL_DEBUG_FAULT;
        if flags & !known != 0 {
            return invalid!("debug flags {flags:#x}: only {known:#x} mean something");
        }
        pool::set_debug(flags & BL_DEBUG_POOLS != 0);
        port::set_checks(flags & BL_DEBUG_THREADS != 0);
        plant(flags & BL_DEBUG_FAULT != 0);
        Ok(())
    })
}

/// Makes a virtual device, as `--vdev` does: "net_null0,size=128". Returns the number of its port.
/// Errors: -EINVAL with the key or value and what is allowed, -ENODEV for a driver that there is not (the text lists those
/// there are), -EEXIST for a name in use, -ENOSPC beyond BL_MAX_PORTS, what the device says. Control thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bl_vdev_probe(args: *const c_char) -> c_int {
    // SAFETY: a C string by this function's contract.
    number(|| eal::attach(&DevArgs::parse(unsafe { str_arg(args, "args") }?)?).map(|p| p.id().into()))
}
