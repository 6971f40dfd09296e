/* test_core_basics.c - texts of errors, the log sink, lists, assertions, the clock.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/bounds.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/list.h"
#include "core/log.h"
#include "core/mutant.h"
#include "core/status.h"

TEST(error_text_is_cut_not_overrun) /* a long name from the network must not write past the text */
{
    struct {
        struct err err;
        char guard[8];
    } s;
    char name[2 * sizeof s.err.text];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    memset(s.guard, 0x5a, sizeof s.guard);
    EXPECT_EQ(err_set(&s.err, PCCL_ERR_INVALID, "name '%s' is too long", name), PCCL_ERR_INVALID);
    EXPECT_EQ(strlen(s.err.text), sizeof s.err.text - 1);
    for (size_t i = 0; i < sizeof s.guard; i++) {
        EXPECT_EQ(s.guard[i], 0x5a);
    }
}

TEST(error_text_is_optional) /* callers that only want the code pass null */
{
    EXPECT_EQ(err_set(NULL, PCCL_ERR_TIMEOUT, "%d", 1), PCCL_ERR_TIMEOUT);
    errno = ENOENT;
    EXPECT_EQ(err_errno(NULL, "open socket"), PCCL_ERR_SYSTEM);
}

TEST(errno_becomes_words_after_the_call_that_failed)
{
    struct err err;
    errno = ECONNREFUSED;
    EXPECT_EQ(err_errno(&err, "connect to 10.0.0.7:48150"), PCCL_ERR_SYSTEM);
    EXPECT_STR(err.text, "connect to 10.0.0.7:48150: Connection refused");
    errno = EMFILE;
    EXPECT_EQ(err_errno(&err, "open socket"), PCCL_ERR_SYSTEM);
    EXPECT_STR(err.text, "open socket: Too many open files: raise the limit of open files (ulimit -n)");
    errno = 12345; /* unknown numbers must not leave the text empty */
    EXPECT_EQ(err_errno(&err, "x"), PCCL_ERR_SYSTEM);
    EXPECT(strstr(err.text, "12345") != NULL);
}

struct seen {
    atomic_int count;
    enum log_level level;
    char line[1024];
};

static void remember(enum log_level level, const char *message, const struct log_to *to)
{
    struct seen *seen = to->user;
    atomic_fetch_add(&seen->count, 1);
    seen->level = level;
    snprintf(seen->line, sizeof seen->line, "%s", message);
}

TEST(log_is_silent_without_a_sink)
{
    for (int level = LOG_TRACE; level <= LOG_NONE; level++) {
        EXPECT(!log_enabled((enum log_level)level));
    }
    log_line(LOG_ERROR, "nobody hears %d", 1);
}

TEST(log_passes_lines_at_or_above_its_level)
{
    struct seen seen = {0};
    log_set_sink(remember, LOG_WARN, (struct log_to){.user = &seen});
    log_line(LOG_INFO, "below");
    EXPECT_EQ(seen.count, 0);
    log_line(LOG_WARN, "peer %d is gone", 7);
    EXPECT_EQ(seen.count, 1);
    EXPECT_EQ(seen.level, LOG_WARN);
    EXPECT_STR(seen.line, "peer 7 is gone");
    log_set_sink(remember, LOG_NONE, (struct log_to){.user = &seen}); /* the level "none" is above every line */
    log_line(LOG_ERROR, "unheard");
    EXPECT_EQ(seen.count, 1);
    log_set_sink(NULL, LOG_TRACE, (struct log_to){0});
    log_line(LOG_ERROR, "unheard");
    EXPECT_EQ(seen.count, 1);
}

TEST(the_librarys_default_does_not_replace_a_sink_that_the_program_has_set)
{
    struct seen own = {0};
    log_set_sink(remember, LOG_WARN, (struct log_to){.user = &own});
    log_set_default(NULL, LOG_NONE);
    log_line(LOG_WARN, "heard");
    EXPECT_EQ(own.count, 1);
    log_set_sink(NULL, LOG_NONE, (struct log_to){0}); /* "no log" is a choice, too */
    log_set_default(remember, LOG_TRACE);
    EXPECT(!log_enabled(LOG_ERROR));
}

