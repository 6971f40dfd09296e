/* test_connect_words.c - what a peer that finds no master is told: who was asked, for how long, and what is likely wrong there.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pccl.h"

static bool says(const char *part)
{
    bool found = strstr(pcclGetLastError(), part) != NULL;
    if (!found) {
        fprintf(stderr, "no '%s' in: %s\n", part, pcclGetLastError());
    }
    return found;
}

static char logged[400]; /* what the log says of a connect that failed */
static int logged_lines;

static void log_keep(pcclLogLevel_t level, const char *message, void *user)
{
    (void)user;
    if (level == pcclLogInfo && strstr(message, "not connected to the master at ") == message) {
        logged_lines++;
        snprintf(logged, sizeof logged, "%s", message);
    }
}

/* A listening socket at a free port of loopback; `backlog` < 0: bound only. */
static int listener(int backlog, struct sockaddr_in *at)
{
    socklen_t size = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    EXPECT_EQ(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)at, &size), 0);
    EXPECT(backlog < 0 || listen(fd, backlog) == 0);
    return fd;
}

/* Connects to that address for `ms`, which fails; the address and the time are part of the answer. */
static void fails_to_connect(const struct sockaddr_in *at, uint64_t ms)
{
    char address[40];
    pcclCommCreateParams_t params = {.peer_group = 0};
    pcclComm_t *comm = NULL;
    pcclErrorInfo_t info;
    snprintf(address, sizeof address, "%s:%u", inet_ntoa(at->sin_addr), ntohs(at->sin_port));
    logged_lines = 0;
    pcclSetLogCallback(log_keep, pcclLogInfo, NULL);
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclParseAddress(address, 1, &params.master_address), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, ms), pcclSuccess);
    EXPECT_EQ(pcclConnect(comm), pcclMasterConnectionFailed);
    EXPECT(says(address) && says(", for "));
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    EXPECT_EQ(info.cause, pcclCauseMasterUnreachable);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess); /* the last line is written */
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
    EXPECT(logged_lines == 1 && strstr(logged, address) != NULL);
}

TEST(a_port_where_nobody_listens_asks_whether_the_master_runs)
{
    struct sockaddr_in at;
    int fd = listener(-1, &at); /* bound, so that nobody else takes the port */
    fails_to_connect(&at, 300);
    EXPECT(says("is ccoip_master running there?") && says("PCCL_OPTION_CONNECT_TIMEOUT_MS"));
    EXPECT(strstr(pcclGetLastError(), "firewall") == NULL);
    close(fd);
}

TEST(an_address_that_cannot_be_dialled_is_no_silence) /* nobody was asked, so no firewall is to blame */
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000001), .sin_port = htons(1)}; /* a multicast one */
    fails_to_connect(&at, 100);
    EXPECT(says("unreachable") && says("check its address"));
    EXPECT(strstr(pcclGetLastError(), "firewall") == NULL);
}

TEST(an_address_that_does_not_answer_asks_for_firewalls) /* a dropped packet looks like this: no answer, no refusal */
{
    struct sockaddr_in at;
    int fd = listener(0, &at), held[4];
    for (int i = 0; i < 4; i++) { /* more than the queue takes: the system answers no further attempt */
        held[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(held[i], (struct sockaddr *)&at, sizeof at);
    }
    fails_to_connect(&at, 300);
    EXPECT(says("firewall") && says("PCCL_OPTION_CONNECT_TIMEOUT_MS"));
    for (int i = 0; i < 4; i++) {
        close(held[i]);
    }
    close(fd);
}

TEST(a_listener_that_says_nothing_is_told_from_a_master)
{
    struct sockaddr_in at;
    int fd = listener(8, &at);
    fails_to_connect(&at, 300);
    EXPECT(says("is not a running ccoip_master"));
    close(fd);
}

static void *web_server(void *user)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    int fd;
    while ((fd = accept(*(int *)user, NULL, NULL)) >= 0) {
        char request[512];
        if (read(fd, request, sizeof request) > 0) { /* the last attempt may end before it has said anything */
            ssize_t sent = send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
            (void)sent;
        }
        close(fd);
    }
    return NULL;
}

TEST(a_web_server_at_the_address_is_told_from_a_master)
{
    struct sockaddr_in at;
    pthread_t thread;
    int fd = listener(8, &at);
    EXPECT_EQ(pthread_create(&thread, NULL, web_server, &fd), 0);
    fails_to_connect(&at, 300);
    EXPECT(says("bytes that are no message") && says("is not a running ccoip_master"));
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(fd);
}
