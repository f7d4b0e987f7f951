/* Lists the drivers that are built in: the same in every kind of link. */
#include "check.h"

int main(void)
{
    struct bl_driver_info d;
    uint32_t i;
    for (i = 0; i < bl_driver_count(); i++) {
        CHECK(bl_driver_get(i, &d, sizeof d) == 0);
        printf("%s\n", d.name);
    }
    CHECK_FAILS(bl_driver_get(i, &d, sizeof d), EINVAL, "there are");
    return 0;
}
