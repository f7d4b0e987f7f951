/* Burstline: poll-mode packet drivers with burst receive and send.
 *
 * Made by cbindgen from src/capi; not to be edited.
 *
 * Control calls return 0 or a count, or -errno; constructors a pointer or NULL; bl_last_error() has the text. Hot calls leave
 * none. Each function says which thread may call it: any thread; the owning thread (of the packet, queue or group); or a
 * control thread: any thread, but not from inside a burst or a callback of a packet's buffer. A struct that travels with its
 * size grows only at its end; in a configuration zero means the default. */

#ifndef BURSTLINE_H
#define BURSTLINE_H

#include <stddef.h>
#include <stdint.h>
#include "burstline/mbuf.h"
/** The version of these headers; bl_version() gives the library's. */
#define BL_VERSION "0.1.0"
#define BL_VERSION_MAJOR 0
#define BL_VERSION_MINOR 1
#define BL_VERSION_PATCH 0

/** 0 where the library has the packet layout that the program was compiled for, else -EPROTO with a text. Once, before
 * the first packet. Any thread. */
#define bl_check_abi() bl_layout_check(BL_LAYOUT_VERSION)


/**
 * Debug: pools made from now on track every packet, and report leaks and double frees.
 */
#define BL_DEBUG_POOLS 1

/**
 * Debug: a queue that another thread than its owner uses is reported, and the call does nothing.
 */
#define BL_DEBUG_THREADS 2

/**
 * Debug: the next control call of the calling thread panics inside, to see that it ends in -EFAULT and a text.
 */
#define BL_DEBUG_FAULT 1073741824

/**
 * Log levels: each holds those before it.
 */
#define BL_LOG_ERROR 1

#define BL_LOG_WARNING 2

#define BL_LOG_NOTICE 3

#define BL_LOG_DEBUG 4

#define BL_LOG_TRACE 5

/**
 * Doorbell: nothing is staged, each packet goes out as it is taken. Deferring is refused.
 */
#define BL_DOORBELL_NONE 0

/**
 * Doorbell: one store.
 */
#define BL_DOORBELL_STORE 1

/**
 * Doorbell: one system call.
 */
#define BL_DOORBELL_SYSCALL 2

/**
 * Bytes before the data of a fresh packet.
 */
#define BL_HEADROOM 256

/**
 * bl_pool_conf.room: packets without rooms, for clones and external buffers.
 */
#define BL_POOL_NO_ROOM 4294967295

/**
 * bl_pool_conf.cache: no packets set aside for threads.
 */
#define BL_POOL_NO_CACHE 4294967295

/**
 * bl_pool_conf.flags: rooms start at multiples of a power of two.
 */
#define BL_POOL_ALIGNED 1

/**
 * bl_pool_conf.flags: the rooms may be mapped by a peer, or given to a device.
 */
#define BL_POOL_SHARED 2

/**
 * bl_pool_conf.flags: ordinary pages, also where there are hugepages.
 */
#define BL_POOL_NO_HUGE 4

/**
 * bl_pool_conf.flags: track every packet, as BL_DEBUG_POOLS does.
 */
#define BL_POOL_DEBUG 8

/**
 * Ring: one thread at a time puts.
 */
#define BL_RING_SINGLE_PRODUCER 1

/**
 * Ring: one thread at a time takes.
 */
#define BL_RING_SINGLE_CONSUMER 2

/**
 * Ring: exactly `count` entries, which need not be a power of two.
 */
#define BL_RING_EXACT 4

/**
 * Ports at once; their numbers are below this.
 */
#define BL_MAX_PORTS 64

/**
 * Queues of a kind of a port; their numbers are below this.
 */
#define BL_MAX_QUEUES 32

/**
 * A port's state, in the order of its life: probed, configured, started, stopped.
 */
#define BL_PORT_PROBED 0

#define BL_PORT_CONFIGURED 1

#define BL_PORT_STARTED 2

#define BL_PORT_STOPPED 3

/**
 * Capability: promiscuous mode can be set.
 */
#define BL_CAP_PROMISC 1

/**
 * Capability: the station address can be set.
 */
#define BL_CAP_SET_MAC 2

/**
 * Capability: the MTU can be set.
 */
#define BL_CAP_SET_MTU 4

/**
 * Capability: packets longer than a room are received as chains, where the port asks for it.
 */
#define BL_CAP_RX_SCATTER 8

/**
 * Capability: packets of several segments are sent.
 */
#define BL_CAP_TX_MULTI_SEG 16

/**
 * Capability: the link can be set up and down.
 */
#define BL_CAP_SET_LINK 32

