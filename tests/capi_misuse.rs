//! What calls with wrong numbers, NULLs and closed ports do from C.

use burstline::capi::{burst, event, init, mbuf, poll_group, pool, port, queue, stats};
use core::ffi::c_char;
use core::ptr::{null, null_mut};

#[test]
fn null_and_out_of_range_arguments_are_refused_and_nothing_else() {
    let s = c"net_ring_cmis".as_ptr() as *const c_char;
    // SAFETY: every pointer is NULL, or lives for the call; that is what is tried.
    unsafe {
        assert!(init::bl_vdev_probe(null()) < 0);
        let id = init::bl_vdev_probe(s);
        assert!(id >= 0);
        let id = id as u16;
        for p in [id, 64, u16::MAX] {
            for q in [0, 31, 32, u16::MAX] {
                let mut one = [null_mut(); 1];
                assert_eq!(burst::bl_rx_burst(p, q, null_mut(), 32), 0);
                assert_eq!(burst::bl_rx_burst(p, q, one.as_mut_ptr(), 1), 0);
                assert_eq!(burst::bl_tx_burst(p, q, null_mut(), 32), 0);
                assert_eq!(burst::bl_tx_burst_more(p, q, null_mut(), 32), 0);
                assert_eq!(burst::bl_tx_flush(p, q), 0);
                assert!(queue::bl_queue_unbind(p, q) < 0);
                let g = poll_group::bl_poll_group_create();
                assert!(poll_group::bl_poll_group_add_rx(g, p, q) < 0);
                assert!(poll_group::bl_poll_group_add_tx(g, p, q, 1, 0) < 0);
                assert_eq!(poll_group::bl_poll_group_free(g), 0);
            }
        }
        assert!(poll_group::bl_poll_group_free(null_mut()) < 0);
        assert!(poll_group::bl_poll_group_flush(null_mut()) < 0);
        assert!(event::bl_port_on_event(id, None, null_mut()) < 0);
        assert!(stats::bl_stats_get(id, null_mut(), 8) < 0);
        assert!(pool::bl_pool_create(null()).is_null());
        assert!(pool::bl_pool_free(null_mut()) < 0);
        assert!(mbuf::bl_mbuf_alloc(null_mut()).is_null());
        assert!(mbuf::bl_mbuf_alloc_bulk(null_mut(), null_mut(), 4) < 0);
        mbuf::bl_mbuf_free(null_mut());
        assert!(mbuf::bl_mbuf_validate(null()) < 0);
        assert_eq!(port::bl_port_close(id), 0);
        assert!(port::bl_port_close(id) < 0);
        assert!(port::bl_port_start(id) < 0);
        assert_eq!(init::bl_init(-1, null_mut()), 0);
        assert!(init::bl_init(-1, null_mut()) < 0);
        assert_eq!(init::bl_cleanup(), 0);
        init::bl_cleanup();
    }
}
