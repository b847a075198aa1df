#pragma once
#include <hiredis/hiredis.h>
#include <stdlib.h>

/* hiredis makes room for an array before its elements have come. A server could name any number of them. */
#define LARDER_MOST_ELEMENTS (1 << 16)

static void *larder_create_array(const redisReadTask *task, int elements) {
    redisReplyObjectFunctions *standard = (redisReplyObjectFunctions *)task->privdata;
    return elements > LARDER_MOST_ELEMENTS ? NULL : standard->createArray(task, elements);
}

/* Bounds the arrays in replies. What it returns is to be freed after the context. */
static inline redisReplyObjectFunctions *larder_limit_arrays(redisContext *context) {
    redisReplyObjectFunctions *functions = (redisReplyObjectFunctions *)malloc(sizeof *functions);
    if (functions == NULL) return NULL;
    *functions = *context->reader->fn;
    functions->createArray = larder_create_array;
    context->reader->privdata = context->reader->fn;
    context->reader->fn = functions;
    return functions;
}
