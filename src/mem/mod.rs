//! Memory: the page ladder, segments, the process arena, NUMA.