TEST(log_cuts_long_lines)
{
    struct seen seen = {0};
    char name[4 * BOUNDS_LOG_LINE];
    memset(name, 'y', sizeof name - 1);
    name[sizeof name - 1] = 0;
    log_set_sink(remember, LOG_TRACE, (struct log_to){.user = &seen});
    log_line(LOG_TRACE, "%s", name);
    EXPECT_EQ(strlen(seen.line), BOUNDS_LOG_LINE - 1);
    log_set_sink(NULL, LOG_NONE, (struct log_to){0});
}

static void count_line(enum log_level level, const char *message, const struct log_to *to)
{
    (void)level, (void)message;
    atomic_fetch_add((atomic_int *)to->user, 1);
}


static void *log_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        log_line(LOG_INFO, "line %d", i);
    }
    return NULL;
}

TEST(log_sink_may_change_while_other_threads_log)
{
    atomic_int counts[2] = {0, 0};
    pthread_t threads[2];
    log_set_sink(count_line, LOG_INFO, (struct log_to){.user = &counts[0]});
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, log_many, NULL);
    }
    for (int i = 0; i < 1000; i++) {
        log_set_sink(count_line, LOG_INFO, (struct log_to){.user = &counts[i & 1]});
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    log_set_sink(NULL, LOG_NONE, (struct log_to){0});
    EXPECT_EQ(counts[0] + counts[1], 40000); /* no line is lost or doubled by a change */
}

static void first_function(void)
{
}

static void second_function(void)
{
}

static atomic_int torn; /* lines whose words do not belong together */

static void first_sink(enum log_level level, const char *message, const struct log_to *to)
{
    (void)level, (void)message;
    atomic_fetch_add(&torn, to->function != first_function || to->user != &torn);
}

static void second_sink(enum log_level level, const char *message, const struct log_to *to)
{
    (void)level, (void)message;
    atomic_fetch_add(&torn, to->function != second_function || to->user != NULL);
}

static atomic_bool changed_enough;

static void *log_change(void *arg)
{
    (void)arg;
    for (int i = 0; !atomic_load(&changed_enough); i++) {
        log_set_sink(i % 3 == 0 ? first_sink : i % 3 == 1 ? second_sink : NULL, LOG_INFO,
                     (struct log_to){.user = i % 3 == 0 ? &torn : NULL,
                                     .function = i % 3 == 0 ? first_function : i % 3 == 1 ? second_function : NULL});
    }
    return NULL;
}

TEST(a_line_goes_to_a_sink_with_what_came_with_that_sink) /* a program's callback called at address 0 */
{
    pthread_t changer, writers[2];
    atomic_store(&changed_enough, false);
    pthread_create(&changer, NULL, log_change, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_create(&writers[i], NULL, log_many, NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(writers[i], NULL);
    }
    atomic_store(&changed_enough, true);
    pthread_join(changer, NULL);
    log_set_sink(NULL, LOG_NONE, (struct log_to){0});
    EXPECT_EQ(torn, 0);
}

TEST(a_child_can_log_whatever_the_other_threads_did_at_the_fork) /* or it hangs in pcclInit */
{
    pthread_t changer;
    atomic_store(&changed_enough, false);
    pthread_create(&changer, NULL, log_change, NULL);
    for (int i = 0; i < (int)test_scaled(200); i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            log_set_default(first_sink, LOG_INFO);
            log_set_sink(log_stderr, LOG_ERROR, (struct log_to){0});
            log_line(LOG_INFO, "below the level");
            _exit(0);
        }
        int status = -1;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT_EQ(status, 0);
    }
    atomic_store(&changed_enough, true);
    pthread_join(changer, NULL);
    log_set_sink(NULL, LOG_NONE, (struct log_to){0});
}

TEST(dates_are_those_of_the_calendar)
{
    for (int64_t second = 0; second < INT64_C(8000000000); second += 86400 * 13 + 7919) { /* until 2223 */
        char date[32], want[32];
        time_t t = (time_t)second;
        struct tm parts;
        gmtime_r(&t, &parts);
        strftime(want, sizeof want, "%Y-%m-%d %H:%M:%S", &parts);
        log_date(second, date, sizeof date);
        EXPECT_STR(date, want);
    }
}