/**
 * Capability: receive queues have a descriptor to wait for packets on.
 */
#define BL_CAP_RX_FD 64

/**
 * Capability: the input ends by itself, as a capture does (BL_EVENT_END_OF_INPUT).
 */
#define BL_CAP_FINITE_INPUT 128

/**
 * Event: the link went up or down.
 */
#define BL_EVENT_LINK 1

/**
 * Event: a capture was read to its end. Receive gives 0 from then on, the link stays up, send goes on.
 */
#define BL_EVENT_END_OF_INPUT 2

/**
 * Event: the device is gone.
 */
#define BL_EVENT_REMOVED 4

/**
 * Event: the device was reset, and must be started again.
 */
#define BL_EVENT_RESET 8

/**
 * The receive and send queues that one thread serves. Opaque.
 */
struct bl_poll_group;

/**
 * A pool of packets. Opaque.
 */
struct bl_pool;

/**
 * A ring of pointers. Opaque.
 */
struct bl_ring;

/**
 * One line, without its newline; `text` is good during the call.
 */
typedef void (*bl_log_fn)(uint32_t level, const char *text, void *user);

/**
 * A driver. Texts end with NUL, and are cut where they are longer.
 */
struct bl_driver_info {
    /**
     * "net_null"; a device is named by it and a number.
     */
    char name[64];
    /**
     * One line for lists.
     */
    char summary[192];
    /**
     * What it needs of the machine.
     */
    char needs[192];
    /**
     * BL_DOORBELL_…: what it costs to tell the device that packets wait.
     */
    uint32_t doorbell;
    uint32_t reserved;
};

/**
 * What a pool shall be. Zero means the default, in every field but `size`.
 */
struct bl_pool_conf {
    /**
     * sizeof(struct bl_pool_conf).
     */
    size_t size;
    /**
     * 1 to 63 bytes, unique among the pools that live. NULL: "pool" and a number.
     */
    const char *name;
    /**
     * Packets: 1 to 2^26 (8192).
     */
    uint32_t n;
    /**
     * Bytes of a packet's room, BL_HEADROOM included: 320 to 65535 (2304), or BL_POOL_NO_ROOM.
     */
    uint32_t room;
    /**
     * Packets that a registered thread may keep to itself: 1 to 512 (256, less in a small pool), or BL_POOL_NO_CACHE.
     */
    uint32_t cache;
    /**
     * BL_POOL_… or-ed.
     */
    uint32_t flags;
};

/**
 * A pool as it is now.
 */
struct bl_pool_info {
    char name[64];
    /**
     * Packets in all.
     */
    uint32_t n;
    /**
     * Packets that can be had: in the pool, or in a thread's cache of it.
     */
    uint32_t available;
    /**
     * Packets in a program's or a driver's hands.
     */
    uint32_t in_use;
    /**
     * Queues that use the pool.
     */
    uint32_t queues;
    /**
     * Bytes of a room with its headroom; 0: none.
     */
    uint32_t room;
    uint32_t headroom;
    /**
     * Bytes from one room to the next.
     */
    uint64_t stride;
    /**
     * Packets that a registered thread may keep to itself.
     */
    uint32_t cache;
    /**
     * 1 where every packet is tracked.
     */
    uint32_t debug;
    /**
     * Bytes of the pages that hold the packets' headers, and the rooms.
     */
    uint64_t header_page;
    uint64_t room_page;
    /**
     * The command that would give hugepages where there were none, else "".
     */
    char hugepage_hint[256];
};

/**
 * What a port is now, and what its device can do. Lengths in bytes, without FCS.
 */
struct bl_port_info {
    char name[64];
    char driver[64];
    /**
     * The kernel's name of the interface, else "".
     */
    char if_name[64];
    uint16_t port;
    /**
     * Queues that are configured, and that the device can have.
     */
    uint16_t n_rx;
    uint16_t n_tx;
    uint16_t max_rx;
    uint16_t max_tx;
    /**
     * Segments of a packet to send, at most.
     */
    uint16_t tx_max_segs;
    uint8_t mac[6];
    uint8_t promiscuous;
    uint8_t scatter;
    /**
     * BL_PORT_…
     */
    uint32_t state;
    /**
     * BL_CAP_… or-ed.
     */
    uint32_t caps;
    /**
     * BL_DOORBELL_…
     */
    uint32_t doorbell;
    /**
     * Descriptors of a queue: least, most, and what 0 stands for.
     */
    uint32_t desc_min;
    uint32_t desc_max;
    uint32_t desc_default;
    /**
     * The longest packet that can be sent.
     */
    uint32_t tx_max_len;
    uint32_t mtu;
    uint32_t mtu_min;
    uint32_t mtu_max;
    /**
     * NUMA node; -1 where unknown.
     */
    int32_t numa;
    /**
     * Bytes of the pages under the first receive queue's packets; 0 without one.
     */
    uint64_t pool_page;
};

