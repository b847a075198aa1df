#pragma once
/* First, so that libevent's own _GNU_SOURCE does not give this module another
   fd_set than the one Glibc's module has (swiftlang/swift#69311). */
#include <features.h>
#include <event2/event.h>
#include <event2/thread.h>

/* System calls around the loop that Swift's Glibc module leaves out. Declared by hand, because glibc's own
   declarations want _GNU_SOURCE (see above). */
#include <malloc.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);
int pthread_setname_np(pthread_t thread, const char *name);
