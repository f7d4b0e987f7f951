//! Thread slots: a small number for each thread that polls, which picks its caches and its counters.
//!
//! A thread without a slot works too, through the pools' shared rings.

use crate::base::Result;
use crate::fail;
use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Threads that can have a slot at once.
pub const MAX_SLOTS: usize = 128;
/// What [`current`] says on a thread without a slot.
pub const NO_SLOT: u32 = u32::MAX;

static TAKEN: [AtomicBool; MAX_SLOTS] = [const { AtomicBool::new(false) }; MAX_SLOTS];
/// Called with the slot that ends, before its caches are given back: ports unbind their queues here.
static AT_END: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

thread_local! {
    // No destructor, so that reading it is one load.
    static SLOT: Cell<u32> = const { Cell::new(NO_SLOT) };
    // Ends the slot of a thread that exits without saying so.
    static KEEPER: RefCell<Option<Keeper>> = const { RefCell::new(None) };
}

/// The slot, and the process that it is of.
struct Keeper(u32, u32);

impl Drop for Keeper {
    fn drop(&mut self) {
        // A forked child has neither the pools' memory nor a say in the parent's queues.
        if self.1 == std::process::id() {
            end(self.0);
        } else {
            let _ = SLOT.try_with(|s| s.set(NO_SLOT));
        }
    }
}

fn end(slot: u32) {
    let hook = AT_END.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: only `set_end_hook` writes it, and it writes a `fn(u32)`.
        let hook: fn(u32) = unsafe { core::mem::transmute::<*mut (), fn(u32)>(hook) };
        hook(slot);
    }
    super::handle::drain_slot(slot);
    let _ = SLOT.try_with(|s| s.set(NO_SLOT));
    TAKEN[slot as usize].store(false, Ordering::Release);
}

/// Sets what is called when a slot ends. The port layer sets it once.
pub(crate) fn set_end_hook(hook: fn(u32)) {
    AT_END.store(hook as *mut (), Ordering::Release);
}

/// The calling thread's slot number, or [`NO_SLOT`].
#[inline(always)]
pub fn current() -> u32 {
    SLOT.try_with(Cell::get).unwrap_or(NO_SLOT)
}

/// The calling thread's registration. Ends on drop, on the same thread: it is not `Send`.
pub struct ThreadSlot {
    id: u32,
    _here: PhantomData<*mut ()>,
}

impl ThreadSlot {
    /// Gives the calling thread a slot. -EEXIST if it has one, -ENOSPC if all [`MAX_SLOTS`] are taken.
    pub fn register() -> Result<ThreadSlot> {
        register_current().map(|id| ThreadSlot { id, _here: PhantomData })
    }

    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        unregister_current();
    }
}

/// [`ThreadSlot::register`] without a guard: the slot ends with [`unregister_current`] or with the thread.
pub fn register_current() -> Result<u32> {
    if current() != NO_SLOT {
        return fail!(EXIST, "this thread is registered already, as slot {}", current());
    }
    crate::base::cpu::membarrier_init();
    for (i, t) in TAKEN.iter().enumerate() {
        if t.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let id = i as u32;
            SLOT.with(|s| s.set(id));
            KEEPER.with(|k| *k.borrow_mut() = Some(Keeper(id, std::process::id())));
            return Ok(id);
        }
    }
    fail!(NOSPC, "all {MAX_SLOTS} thread slots are taken")
}

/// Ends the calling thread's slot: its queues are unbound and its caches go back to their pools. False without a slot.
pub fn unregister_current() -> bool {
    // Taken out first: the end hook may run code that looks at the keeper.
    let keeper = KEEPER.try_with(|k| k.borrow_mut().take()).ok().flatten();
    keeper.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_registers_once_and_its_slot_ends_with_it() {
        let id = std::thread::spawn(|| {
            assert_eq!(current(), NO_SLOT);
            let id = register_current().unwrap();
            assert_eq!(current(), id);
            assert_eq!(register_current().unwrap_err().errno(), crate::base::Errno::EXIST);
            id
        })
        .join()
        .unwrap();
        // The thread exited without unregistering; its slot can be had again.
        assert!((id as usize) < MAX_SLOTS);
        let s = ThreadSlot::register().unwrap();
        assert_eq!(current(), s.id());
        drop(s);
        assert_eq!(current(), NO_SLOT);
    }
}