/**
 * What a program asks of a port.
 */
struct bl_port_conf {
    /**
     * sizeof(struct bl_port_conf).
     */
    size_t size;
    /**
     * Receive queues and send queues; at least one in all.
     */
    uint16_t n_rx;
    uint16_t n_tx;
    /**
     * Largest packet without Ethernet header, VLAN tag and FCS; 0: as the device has it.
     */
    uint32_t mtu;
    /**
     * 1: receive packets longer than a room as chains. 0: drop them, and count ierrors.
     */
    uint32_t scatter;
    uint32_t reserved;
};

/**
 * A port's link, as read now.
 */
struct bl_link {
    /**
     * Mbit/s; 0 where unknown.
     */
    uint32_t speed;
    uint8_t up;
    uint8_t full_duplex;
    uint16_t reserved;
};

/**
 * Counters of a port or a queue. Bytes without FCS. Each lost packet is counted in one place.
 */
struct bl_stats {
    /**
     * Packets given to the program.
     */
    uint64_t ipackets;
    /**
     * Packets announced to the device.
     */
    uint64_t opackets;
    uint64_t ibytes;
    uint64_t obytes;
    /**
     * Lost before they could be read.
     */
    uint64_t imissed;
    /**
     * Read and found unfit.
     */
    uint64_t ierrors;
    /**
     * Taken for sending and freed: can never be sent, or the device refused.
     */
    uint64_t oerrors;
    /**
     * Lost because the pool was empty.
     */
    uint64_t rx_nombuf;
    /**
     * Announcements of staged packets, by cause: at the end of a burst, at the fill level, after an idle lap, at the deadline,
     * by an explicit flush.
     */
    uint64_t tx_flush_burst;
    uint64_t tx_flush_fill;
    uint64_t tx_flush_idle;
    uint64_t tx_flush_deadline;
    uint64_t tx_flush_explicit;
};

/**
 * A counter with its name, which ends with NUL.
 */
struct bl_xstat {
    char name[64];
    uint64_t value;
};

/**
 * Called with the port's number and BL_EVENT_… or-ed.
 */
typedef void (*bl_event_fn)(uint16_t port, uint32_t events, void *user);

/**
 * Work for an lcore. What it returns is given to bl_lcore_wait; it must not throw.
 */
typedef int (*bl_lcore_fn)(void *arg);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Reads the arguments of `argv` as DPDK's programs do (`-l`, `--vdev`, …, up to `--`) and makes the devices that they name.
 *
 * Returns how many arguments were used: after `argc -= n; argv += n` the program finds its own from `argv[1]` on, and the
 * program's name in `argv[0]` again, which this call puts there. The strings stay the program's and must live until the return.
 *
 * With `-l`, `-c` or `--lcores` the calling thread is pinned to the main lcore, until its `bl_cleanup`. The call is not needed
 * where a program makes its devices by `bl_vdev_probe` and pins no threads.
 * Errors: -EINVAL with the option, the value and what is allowed; -EALREADY; what a device says. Nothing is left then. With
 * `-h`: -ECANCELED, and the text is the help. Control thread.
 */
int bl_init(int argc,
            char **argv);

/**
 * Stops and closes every port, and ends what `bl_init` began. Pools, rings and poll groups are the program's to free.
 * Errors: -EBUSY where a thread stays inside a burst, or a launched lcore was not waited for; may be called again.
 * Control thread.
 */
int bl_cleanup(void);

/**
 * The library's version: "MAJOR.MINOR.PATCH". Any thread.
 */
const char *bl_version(void);

/**
 * The library's BL_LAYOUT_VERSION: it must be the header's. See `bl_check_abi`. Any thread.
 */
uint32_t bl_layout_version(void);

/**
 * -EPROTO, with a text, where the library's layout version is not `header_version`. `bl_check_abi` passes the header's.
 * Any thread.
 */
int bl_layout_check(uint32_t header_version);

/**
 * What the calling thread's last failed call has to say: which value, which limit. Never NULL; "" before the first one. It
 * is the library's, and good until the thread's next failed call. Hot calls (bursts, alloc, free, rings) leave no text.
 * Any thread.
 */
const char *bl_last_error(void);

/**
 * Sets debug mode: BL_DEBUG_… or-ed, 0 for none. For pools made and queues started or bound from now on.
 * Errors: -EINVAL for bits that mean nothing. Any thread.
 */
