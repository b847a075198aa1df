// Inserts the rows of a store into a new file of the same schema, as fast as SQLite takes them: prepared statements, WAL,
// many rows to a transaction. What it reaches is what a store could reach that did nothing but insert.
//
//   bare-sqlite STORE NEW TRANSACTIONS       prints the rows and the seconds
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct table {
    char *name;
    sqlite3_stmt *insert;
    int columns;
    long rows;
    sqlite3_value **values;
};

static sqlite3 *source, *target;

static void check(sqlite3 *db, int code, int wanted, const char *what) {
    if (code == wanted) return;
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    exit(1);
}

static void run(sqlite3 *db, const char *sql) { check(db, sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, sql); }

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    check(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, sql);
    return statement;
}

// Tables and indexes, no views and triggers; SQLite makes its own tables itself.
static void copy_schema(void) {
    sqlite3_stmt *schema = prepare(source, "SELECT sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC");
    while (sqlite3_step(schema) == SQLITE_ROW) run(target, (const char *)sqlite3_column_text(schema, 0));
    sqlite3_finalize(schema);
}

static void load(struct table *table) {
    char sql[1024];
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table->name);
    sqlite3_stmt *rows = prepare(source, sql);
    table->columns = sqlite3_column_count(rows);
    size_t room = 0, used = 0;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int column = 0; column < table->columns; column++) {
            if (used == room) table->values = realloc(table->values, (room = room ? room * 2 : 1024) * sizeof *table->values);
            table->values[used++] = sqlite3_value_dup(sqlite3_column_value(rows, column));
        }
        table->rows++;
    }
    sqlite3_finalize(rows);
    int length = snprintf(sql, sizeof sql, "INSERT INTO \"%s\" VALUES (", table->name);
    for (int column = 0; column < table->columns; column++) length += snprintf(sql + length, sizeof sql - (size_t)length, column ? ",?" : "?");
    snprintf(sql + length, sizeof sql - (size_t)length, ")");
    table->insert = prepare(target, sql);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: bare-sqlite STORE NEW TRANSACTIONS\n"), 64;
    check(source, sqlite3_open_v2(argv[1], &source, SQLITE_OPEN_READONLY, NULL), SQLITE_OK, argv[1]);
    check(target, sqlite3_open(argv[2], &target), SQLITE_OK, argv[2]);
    long transactions = atol(argv[3]);

    // As the store has them, where they matter to the cost of a row.
    sqlite3_stmt *pragma = prepare(source, "PRAGMA page_size");
    sqlite3_step(pragma);
    char sql[256];
    snprintf(sql, sizeof sql, "PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", sqlite3_column_int(pragma, 0));
    sqlite3_finalize(pragma);
    run(target, sql);
    copy_schema();

    struct table tables[64] = {0};
    int table_count = 0;
    long total = 0;
    sqlite3_stmt *names = prepare(source, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'");
    while (sqlite3_step(names) == SQLITE_ROW && table_count < 64) {
        tables[table_count].name = strdup((const char *)sqlite3_column_text(names, 0));
        load(&tables[table_count]);
        total += tables[table_count++].rows;
    }
    sqlite3_finalize(names);

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long transaction = 0; transaction < transactions; transaction++) {
        run(target, "BEGIN IMMEDIATE");
        for (int t = 0; t < table_count; t++) {
            struct table *table = &tables[t];
            for (long row = table->rows * transaction / transactions; row < table->rows * (transaction + 1) / transactions; row++) {
                for (int column = 0; column < table->columns; column++)
                    sqlite3_bind_value(table->insert, column + 1, table->values[row * table->columns + column]);
                check(target, sqlite3_step(table->insert), SQLITE_DONE, table->name);
                sqlite3_reset(table->insert);
            }
        }
        run(target, "COMMIT");
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld %.6f\n", total, (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
}
