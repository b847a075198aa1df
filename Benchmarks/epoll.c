// The bare minimum of an HTTP server: one epoll loop that finds the end of each request and writes a fixed response. It
// neither parses nor looks anything up, so it bounds what any server can reach on this machine. It also serves as the
// origin behind the servers that are measured.
//
//   epoll BYTES [FIELD]...           prints its port; FIELD is a whole header line, without its end
//   epoll --pages COUNT [FIELD]...   the origin of the large store: /pages/N holds COUNT objects that no other page has; in the
//                                    response to a PATCH each has a color of its own
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { buffer_size = 65536 };

struct connection {
    int descriptor;
    size_t filled;
    char buffer[buffer_size];
};

static char *response;
static size_t response_length;
static int objects_per_page, page_field_count;
static char **page_fields;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void make_response(size_t size, int field_count, char **fields) {
    response = malloc(size + 4096);
    size_t length = (size_t)sprintf(response, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", size);
    for (int i = 0; i < field_count; i++) length += (size_t)sprintf(response + length, "%s\r\n", fields[i]);
    length += (size_t)sprintf(response + length, "\r\n");
    // A JSON document of exactly that size: {"id":1,"text":"xxx…"}
    char *body = response + length;
    memset(body, 'x', size);
    memcpy(body, "{\"id\":1,\"text\":\"", 16);
    memcpy(body + size - 2, "\"}", 2);
    response_length = length + size;
}

// The page that a request asks for: labels in the manner of GitHub's, numbered through.
static void make_page(const char *request, size_t length) {
    const char *slash = memmem(request, length, "/pages/", 7);
    long first = (slash ? strtol(slash + 7, NULL, 10) : 0) * objects_per_page;
    static char *body;
    if (body == NULL) body = malloc((size_t)objects_per_page * 512 + 16), response = malloc((size_t)objects_per_page * 512 + 4096);
    size_t size = (size_t)sprintf(body, "[");
    static unsigned changes;
    int is_write = memmem(request, length, "PATCH ", 6) != NULL;
    for (long id = first; id < first + objects_per_page; id++)
        size += (size_t)sprintf(body + size,
                                "%s{\"id\":%ld,\"node_id\":\"MDU6TGFiZWw%ld\",\"url\":\"https://api.example.com/repos/octo/larder/labels/area-%ld\","
                                "\"name\":\"area-%ld\",\"description\":\"Everything about area %ld\",\"color\":\"%06x\",\"default\":false}",
                                id > first ? "," : "", id, id, id, id, id, is_write ? ++changes & 0xffffff : 0xf29510 + (unsigned)(id % 10));
    size += (size_t)sprintf(body + size, "]");
    response_length = (size_t)sprintf(response, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", size);
    for (int i = 0; i < page_field_count; i++) response_length += (size_t)sprintf(response + response_length, "%s\r\n", page_fields[i]);
    response_length += (size_t)sprintf(response + response_length, "\r\n");
    memcpy(response + response_length, body, size);
    response_length += size;
}

// Writes all of it; on a full socket buffer, which 64 small responses do not meet, it waits.
static int write_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(descriptor, bytes, count);
        if (written < 0 && errno == EAGAIN) continue;
        if (written <= 0) return -1;
        bytes += written;
        count -= (size_t)written;
    }
    return 0;
}

static int serve(struct connection *connection) {
    ssize_t count = read(connection->descriptor, connection->buffer + connection->filled, buffer_size - connection->filled);
    if (count < 0 && errno == EAGAIN) return 0;
    if (count <= 0) return -1;
    connection->filled += (size_t)count;
    char *start = connection->buffer, *end = start + connection->filled, *found;
    while ((found = memmem(start, (size_t)(end - start), "\r\n\r\n", 4))) {
        if (objects_per_page > 0) make_page(start, (size_t)(found - start));
        if (write_all(connection->descriptor, response, response_length)) return -1;
        start = found + 4;
    }
    connection->filled = (size_t)(end - start);
    memmove(connection->buffer, start, connection->filled);
    return connection->filled == buffer_size ? -1 : 0;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2 && strcmp(argv[1], "--pages") == 0 && atoi(argv[2]) > 0) {
        objects_per_page = atoi(argv[2]);
        page_field_count = argc - 3;
        page_fields = argv + 3;
    } else if (argc > 1 && atoi(argv[1]) >= 32) {
        make_response((size_t)atoi(argv[1]), argc - 2, argv + 2);
    } else {
        fprintf(stderr, "usage: epoll BYTES [FIELD]... | epoll --pages COUNT [FIELD]...\n");
        return 64;
    }

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024)) fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[256];
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event)) fail("epoll");
    for (;;) {
        int ready = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                int descriptor;
                while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    connection = malloc(sizeof *connection);
                    connection->descriptor = descriptor;
                    connection->filled = 0;
                    event = (struct epoll_event){.events = EPOLLIN, .data.ptr = connection};
                    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
                }
            } else if (serve(connection)) {
                close(connection->descriptor);
                free(connection);
            }
        }
    }
}