int bl_debug_set(uint32_t flags);

/**
 * Makes a virtual device, as `--vdev` does: "net_null0,size=128". Returns the number of its port.
 * Errors: -EINVAL with the key or value and what is allowed, -ENODEV for a driver that there is not (the text lists those
 * there are), -EEXIST for a name in use, -ENOSPC beyond BL_MAX_PORTS, what the device says. Control thread.
 */
int bl_vdev_probe(const char *args);

/**
 * Gives what the library says, up to `level`, to `cb`; NULL: to nobody, as at the start. `cb` is called on any thread, on
 * more than one at once, and may call anything. A call may be under way on another thread when this returns.
 * Nothing is said in a burst but what happens once in a while. Errors: -EINVAL for a level that is none. Any thread.
 */
int bl_log_set(bl_log_fn cb,
               void *user,
               uint32_t level);

/**
 * How many drivers are built in. Any thread.
 */
uint32_t bl_driver_count(void);

/**
 * Driver `i` of `bl_driver_count`, into the `size` bytes of `info`. Errors: -EINVAL. Any thread.
 */
int bl_driver_get(uint32_t i, struct bl_driver_info *info, size_t size);

/**
 * Makes a pool. The caller owns it, until `bl_pool_free` or `bl_pool_close`. Hugepages are used where there are free ones.
 * NULL: -EINVAL with the value and the limit, -EEXIST for a name in use, -ENOMEM with need and free. Control thread.
 */
struct bl_pool *bl_pool_create(const struct bl_pool_conf *conf);

/**
 * Frees a pool of which nothing is in use. Else -EBUSY with the counts of packets and queues: nothing has changed then, and
 * the handle is still good. Control thread.
 */
int bl_pool_free(struct bl_pool *pool);

/**
 * Ends the handle; the memory goes with the pool's last packet and last queue. Packets may still be freed, sent and received.
 * -EBUSY, with nothing changed, where a thread stays inside its cache for over two seconds. Control thread.
 */
int bl_pool_close(struct bl_pool *pool);

/**
 * The pool as it is now, into the `size` bytes of `info`. Errors: -EINVAL. Any thread.
 */
int bl_pool_info_get(const struct bl_pool *pool, struct bl_pool_info *info, size_t size);

/**
 * Packets that can be had: in the pool, or in a thread's cache of it. Exact while nothing moves. 0 for NULL. Any thread.
 */
uint32_t bl_pool_available(const struct bl_pool *pool);

/**
 * Packets of the pool in all. 0 for NULL. Any thread.
 */
uint32_t bl_pool_size(const struct bl_pool *pool);

/**
 * Takes a packet: one empty segment behind BL_HEADROOM bytes. NULL where the pool is empty. The caller owns it, until it is
 * freed or sent. Hot. Any thread; quickest on a registered one.
 */
struct bl_mbuf *bl_mbuf_alloc(struct bl_pool *pool);

/**
 * Takes `n` packets into `pkts`, or none: 0 or -ENOMEM. Hot. Any thread.
 */
int bl_mbuf_alloc_bulk(struct bl_pool *pool, struct bl_mbuf **pkts, uint32_t n);

/**
 * Frees a packet with all its segments; NULL is fine. Those that another packet borrows from live on until it is freed.
 * Hot. Any thread.
 */
void bl_mbuf_free(struct bl_mbuf *m);

/**
 * Frees `n` packets, as `bl_mbuf_free` each. Hot. Any thread.
 */
void bl_mbuf_free_bulk(struct bl_mbuf **pkts, uint32_t n);

/**
 * Makes `len` more bytes before the packet's data, and gives the first. NULL: -ENOSPC with the headroom there is, -EBUSY
 * where other packets refer to the bytes, -EACCES where they are read-only. Owning thread.
 */
void *bl_mbuf_prepend(struct bl_mbuf *m,
                      uint32_t len);

/**
 * Makes `len` more bytes behind the packet's data, in its last segment, and gives the first. NULL as `bl_mbuf_prepend`.
 * Owning thread.
 */
void *bl_mbuf_append(struct bl_mbuf *m, uint32_t len);

/**
 * Cuts `len` bytes off the front of the first segment. Errors: -EINVAL with the bytes it has. Owning thread.
 */
int bl_mbuf_adj(struct bl_mbuf *m, uint32_t len);

/**
 * Cuts `len` bytes off the packet's end, over segments, and frees those that it empties, the first apart. Errors: -EINVAL
 * with the bytes it has. Owning thread.
 */
int bl_mbuf_trim(struct bl_mbuf *m,
                 uint32_t len);

