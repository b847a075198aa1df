// The load of a fleet on its server: machines that announce writes, and read all that is announced.
//
//   fleetload PORT ANNOUNCE BYTES MACHINES RATE SECONDS
//
// ANNOUNCE is a file with the script that appends news; BYTES are the lengths of the entries of one write, such as 300,500; RATE
// is the number of writes a second of all machines together. Each machine has two connections, as Larder has: one reads the
// stream with XREAD, 32 entries at a time, and looks at the epoch four times a second; the other sends what is due, 64 commands
// at a time. It prints: writes a second, entries a second that each machine has read, and the median and the 99th percentile of
// the time from an entry's milliseconds to its arrival, in ms.
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { most_entries = 8, most_delays = 1 << 22 };

static int port, machines, entry_count;
static size_t lengths[most_entries];
static double rate, seconds, begun;
static char digest[64], filler[1 << 18];
static atomic_int is_over;
static atomic_long written, read_entries, delay_count;
static float delays[most_delays];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double wall_milliseconds(void) {
    struct timeval time;
    gettimeofday(&time, NULL);
    return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

static redisContext *connected(void) {
    redisContext *context = redisConnect("127.0.0.1", port);
    if (!context || context->err) {
        fprintf(stderr, "no connection to the server\n");
        exit(1);
    }
    return context;
}

static redisReply *checked(redisReply *reply, const char *what) {
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s: %s\n", what, reply ? reply->str : "no reply");
        exit(1);
    }
    return reply;
}

static void *reads(void *unused) {
    (void)unused;
    redisContext *context = connected();
    char position[64] = "0-0";
    double looked = now();
    while (!atomic_load(&is_over)) {
        redisReply *reply = checked(redisCommand(context, "XREAD COUNT 32 BLOCK 250 STREAMS larder:load:1:news larder:load:1:words %s 0-0", position), "XREAD");
        double arrived = wall_milliseconds();
        if (reply->type == REDIS_REPLY_ARRAY) {
            redisReply *entries = reply->element[0]->element[1];
            for (size_t i = 0; i < entries->elements; i++) {
                redisReply *id = entries->element[i]->element[0];
                snprintf(position, sizeof position, "%s", id->str);
                long place = atomic_fetch_add(&delay_count, 1);
                if (place < most_delays) delays[place] = (float)(arrived - strtod(id->str, NULL));
            }
            atomic_fetch_add(&read_entries, (long)entries->elements);
        }
        freeReplyObject(reply);
        if (now() - looked < 0.25) continue;
        looked = now();
        redisAppendCommand(context, "TIME");
        redisAppendCommand(context, "HMGET larder:load epoch server last");
        for (int i = 0; i < 2; i++) {
            void *found = NULL;
            redisGetReply(context, &found);
            freeReplyObject(checked(found, "HMGET"));
        }
    }
    redisFree(context);
    return NULL;
}

static void *writes(void *unused) {
    (void)unused;
    redisContext *context = connected();
    long sent = 0;
    while (!atomic_load(&is_over)) {
        long due = (long)((now() - begun) * rate / machines) * entry_count - sent;
        if (due <= 0) {
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
            continue;
        }
        int count = due > 64 ? 64 : (int)due;
        for (int i = 0; i < count; i++)
            redisAppendCommand(context, "EVALSHA %s 2 larder:load larder:load:1:news 1 100000 %b", digest, filler, lengths[(sent + i) % entry_count]);
        for (int i = 0; i < count; i++) {
            void *found = NULL;
            redisGetReply(context, &found);
            freeReplyObject(checked(found, "EVALSHA"));
        }
        sent += count;
        atomic_fetch_add(&written, count);
    }
    redisFree(context);
    return NULL;
}

static int compare(const void *one, const void *other) {
    float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: fleetload PORT ANNOUNCE BYTES MACHINES RATE SECONDS\n");
        return 64;
    }
    port = atoi(argv[1]);
    for (char *at = strtok(argv[3], ","); at && entry_count < most_entries; at = strtok(NULL, ",")) lengths[entry_count++] = strtoul(at, NULL, 10);
    machines = atoi(argv[4]);
    rate = atof(argv[5]);
    seconds = atof(argv[6]);
    static char script[1 << 16];
    FILE *file = fopen(argv[2], "r");
    if (!file || fread(script, 1, sizeof script - 1, file) == 0) {
        perror(argv[2]);
        return 1;
    }
    redisContext *context = connected();
    snprintf(digest, sizeof digest, "%s", checked(redisCommand(context, "SCRIPT LOAD %s", script), "SCRIPT")->str);
    checked(redisCommand(context, "DEL larder:load:1:news"), "DEL");
    checked(redisCommand(context, "HSET larder:load epoch 1 server x last 0-0"), "HSET");
    for (size_t i = 0; i < sizeof filler; i++) filler[i] = (char)rand();
    begun = now();
    pthread_t threads[2 * machines];
    for (int i = 0; i < machines; i++) {
        pthread_create(&threads[2 * i], NULL, reads, NULL);
        pthread_create(&threads[2 * i + 1], NULL, writes, NULL);
    }
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
    double taken = now() - begun;
    long entries = atomic_load(&written), arrived = atomic_load(&read_entries);
    atomic_store(&is_over, 1);
    for (int i = 0; i < 2 * machines; i++) pthread_join(threads[i], NULL);
    long count = atomic_load(&delay_count) < most_delays ? atomic_load(&delay_count) : most_delays;
    qsort(delays, (size_t)count, sizeof *delays, compare);
    printf("%.1f %.1f %.2f %.2f\n", (double)entries / entry_count / taken, (double)arrived / machines / taken, count ? delays[count / 2] : 0,
           count ? delays[count * 99 / 100] : 0);
}
