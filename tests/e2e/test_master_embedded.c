/* test_master_embedded.c - the master inside a program: its life, its errors, interrupts from anywhere (R32).
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pccl.h"

static ccoip_socket_address_t loopback(uint16_t port)
{
    return (ccoip_socket_address_t){.inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}}, .port = port};
}

TEST(a_master_that_was_never_run_says_so)
{
    pcclMasterInstance_t *m = NULL;
    ccoip_socket_address_t at;
    EXPECT_EQ(pcclCreateMaster(loopback(0), NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclCreateMaster(loopback(0), &m), pcclSuccess);
    EXPECT_EQ(pcclInterruptMaster(m), pcclInvalidUsage);
    EXPECT_EQ(pcclMasterAwaitTermination(m), pcclInvalidUsage);
    EXPECT_EQ(pcclGetMasterAddress(m, &at), pcclInvalidUsage);
    EXPECT_EQ(pcclRunMaster(NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclDestroyMaster(m), pcclSuccess);
}

TEST(a_destroyed_master_is_known_as_such) /* its memory would be read, or freed twice */
{
    pcclMasterInstance_t *m = NULL, *next = NULL;
    ccoip_socket_address_t at;
    EXPECT_EQ(pcclCreateMaster(loopback(0), &m), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(m), pcclSuccess);
    EXPECT_EQ(pcclInterruptMaster(m), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(m), pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(m), pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(m), pcclInvalidUsage);
    EXPECT(strstr(pcclGetLastError(), "destroyed") != NULL);
    EXPECT_EQ(pcclCreateMaster(loopback(0), &next), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(m), pcclInvalidUsage);
    EXPECT_EQ(pcclInterruptMaster(m), pcclInvalidUsage);
    EXPECT_EQ(pcclMasterAwaitTermination(m), pcclInvalidUsage);
    EXPECT_EQ(pcclGetMasterAddress(m, &at), pcclInvalidUsage);
    EXPECT_EQ(pcclDestroyMaster(m), pcclInvalidUsage); /* not the next one */
    EXPECT_EQ(pcclDestroyMaster(next), pcclSuccess);
}

TEST(run_twice_and_a_taken_port_are_told_apart)
{
    pcclMasterInstance_t *m = NULL, *second = NULL;
    ccoip_socket_address_t at;
    char port[16];
    EXPECT_EQ(pcclCreateMaster(loopback(0), &m), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(m), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(m), pcclInvalidUsage);
    EXPECT(strstr(pcclGetLastError(), "running") != NULL || strstr(pcclGetLastError(), "started") != NULL);
    EXPECT_EQ(pcclDestroyMaster(m), pcclInvalidUsage); /* it still runs */
    EXPECT_EQ(pcclGetMasterAddress(m, &at), pcclSuccess);
    EXPECT(at.port != 0);
    snprintf(port, sizeof port, "%u", at.port);
    EXPECT_EQ(pcclCreateMaster(at, &second), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(second), pcclInvalidUsage);
    EXPECT(strstr(pcclGetLastError(), port) != NULL);
    EXPECT_EQ(pcclInterruptMaster(m), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(m), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(second), pcclSuccess); /* the port is free again */
    EXPECT_EQ(pcclInterruptMaster(second), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(second), pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(second), pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(m), pcclSuccess);
}