/**
 * Copies `len` bytes from `offset` of the packet to `to`, whatever it is made of. Errors: -EINVAL where they are not all in
 * it; nothing is copied then. Owning thread.
 */
int bl_mbuf_read(const struct bl_mbuf *m,
                 uint32_t offset,
                 uint32_t len,
                 void *to);

/**
 * Copies `len` bytes from `from` to `offset` of the packet, which does not grow. Errors: -EINVAL where they do not all lie in
 * it, -EBUSY where other packets refer to some of them, -EACCES where they are read-only; nothing is written then. Owning thread.
 */
int bl_mbuf_write(struct bl_mbuf *m,
                  uint32_t offset,
                  uint32_t len,
                  const void *from);

/**
 * The address of `len` bytes at `offset` where they lie in one segment, else NULL (without a text). Owning thread.
 */
void *bl_mbuf_contiguous(const struct bl_mbuf *m, uint32_t offset, uint32_t len);

/**
 * Puts the segments of `tail` behind those of `head`: `tail` is part of `head` from then on, and its metadata is lost.
 * Errors: -EOVERFLOW beyond 65535 segments or 2^32 - 1 bytes, -EINVAL; both are as they were then. Owning thread.
 */
int bl_mbuf_chain(struct bl_mbuf *head, struct bl_mbuf *tail);

/**
 * Leaves the first `offset` bytes in the packet, and gives the others as a packet of the caller's with the same metadata.
 * What follows the cut within a segment is copied into packets of `pool`. NULL: -EINVAL beyond the packet, -ENOMEM; nothing
 * has changed then. Owning thread.
 */
struct bl_mbuf *bl_mbuf_split(struct bl_mbuf *m,
                              uint32_t offset,
                              struct bl_pool *pool);

/**
 * Takes the segments from number `at` on off the packet, as a packet of the caller's with the same metadata. NULL: -EINVAL
 * where `at` is 0 or not below its segments. Owning thread.
 */
struct bl_mbuf *bl_mbuf_split_segments(struct bl_mbuf *m,
                                       uint16_t at);

/**
 * Brings all bytes into the first segment, and frees the others. Errors: -EMSGSIZE with length and room, -EBUSY where other
 * packets refer to its bytes; nothing has changed then. Owning thread.
 */
int bl_mbuf_linearize(struct bl_mbuf *m);

/**
 * A packet of the caller's, made of headers of `pool`, that shares the bytes of `m` and carries its metadata. While both live,
 * neither may be written. The pool may be one without rooms. NULL: -ENOMEM, -EOVERFLOW. Owning thread.
 */
struct bl_mbuf *bl_mbuf_clone(struct bl_mbuf *m,
                              struct bl_pool *pool);

/**
 * A packet of `pool`, the caller's, that holds its own copy of `len` bytes from `offset`, and the metadata. NULL: -EINVAL
 * beyond the packet, -ENOMEM. Owning thread.
 */
struct bl_mbuf *bl_mbuf_copy(const struct bl_mbuf *m,
                             struct bl_pool *pool,
                             uint32_t offset,
                             uint32_t len);

/**
 * Sets up the shared part of an external buffer, with one reference, which `bl_mbuf_attach_ext` takes. `free_cb` is called
 * once, on the thread that drops the last reference, with the buffer's address and `opaque`; NULL: nobody is told.
 * `shared` may lie in the buffer, and must live until then. Any thread.
 */
int bl_ext_shared_init(struct bl_ext_shared *shared,
                       void (*free_cb)(void *addr, void *opaque),
                       void *opaque);

/**
 * Points a fresh packet at `len` bytes from `addr`: they are its buffer, empty of data and without headroom, until it is
 * freed. `iova` is their address for a device, or BL_NO_IOVA. The packet takes one reference of `shared`.
 * Errors: -EINVAL for NULLs or a count of 0, -EBUSY where the packet is attached, shared or chained; the reference stays with
 * the caller then. Owning thread.
 */
int bl_mbuf_attach_ext(struct bl_mbuf *m,
                       void *addr,
                       uint64_t iova,
                       uint16_t len,
                       struct bl_ext_shared *shared);

/**
 * 0 where the packet is what its header says: lengths within the buffers, that add up. Else -EINVAL. Owning thread.
 */
int bl_mbuf_validate(const struct bl_mbuf *m);

/**
 * Makes a ring of `count` entries, a power of two unless BL_RING_EXACT, at most 2^30. The caller owns it, and what it holds.
 * `flags` are BL_RING_… or-ed; without them any number of threads may be at either side. NULL: -EINVAL, -ENOMEM. Control thread.
 */
