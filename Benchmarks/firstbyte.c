// How long the first byte of a response takes, from several servers in turn, on one kept connection each.
//
//   firstbyte COUNT PORT...      prints per port: the median and the 90th percentile, in microseconds
//   firstbyte @FILE PORT...      the same for the paths in a file, one a line; those of a turn are one for each port
//
// Every request asks for another path, so that a cache misses each time. The turns interleave: whatever else the machine
// does meets all servers alike. Who begins changes from turn to turn, since some go on working behind their response.
// A port such as redis:6379 is a server of the Redis protocol, from which the line is got as a key.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static int connected(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address)) {
        perror("connect");
        exit(1);
    }
    return descriptor;
}

// Reads on to the end of a response that gives its length or comes in chunks, from what has been read already.
static void finish(int descriptor, char *buffer, size_t filled, size_t size) {
    for (;;) {
        buffer[filled] = 0;
        char *end = memmem(buffer, filled, "\r\n\r\n", 4), *line = memmem(buffer, filled, "\r\n", 2);
        if (buffer[0] == '$' && line) {
            if (filled >= (size_t)(line + 4 - buffer) + strtoul(buffer + 1, NULL, 10)) return;
            end = NULL;
        }
        if (end) {
            char *length = strcasestr(buffer, "\r\ncontent-length:");
            if (length && length < end) {
                if (filled >= (size_t)(end + 4 - buffer) + strtoul(length + 17, NULL, 10)) return;
            } else if (filled >= 5 && memcmp(buffer + filled - 5, "0\r\n\r\n", 5) == 0) {
                return;
            }
        }
        ssize_t count = read(descriptor, buffer + filled, size - 1 - filled);
        if (count <= 0) {
            fprintf(stderr, "the connection ended inside a response\n");
            exit(1);
        }
        filled += (size_t)count;
    }
}

static char *contents(const char *name) {
    FILE *file = fopen(name, "r");
    if (!file) {
        perror(name);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    size = fread(text, 1, size, file);
    fclose(file);
    return text;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: firstbyte COUNT|@FILE PORT...\n");
        return 64;
    }
    int count = atoi(argv[1]), servers = argc - 2;
    static char buffer[1 << 20], request[1024], path[256];
    char *lines = argv[1][0] == '@' ? contents(argv[1] + 1) : NULL, *targets[servers];
    if (lines) {
        count = 0;
        for (char *at = lines; *at; at++) count += *at == '\n';
        count = count / servers * 10 / 11;
    }
    double *times[servers];
    int descriptors[servers], is_redis[servers];
    for (int s = 0; s < servers; s++) {
        char *colon = strchr(argv[s + 2], ':');
        is_redis[s] = colon != NULL;
        descriptors[s] = connected(atoi(colon ? colon + 1 : argv[s + 2]));
        times[s] = malloc(sizeof(double) * (size_t)count);
    }
    int seed = (int)getpid();
    for (int i = -count / 10; i < count; i++) {  // a tenth to warm up
        for (int s = 0; lines && s < servers; s++) targets[s] = strsep(&lines, "\n");
        for (int turn = 0; turn < servers; turn++) {
            int s = (turn + i + count) % servers;
            snprintf(path, sizeof path, "/miss/%d/%d", seed, i + count);
            char *target = lines ? targets[s] : path;
            int length =
                is_redis[s] ? snprintf(request, sizeof request, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(target), target)
                            : snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", target, argv[s + 2]);
            double start = now();
            if (write(descriptors[s], request, (size_t)length) != length) return 1;
            ssize_t received = read(descriptors[s], buffer, sizeof buffer - 1);
            double taken = now() - start;
            if (received <= 0) return 1;
            finish(descriptors[s], buffer, (size_t)received, sizeof buffer);
            if (i >= 0) times[s][i] = taken;
        }
    }
    for (int s = 0; s < servers; s++) {
        qsort(times[s], (size_t)count, sizeof(double), compare);
        printf("%s %.1f %.1f\n", argv[s + 2], times[s][count / 2], times[s][count * 9 / 10]);
    }
}