struct item {
    int number;
    struct list link;
};

TEST(list_keeps_order_and_forgets_removed_links)
{
    struct list head;
    struct item items[4];
    list_init(&head);
    EXPECT(list_empty(&head));
    EXPECT(list_pop(&head) == NULL);
    for (int i = 0; i < 4; i++) {
        items[i].number = i;
        list_init(&items[i].link);
    }
    list_append(&head, &items[1].link);
    list_append(&head, &items[3].link);
    list_prepend(&head, &items[0].link);
    list_insert(&items[3].link, &items[2].link);
    int expected = 0;
    LIST_FOR_EACH (link, after, &head) {
        EXPECT_EQ(LIST_ENTRY(link, struct item, link)->number, expected);
        expected++;
        if (expected == 2) {
            list_remove(link); /* the loop goes on behind a link that was taken out */
        }
    }
    EXPECT_EQ(expected, 4);
    EXPECT(list_empty(&items[1].link));
    list_remove(&items[1].link); /* again: nothing happens */
    EXPECT(LIST_ENTRY(list_pop(&head), struct item, link) == &items[0]);
    EXPECT(LIST_ENTRY(list_pop(&head), struct item, link) == &items[2]);
    EXPECT(LIST_ENTRY(list_pop(&head), struct item, link) == &items[3]);
    EXPECT(list_empty(&head));
}

static int step_with_bug(struct check_pad *pad, int value)
{
    pad->outer = check_current;
    if (setjmp(pad->env) != 0) {
        return -1;
    }
    check_current = pad;
    PCCL_ASSERT(value > 0);
    check_current = pad->outer;
    return value;
}

TEST(failed_assertion_returns_to_the_step_that_runs) /* G5: the process must live, and outer steps stay whole */
{
    struct check_pad outer = {.outer = NULL}, inner;
    check_current = &outer;
    EXPECT_EQ(step_with_bug(&inner, 1), 1);
    EXPECT_EQ(step_with_bug(&inner, 0), -1);
    EXPECT(check_current == &outer);
    EXPECT_STR(inner.what, "value > 0");
    EXPECT(strstr(inner.where, "test_core_basics.c:") != NULL);
    check_current = NULL;
}

TEST(failed_assertion_outside_steps_is_logged_once)
{
    struct seen seen = {0};
    log_set_sink(remember, LOG_ERROR, (struct log_to){.user = &seen});
    unsigned before = check_failed;
    PCCL_ASSERT(before == 12345);
    PCCL_ASSERT(before == 12345);
    EXPECT_EQ(check_failed, before + 2);
    EXPECT_EQ(seen.count, 1);
    EXPECT(strstr(seen.line, "before == 12345") != NULL);
    log_set_sink(NULL, LOG_NONE, (struct log_to){0});
}

TEST(clock_never_goes_back)
{
    int64_t last = clock_now_ns();
    EXPECT(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_now_ns();
        EXPECT(now >= last);
        last = now;
    }
}

#ifdef PCCL_MUTANTS
TEST(every_mutant_has_a_name_that_finds_it)
{
    for (int i = 0; i < MUTANT_COUNT; i++) {
        EXPECT_EQ(mutant_find(mutant_name(i)), i);
    }
    EXPECT_EQ(mutant_find("NAIVE"), MUTANT_NAIVE);
    EXPECT_EQ(mutant_find("no such"), -1);
    EXPECT(mutant_name(MUTANT_COUNT) == NULL && mutant_name(-1) == NULL);
    EXPECT(!MUTANT(NAIVE));
    mutant_active = MUTANT_NAIVE;
    EXPECT(MUTANT(NAIVE) && !MUTANT(FORGET));
    mutant_active = MUTANT_NONE;
}
#else
TEST(mutants_are_constant_zero_in_ordinary_builds)
{
    EXPECT_EQ(MUTANT(NAIVE), 0);
}
#endif