struct bl_ring *bl_ring_create(const char *name,
                               uint32_t count,
                               uint32_t flags);

/**
 * Frees a ring that nobody uses any more. Pointers that are still in it are the caller's. Errors: -EINVAL. Control thread.
 */
int bl_ring_free(struct bl_ring *ring);

/**
 * Puts all `n` pointers or none; returns `n` or 0. The free entries after it go to `free_count`, unless that is NULL. Hot.
 * Any thread; one at a time with BL_RING_SINGLE_PRODUCER.
 */
uint32_t bl_ring_enqueue_bulk(struct bl_ring *ring,
                              void *const *objs,
                              uint32_t n,
                              uint32_t *free_count);

/**
 * Puts as many of `n` pointers as fit, from the front; returns how many. Else as `bl_ring_enqueue_bulk`.
 */
uint32_t bl_ring_enqueue_burst(struct bl_ring *ring, void *const *objs, uint32_t n, uint32_t *free_count);

/**
 * Takes `n` pointers or none; returns `n` or 0. The entries left after it go to `left`, unless that is NULL. Hot.
 * Any thread; one at a time with BL_RING_SINGLE_CONSUMER.
 */
uint32_t bl_ring_dequeue_bulk(struct bl_ring *ring, void **objs, uint32_t n, uint32_t *left);

/**
 * Takes up to `n` pointers; returns how many. Else as `bl_ring_dequeue_bulk`.
 */
uint32_t bl_ring_dequeue_burst(struct bl_ring *ring, void **objs, uint32_t n, uint32_t *left);

/**
 * Entries that can be taken now. Any thread.
 */
uint32_t bl_ring_count(const struct bl_ring *ring);

/**
 * Entries that can be put now. Any thread.
 */
uint32_t bl_ring_free_count(const struct bl_ring *ring);

/**
 * Entries in all. Any thread.
 */
uint32_t bl_ring_capacity(const struct bl_ring *ring);

/**
 * How many ports are open. Any thread.
 */
uint32_t bl_port_count(void);

/**
 * The first open port from number `from` on, or -ENODEV (without a text) where there is none: for walking over all.
 * Any thread.
 */
int bl_port_next(uint32_t from);

/**
 * The number of the port of this name, or -ENODEV. Any thread.
 */
int bl_port_by_name(const char *name);

/**
 * The port as it is now, into the `size` bytes of `info`. Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_port_info_get(uint16_t port, struct bl_port_info *out, size_t size);

/**
 * Sets queue counts, MTU and scatter of a port that is not started; queues that were set up before are gone.
 * Errors: -EINVAL and -ENOTSUP with what the device can do, -EBUSY where it runs or a queue is in a poll group, -ENODEV,
 * -E2BIG. Control thread.
 */
int bl_port_configure(uint16_t port,
                      const struct bl_port_conf *conf);

/**
 * Starts the port's queues. Errors: -EINVAL for a queue that was not set up, -EBUSY before bl_port_configure, what the device
 * says; nothing runs then. Control thread.
 */
int bl_port_start(uint16_t port);

/**
 * Stops the port: from the return on no queue runs, what was staged is announced, and every packet that its queues held is
 * back in its pool. Bursts on it give 0 from then on. Returns how many announced packets the device had not sent within a
 * second (also xstat tx_undrained); 0 for all well, and on a port that does not run.
 * Errors: -EBUSY, with nothing changed, where a thread stays inside a burst for over a second; -ENODEV.
 * Any thread, also while others burst.
 */
int bl_port_stop(uint16_t port);

/**
 * Stops and closes the port. Bursts on it give 0. Its number may be used again from then on; that of a port which `bl_init`
 * made, after `bl_cleanup`.
 * Errors: as bl_port_stop. Any thread.
 */
int bl_port_close(uint16_t port);

/**
 * Puts a port around the port, before it is configured: "trace,file=trace.txt" writes down every packet, "fault,rx_drop=0.01" loses some.
 * Errors: -EINVAL with the key or value and what is allowed, -EBUSY where it is configured, -ENODEV. Control thread.
 */
int bl_port_wrap(uint16_t port,
                 const char *spec);

/**
 * Sets up receive queue `queue` with `n_desc` descriptors (0: the usual number), fed from `pool`, which is then in use until
 * the port is closed or configured again.
 * Errors: -EINVAL with the limits, -ENOSPC with the packets that the pool would need, -EBUSY where the port runs or was not
 * configured, -ENODEV. Control thread.
 */
int bl_rx_queue_setup(uint16_t port,
                      uint16_t queue,
                      uint32_t n_desc,
                      struct bl_pool *pool);

