// burstline.hpp: what is made is given back, also when it moves.
#include <utility>

#include "burstline/burstline.hpp"
#include "check.h"

using namespace burstline;

int main()
{
    Pool pool("raii", 512);
    CHECK(pool);
    CHECK(!Pool("raii", 512));
    {
        Port a("net_null0,size=100"), b("net_null1"), none("net_nothing0");
        CHECK(a && b && !none);
        CHECK(a.start(pool) == 0 && b.start(pool) == 0);
        Burst<32> burst;
        for (int i = 0; i < 100; i++) {
            CHECK(burst.rx(a.id(), 0) == 32);
            CHECK(burst.tx(b.id(), 0) == 32 && burst.empty());
        }
        CHECK(b.stats().opackets == 3200 && a.stats().ibytes == 320000);
        CHECK(burst.rx(a.id(), 0) == 32);
        Mbuf first = burst.pop();
        CHECK(first && first->pkt_len == 100 && burst.size() == 31);
        CHECK(!burst.push(std::move(first)) && !first && burst.size() == 32);
        Mbuf more(pool);
        Mbuf back = burst.push(std::move(more));
        CHECK(back && back.data() == bl_mbuf_data(back.get()));
        for (bl_mbuf *m : burst)
            CHECK(m->pkt_len == 100);
        Port moved = std::move(a);
        CHECK(moved && !a && moved.stop() == 0);
    }
    CHECK(bl_port_count() == 0 && pool.available() == 512);
    Pool moved = std::move(pool);
    CHECK(!pool && bl_pool_free(moved.release()) == 0);
    return 0;
}
