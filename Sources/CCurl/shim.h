#pragma once
#include <curl/curl.h>
#include <openssl/ssl.h>

/* libcurl's setters and getters are variadic, which Swift cannot call: one typed form per kind of value. */

static inline CURLcode larder_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode larder_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode larder_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode larder_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode larder_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

/* The write, header and read callbacks share one type. */
static inline CURLcode larder_easy_set_data_callback(CURL *easy, CURLoption option, curl_write_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode larder_easy_set_seek_callback(CURL *easy, CURLoption option, curl_seek_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode larder_easy_set_prereq_callback(CURL *easy, CURLoption option, curl_prereq_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode larder_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode larder_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode larder_easy_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLMcode larder_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode larder_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode larder_multi_set_socket_callback(CURLM *multi, CURLMoption option,
                                                         curl_socket_callback callback) {
    return curl_multi_setopt(multi, option, callback);
}

static inline CURLMcode larder_multi_set_timer_callback(CURLM *multi, CURLMoption option,
                                                        curl_multi_timer_callback callback) {
    return curl_multi_setopt(multi, option, callback);
}

/* A union member whose name is not visible through the enum that guards it. */
static inline CURLcode larder_message_result(const CURLMsg *message) {
    return message->data.result;
}