/**
 * Sets up send queue `queue` with `n_desc` descriptors (0: the usual number). Errors: as bl_rx_queue_setup. Control thread.
 */
int bl_tx_queue_setup(uint16_t port,
                      uint16_t queue,
                      uint32_t n_desc);

/**
 * Gives the receive and the send queue of this number back: another thread may burst on them from the return on. What is
 * staged is announced. A queue belongs to the thread of its first burst until then, or until the port stops, or the thread
 * unregisters or ends. Errors: -ENODEV, -EINVAL where there is neither. Owning thread.
 */
int bl_queue_unbind(uint16_t port,
                    uint16_t queue);

/**
 * A descriptor that is readable while packets wait on receive queue `queue`; the port's, good while it is open.
 * Errors: -ENOTSUP where it has none (see BL_CAP_RX_FD), -ENODEV. Any thread.
 */
int bl_port_rx_fd(uint16_t port, uint16_t queue);

/**
 * The link, read from the device, into the `size` bytes of `link`. Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_link_get(uint16_t port, struct bl_link *link, size_t size);

/**
 * Sets the link up (1) or down (0). Errors: -ENOTSUP, -ENODEV, what the device says. Control thread.
 */
int bl_link_set(uint16_t port, int up);

/**
 * The station address: 6 bytes to `mac`. Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_mac_get(uint16_t port, uint8_t *mac);

/**
 * Sets the station address to the 6 bytes at `mac`. Errors: -EINVAL for a group or all-zero one, -ENOTSUP, -ENODEV. Control thread.
 */
int bl_mac_set(uint16_t port,
               const uint8_t *mac);

/**
 * The MTU in bytes, to `mtu`: without Ethernet header, VLAN tag and FCS. Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_mtu_get(uint16_t port, uint32_t *mtu);

/**
 * Sets the MTU. Errors: -EINVAL with the device's range, -ENOTSUP, -ENODEV. Control thread.
 */
int bl_mtu_set(uint16_t port, uint32_t mtu);

/**
 * 1 in promiscuous mode, else 0. Errors: -ENODEV. Any thread.
 */
int bl_promiscuous_get(uint16_t port);

/**
 * Sets promiscuous mode on (1) or off (0). Errors: -ENOTSUP, -ENODEV. Control thread.
 */
int bl_promiscuous_set(uint16_t port, int on);

/**
 * Receives up to `n` packets into `pkts`; returns how many. They are the caller's. 0 where none wait, and on a port that does
 * not run. Hot. Owning thread.
 */
uint16_t bl_rx_burst(uint16_t port,
                     uint16_t queue,
                     struct bl_mbuf **pkts,
                     uint16_t n);

/**
 * Sends packets from the front of `pkts`, and announces them; returns how many were taken, which are the library's from then
 * on. The others stay the caller's: the ring is full, or the port does not run. A packet that can never be sent (too long,
 * a bad chain) or not now (link down) is taken, freed and counted as oerrors. Hot. Owning thread.
 */
uint16_t bl_tx_burst(uint16_t port,
                     uint16_t queue,
                     struct bl_mbuf **pkts,
                     uint16_t n);

/**
 * Sends as bl_tx_burst; more follows. A queue in a poll group stages the packets, and announces them at the group's fill level
 * or where not all fit; the group announces the rest (see bl_poll_group_add_tx). Elsewhere it is bl_tx_burst. Hot. Owning thread.
 */
uint16_t bl_tx_burst_more(uint16_t port,
                          uint16_t queue,
                          struct bl_mbuf **pkts,
                          uint16_t n);

/**
 * Announces what is staged on the queue; returns how many packets that were. Hot. Owning thread.
 */
uint32_t bl_tx_flush(uint16_t port, uint16_t queue);

/**
 * Makes a poll group, which the caller owns. It may be made anywhere, and is then used by one thread. NULL: -ENOMEM. Any thread.
 */
struct bl_poll_group *bl_poll_group_create(void);

/**
 * Announces what is staged, takes every queue out, and frees the group. Errors: -EINVAL. Owning thread.
 */
int bl_poll_group_free(struct bl_poll_group *group);

/**
 * Adds a receive queue: when a whole lap over the group's started receive queues came back empty, what is staged is announced.
 * Errors: -EEXIST where the queue is in a group, -EBUSY where it is another thread's, -ENOSPC beyond 64, -EINVAL, -ENODEV. Owning thread.
 */
int bl_poll_group_add_rx(struct bl_poll_group *group,
                         uint16_t port,
                         uint16_t queue);

