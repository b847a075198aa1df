#pragma once
/* First, so that libevent's own _GNU_SOURCE does not give this module another
   fd_set than the one Glibc's module has (swiftlang/swift#69311). */
#include <features.h>
#include <event2/event.h>
#include <event2/thread.h>