/* Whether a new master gets the port of one that is gone, while a child of that time lives; another process may be quicker. */
static bool port_is_free_again(void)
{
    pcclMasterInstance_t *m = NULL;
    ccoip_socket_address_t at;
    int pipe_fds[2], born[2], status = 0;
    char byte;
    EXPECT_EQ(pcclCreateMaster(loopback(0), &m), pcclSuccess);
    EXPECT_EQ(pcclRunMaster(m), pcclSuccess);
    EXPECT_EQ(pcclGetMasterAddress(m, &at), pcclSuccess);
    EXPECT(pipe(pipe_fds) == 0 && pipe(born) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(born[0]);
        close(born[1]); /* what runs in the child before fork returns has run */
        bool refused_all = pcclInterruptMaster(m) == pcclInvalidUsage && pcclMasterAwaitTermination(m) == pcclInvalidUsage &&
                           strstr(pcclGetLastError(), "parent") != NULL && pcclDestroyMaster(m) == pcclSuccess;
        close(pipe_fds[1]);
        _exit(read(pipe_fds[0], &byte, 1) == 0 && refused_all ? 0 : 1); /* lives until the parent lets go */
    }
    close(pipe_fds[0]);
    close(born[1]);
    EXPECT_EQ(read(born[0], &byte, 1), 0);
    close(born[0]);
    EXPECT_EQ(pcclInterruptMaster(m), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(m), pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(m), pcclSuccess);
    EXPECT_EQ(pcclCreateMaster(at, &m), pcclSuccess);
    bool again = pcclRunMaster(m) == pcclSuccess;
    EXPECT(!again || pcclInterruptMaster(m) == pcclSuccess);
    EXPECT(!again || pcclMasterAwaitTermination(m) == pcclSuccess);
    EXPECT_EQ(pcclDestroyMaster(m), pcclSuccess);
    close(pipe_fds[1]);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return again;
}

/* A child that kept the port would keep a new master from it; and its copy of the handle has no thread to wait for. */
TEST(a_forked_child_keeps_nothing_of_a_master)
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a child may be born while the master's thread holds a lock of the sanitizer's allocator, which nobody opens there");
    }
    bool free_again = false;
    for (int i = 0; i < 5 && !free_again; i++) {
        free_again = port_is_free_again();
    }
    EXPECT(free_again);
}

static pcclMasterInstance_t *to_interrupt;
static atomic_int interrupts, refused;

static void on_alarm(int number)
{
    int saved = errno;
    (void)number;
    errno = ENOTTY; /* stands for what the interrupted code is about to read */
    atomic_fetch_add(&refused, pcclInterruptMaster(to_interrupt) != pcclSuccess || errno != ENOTTY);
    atomic_fetch_add(&interrupts, 1);
    errno = saved;
}

static void *await_main(void *argument)
{
    EXPECT_EQ(pcclMasterAwaitTermination(argument), pcclSuccess);
    return NULL;
}

static void *interrupt_main(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        EXPECT_EQ(pcclInterruptMaster(argument), pcclSuccess);
    }
    return NULL;
}

/* The handler runs in the middle of whatever the threads do, a master's own calls among them. */
TEST(interrupts_come_from_signal_handlers_and_many_threads_and_may_be_repeated)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, old;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[6];
        EXPECT_EQ(pcclCreateMaster(loopback(0), &to_interrupt), pcclSuccess);
        EXPECT_EQ(pcclRunMaster(to_interrupt), pcclSuccess);
        atomic_store(&interrupts, 0);
        atomic_store(&refused, 0);
        sigaction(SIGALRM, &action, &old);
        struct itimerval often = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}}, never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &often, NULL);
        for (int i = 0; i < 6; i++) {
            EXPECT_EQ(pthread_create(&threads[i], NULL, i < 3 ? await_main : interrupt_main, to_interrupt), 0);
        }
        /* Not while it joins: thread sanitizer takes pthread_join for a wait, in which it runs handlers at once, and
         * dead-locks with itself when the stacks of ended threads are freed there. */
        pthread_sigmask(SIG_BLOCK, &alarms, NULL);
        for (int i = 0; i < 6; i++) {
            pthread_join(threads[i], NULL);
        }
        pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
        while (atomic_load(&interrupts) < 3) {
            EXPECT_EQ(pcclMasterAwaitTermination(to_interrupt), pcclSuccess); /* repeatable */
        }
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &old, NULL);
        EXPECT_EQ(atomic_load(&refused), 0);
        EXPECT_EQ(pcclDestroyMaster(to_interrupt), pcclSuccess);
    }
}