/**
 * Adds a send queue: bl_tx_burst_more on it stages, and announces at `fill` packets (1 to its descriptors). The group announces
 * the rest after an empty lap, or `deadline_us` microseconds after it saw them; it does so inside the receive calls of its
 * thread (without receive queues: the send calls). A thread that makes no calls announces nothing.
 * Errors: -ENOTSUP where the driver's doorbell is BL_DOORBELL_NONE, -EINVAL with the limits of `fill`, -EEXIST, -EBUSY, -ENOSPC, -ENODEV.
 * Owning thread.
 */
int bl_poll_group_add_tx(struct bl_poll_group *group,
                         uint16_t port,
                         uint16_t queue,
                         uint32_t fill,
                         uint32_t deadline_us);

/**
 * Announces everything that is staged in the group now. Returns how many packets, or -EINVAL. Owning thread.
 */
int bl_poll_group_flush(struct bl_poll_group *group);

/**
 * The port's counters since it was made or last reset, into the `size` bytes of `stats`. Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_stats_get(uint16_t port,
                 struct bl_stats *stats,
                 size_t size);

/**
 * Counts from zero again. Errors: -ENODEV. Any thread.
 */
int bl_stats_reset(uint16_t port);

/**
 * The counters of the receive and the send queue of this number since they were set up, as bl_stats_get. A reset of the port
 * does not change them. Errors: -ENODEV, -EINVAL where there is neither. Any thread.
 */
int bl_queue_stats_get(uint16_t port,
                       uint16_t queue,
                       struct bl_stats *stats,
                       size_t size);

/**
 * How many named counters the port has now, or -ENODEV. Any thread.
 */
int bl_xstats_count(uint16_t port);

/**
 * Writes up to `n` named counters to `out`, and returns how many there are: more than `n` where not all fitted.
 * Errors: -ENODEV, -EINVAL. Any thread.
 */
int bl_xstats_get(uint16_t port, struct bl_xstat *out, uint32_t n);

/**
 * A descriptor that is readable while some port has events that nobody took; the library's, never to be closed.
 * -errno where the kernel gives none. Any thread.
 */
int bl_events_fd(void);

/**
 * What happened on the port since the last call: BL_EVENT_… or-ed. Errors: -ENODEV. Any thread.
 */
int bl_port_events_take(uint16_t port);

/**
 * Calls `cb` with the port's events, on a control thread of the library's, until the port is closed. Links are looked at ten
 * times a second. `cb` may call anything, but not wait for another callback; it must not throw. Errors: -EINVAL, -ENODEV.
 * Control thread.
 */
int bl_port_on_event(uint16_t port,
                     bl_event_fn cb,
                     void *user);

/**
 * Gives the calling thread a slot: caches of the pools it uses. Returns its number. Threads without one work too, through the
 * pools' shared rings. Errors: -EEXIST where it has one, -ENOSPC where 128 threads have. Any thread.
 */
int bl_thread_register(void);

/**
 * Ends the calling thread's slot: its queues are unbound, its caches go back to their pools. The end of a thread does the same.
 * Errors: -ENOENT where it has none. Any thread.
 */
int bl_thread_unregister(void);

/**
 * The calling thread's slot, or -ENOENT (without a text). Any thread.
 */
int bl_thread_id(void);

/**
 * How many lcores there are: those of `-l`; without it the main one alone. Errors: -EAGAIN before bl_init. Any thread.
 */
int bl_lcore_count(void);

/**
 * The number of lcore `i` of bl_lcore_count, in ascending order. Errors: -EINVAL, -EAGAIN. Any thread.
 */
int bl_lcore_get(uint32_t i);

/**
 * The main lcore: that of the thread which called bl_init. Errors: -EAGAIN. Any thread.
 */
int bl_lcore_main(void);

/**
 * Runs `f(arg)` on a thread of its own, registered and pinned to the CPUs of the lcore, which is not the main one. `arg` is the
 * caller's, and must live until `f` returns. Wait for it by bl_lcore_wait before the lcore is launched again.
 * Errors: -EBUSY where it was not waited for, -EINVAL, -EAGAIN, what pinning says. Control thread.
 */
int bl_lcore_launch(uint32_t lcore,
                    bl_lcore_fn f,
                    void *arg);

/**
 * Waits until what the lcore was launched with has returned, `timeout_ms` milliseconds at most, and writes what it returned to
 * `result`, unless that is NULL. Errors: -ETIMEDOUT: it still runs, wait again; -EINVAL where it was not launched; -EAGAIN.
 * Control thread.
 */
int bl_lcore_wait(uint32_t lcore,
                  uint32_t timeout_ms,
                  int *result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BURSTLINE_H */
