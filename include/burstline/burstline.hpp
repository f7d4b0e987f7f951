// Burstline for C++17: owners that give back what they hold. Move-only, no exceptions: an owner that could not be made is false,
// and bl_last_error() has the text. Everything else is the C API, on the raw handles.
#ifndef BURSTLINE_HPP
#define BURSTLINE_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "../burstline.h"

namespace burstline {

/// A pool. Its end is bl_pool_close: packets that are out stay good.
class Pool {
public:
    Pool() = default;
    explicit Pool(bl_pool_conf conf) : pool_(nullptr)
    {
        conf.size = sizeof conf;
        pool_ = bl_pool_create(&conf);
    }
    explicit Pool(const char *name, std::uint32_t n = 0)
    {
        bl_pool_conf conf{};
        conf.size = sizeof conf;
        conf.name = name;
        conf.n = n;
        pool_ = bl_pool_create(&conf);
    }
    Pool(Pool &&o) noexcept : pool_(std::exchange(o.pool_, nullptr)) {}
    Pool &operator=(Pool &&o) noexcept
    {
        std::swap(pool_, o.pool_);
        return *this;
    }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    ~Pool()
    {
        if (pool_)
            bl_pool_close(pool_);
    }

    explicit operator bool() const { return pool_ != nullptr; }
    bl_pool *get() const { return pool_; }
    bl_pool *release() { return std::exchange(pool_, nullptr); }
    std::uint32_t available() const { return bl_pool_available(pool_); }

private:
    bl_pool *pool_ = nullptr;
};

/// A packet; freed at its end.
class Mbuf {
public:
    Mbuf() = default;
    explicit Mbuf(bl_mbuf *m) : m_(m) {}
    explicit Mbuf(const Pool &pool) : m_(bl_mbuf_alloc(pool.get())) {}
    Mbuf(Mbuf &&o) noexcept : m_(std::exchange(o.m_, nullptr)) {}
    Mbuf &operator=(Mbuf &&o) noexcept
    {
        std::swap(m_, o.m_);
        return *this;
    }
    Mbuf(const Mbuf &) = delete;
    Mbuf &operator=(const Mbuf &) = delete;
    ~Mbuf() { bl_mbuf_free(m_); }

    explicit operator bool() const { return m_ != nullptr; }
    bl_mbuf *get() const { return m_; }
    bl_mbuf *operator->() const { return m_; }
    bl_mbuf *release() { return std::exchange(m_, nullptr); }
    std::uint8_t *data() const { return static_cast<std::uint8_t *>(bl_mbuf_data(m_)); }

private:
    bl_mbuf *m_ = nullptr;
};

/// Up to N packets between a receive and a send; those still inside are freed at its end.
template <std::uint16_t N = 32> class Burst {
public:
    Burst() = default;
    Burst(const Burst &) = delete;
    Burst &operator=(const Burst &) = delete;
    ~Burst() { clear(); }

    /// Receives behind what is inside, up to its room.
    std::uint16_t rx(std::uint16_t port, std::uint16_t queue)
    {
        compact();
        std::uint16_t n = bl_rx_burst(port, queue, pkts_ + tail_, static_cast<std::uint16_t>(N - tail_));
        tail_ = static_cast<std::uint16_t>(tail_ + n);
        return n;
    }
    /// Sends from the front; what was not taken stays inside.
    std::uint16_t tx(std::uint16_t port, std::uint16_t queue)
    {
        std::uint16_t n = bl_tx_burst(port, queue, pkts_ + head_, size());
        head_ = static_cast<std::uint16_t>(head_ + n);
        return n;
    }
    /// As tx; more follows.
    std::uint16_t tx_more(std::uint16_t port, std::uint16_t queue)
    {
        std::uint16_t n = bl_tx_burst_more(port, queue, pkts_ + head_, size());
        head_ = static_cast<std::uint16_t>(head_ + n);
        return n;
    }
    /// Adds at the end; gives the packet back where there is no room.
    Mbuf push(Mbuf m)
    {
        if (tail_ == N)
            compact();
        if (tail_ == N || !m)
            return m;
        pkts_[tail_++] = m.release();
        return Mbuf();
    }
    /// Takes from the front.
    Mbuf pop() { return Mbuf(empty() ? nullptr : pkts_[head_++]); }
    void clear()
    {
        bl_mbuf_free_bulk(pkts_ + head_, size());
        head_ = tail_ = 0;
    }

    std::uint16_t size() const { return static_cast<std::uint16_t>(tail_ - head_); }
    bool empty() const { return head_ == tail_; }
    bl_mbuf **begin() { return pkts_ + head_; }
    bl_mbuf **end() { return pkts_ + tail_; }

private:
    void compact()
    {
        std::uint16_t n = size();
        for (std::uint16_t i = 0; i < n; i++)
            pkts_[i] = pkts_[head_ + i];
        head_ = 0;
        tail_ = n;
    }

    bl_mbuf *pkts_[N] = {};
    std::uint16_t head_ = 0, tail_ = 0;
};

/// A port; stopped and closed at its end.
class Port {
public:
    Port() = default;
    /// Makes a virtual device: "net_null0,size=128".
    explicit Port(const char *vdev) : id_(bl_vdev_probe(vdev)) {}
    Port(Port &&o) noexcept : id_(std::exchange(o.id_, -1)) {}
    Port &operator=(Port &&o) noexcept
    {
        std::swap(id_, o.id_);
        return *this;
    }
    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;
    ~Port()
    {
        if (id_ >= 0)
            bl_port_close(id());
    }

    explicit operator bool() const { return id_ >= 0; }
    std::uint16_t id() const { return static_cast<std::uint16_t>(id_); }

    /// Configures `queues` receive and as many send queues, fed from `pool`, and starts them: 0 or -errno.
    int start(const Pool &pool, std::uint16_t queues = 1)
    {
        bl_port_conf conf{};
        conf.size = sizeof conf;
        conf.n_rx = conf.n_tx = queues;
        int e = bl_port_configure(id(), &conf);
        for (std::uint16_t q = 0; e == 0 && q < queues; q++) {
            e = bl_rx_queue_setup(id(), q, 0, pool.get());
            if (e == 0)
                e = bl_tx_queue_setup(id(), q, 0);
        }
        return e == 0 ? bl_port_start(id()) : e;
    }
    int stop() { return bl_port_stop(id()); }
    bl_stats stats() const
    {
        bl_stats s{};
        bl_stats_get(id(), &s, sizeof s);
        return s;
    }

private:
    int id_ = -1;
};

} // namespace burstline

#endif // BURSTLINE_HPP
