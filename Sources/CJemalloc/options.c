/* The options with which jemalloc begins (jemalloc(3), TUNING). Bodies are allocated on one thread and freed on another, so with an arena for
   each thread the daemon would keep more memory than it uses; and what was freed goes back to the system after a second, not after ten. */
const char *malloc_conf = "narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0";
