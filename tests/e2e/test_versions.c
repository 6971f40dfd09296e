/* test_versions.c - programs of different versions meet: each side is told both versions, and what to do.
 *
 * One idea: another version is our own bytes with another number in the header, which is all that versions have in common.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "tests/testing.h"

#include "api/api.h"
#include "tests/e2e/cluster.h"
#include "tests/wire_client.h"
#include "wire/p2p.h"

enum { OTHER = FRAME_VERSION + 8, VERSION_AT = 4 };

#define REMEDY "run the same version of PCCL everywhere"

static void make_other(struct frame_bytes *f)
{
    f->at[VERSION_AT] = OTHER;
}

/* Whether the next bytes are the header of a frame of our version. */
static bool answered_by_ours(int fd, unsigned char header[FRAME_HEADER_BYTES])
{
    return client_read(fd, header, FRAME_HEADER_BYTES) && header[VERSION_AT] == FRAME_VERSION;
}

/* ---- what the library logs ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static char warning[400];
static int warnings;

static void listen_for_it(pcclLogLevel_t level, const char *message, void *user)
{
    (void)user;
    if (level == pcclLogWarn && strstr(message, "of the protocol") != NULL) {
        pthread_mutex_lock(&lock);
        warnings++;
        snprintf(warning, sizeof warning, "%s", message);
        pthread_cond_broadcast(&heard);
        pthread_mutex_unlock(&lock);
    }
}

static void log_begin(void)
{
    warnings = 0;
    pcclSetLogCallback(listen_for_it, pcclLogWarn, NULL);
}

static void expect_warning(const char *want)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&lock);
    while (warnings == 0 && pthread_cond_timedwait(&heard, &lock, &until) == 0) {
    }
    EXPECT(warnings > 0);
    EXPECT_STR(warning, want);
    pthread_mutex_unlock(&lock);
}

/* ---- a listener that answers each connection with a frame of another version ---- */

struct impostor {
    int fd;
    uint16_t port;
    pthread_t thread;
};

static void *answer_all(void *user)
{
    struct impostor *im = user;
    struct frame_bytes f;
    int fd;
    client_frame(&f, FRAME_WELCOME, 0, NULL);
    make_other(&f);
    while ((fd = accept(im->fd, NULL, NULL)) >= 0) {
        if (client_send(fd, f.at, f.size)) {
            (void)client_closed(fd, SPAWN_PATIENCE_MS); /* by the other end, which has read it */
        }
        close(fd);
    }
    return NULL;
}

static void impostor_start(struct impostor *im)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    im->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(bind(im->fd, (struct sockaddr *)&at, size) == 0 && listen(im->fd, 16) == 0);
    EXPECT_EQ(getsockname(im->fd, (struct sockaddr *)&at, &size), 0);
    im->port = ntohs(at.sin_port);
    EXPECT_EQ(pthread_create(&im->thread, NULL, answer_all, im), 0);
}

static void impostor_stop(struct impostor *im)
{
    shutdown(im->fd, SHUT_RDWR);
    pthread_join(im->thread, NULL);
    close(im->fd);
}

/* A communicator for the master at that port of loopback that would try for a minute. */
static pcclComm_t *patient(uint16_t port)
{
    char address[40];
    pcclCommCreateParams_t params = {.peer_group = 0};
    pcclComm_t *comm = NULL;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclParseAddress(address, 1, &params.master_address), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 60000), pcclSuccess);
    return comm;
}

static void expect_version_error(const char *who)
{
    char want[400];
    pcclErrorInfo_t info;
    snprintf(want, sizeof want,
             "connect: the master refused this peer: %s speaks version %d of the protocol, this peer version %d: " REMEDY
             " (this is PCCL %d.%d.%d)", who, OTHER, FRAME_VERSION, PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH);
    EXPECT_STR(pcclGetLastError(), want);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    EXPECT_EQ(info.cause, pcclCauseKicked);
    EXPECT_EQ(info.error_class, pcclClassFix); /* connecting again alone would fail for ever */
}

/* ---- peer and master ---- */

TEST(a_peer_of_another_version_is_refused_and_the_master_says_both) /* it would see a closed connection, the log nothing */
{
    static struct program master;
    char listen_option[] = "--listen", any_port[] = "127.0.0.1:0", want[200];
    unsigned char header[FRAME_HEADER_BYTES], payload[CLIENT_FRAME];
    uint16_t port = master_start(&master, listen_option, any_port, NULL);
    struct frame_bytes f;
    struct frame_header h;
    struct msg_fence fence;
    struct reader r;
    int fd = client_dial(port, false);
    client_register_frame(&f, 0);
    make_other(&f);
    EXPECT(client_send(fd, f.at, f.size) && answered_by_ours(fd, header));
    EXPECT(frame_get(header, &h) && h.type == FRAME_FENCE && client_read(fd, payload, h.length));
    reader_init(&r, payload, h.length);
    EXPECT(get_fence(&r, &fence));
    EXPECT_EQ(fence.cause, CAUSE_KICK_VERSION);
    snprintf(want, sizeof want, "this master speaks version %d of the protocol, the peer version %d", FRAME_VERSION, OTHER);
    EXPECT_STR(fence.text, want);
    EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
    close(fd);
    EXPECT(client_visit(port)); /* ours is let in */
    EXPECT_EQ(program_end(&master, SIGTERM), 0);
    snprintf(want, sizeof want, "speaks version %d of the protocol, this master version %d: refused; " REMEDY, OTHER,
             FRAME_VERSION);
    EXPECT(strstr(master.err_text, want) != NULL);
}

TEST(a_master_of_another_version_is_named_at_once) /* it was taken for a stranger, after the whole time to connect */
{
    struct impostor im;
    char who[60];
    impostor_start(&im);
    pcclComm_t *comm = patient(im.port);
    EXPECT_EQ(pcclConnect(comm), pcclMasterConnectionFailed);
    snprintf(who, sizeof who, "the master at 127.0.0.1:%u", im.port);
    expect_version_error(who);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    impostor_stop(&im);
}

/* ---- peer and peer ---- */

TEST(a_peer_that_is_dialled_by_another_version_says_both) /* the other is closed without a word, again and again */
{
    struct cluster c;
    struct frame_bytes f;
    struct writer w;
    unsigned char bytes[128], header[FRAME_HEADER_BYTES];
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    char want[200];
    cluster_start(&c, 1, NULL, 1);
    log_begin();
    writer_init(&w, bytes, sizeof bytes);
    put_hello(&w, &(struct msg_hello){.kind = LINK_CONTROL, .lanes = 1, .from = 77, .to = 78, .number = 1});
    client_frame(&f, FRAME_HELLO, 12345, &w);
    make_other(&f);
    int fd = client_dial(c.peer[0].comm->comm->engine->port, false);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    EXPECT(client_send(fd, f.at, f.size) && answered_by_ours(fd, header));
    EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
    close(fd);
    snprintf(want, sizeof want, "a peer at 127.0.0.1:%u speaks version %d of the protocol, this peer version %d: refused; " REMEDY,
             ntohs(own.sin_port), OTHER, FRAME_VERSION);
    expect_warning(want);
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
    cluster_stop(&c);
}

struct by_hand {
    int fd;
    uint64_t run;
    uint32_t number; /* of its next vote */
    bool linked;
};

/* A member by hand: updates until somebody waits for admission, and says that it is linked with whoever that is. */
static void *admit(void *user)
{
    struct by_hand *member = user;
    struct frame_bytes f;
    struct frame_header h = {0};
    unsigned char bytes[64], raw[FRAME_HEADER_BYTES], payload[CLIENT_FRAME];
    struct msg_admit m;
    struct reader r;
    struct writer w;
    bool alive = true;
    for (int attempt = 0; alive && attempt < 2; attempt++) { /* the master asks once more, since the newcomer misses what this one has */
        h.type = attempt == 0 ? 0 : FRAME_LINKED;
        while (alive && h.type != FRAME_ADMIT) {
            if (h.type == 0 || h.type == FRAME_ANSWER) {
                writer_init(&w, bytes, sizeof bytes);
                put_vote(&w, &(struct msg_vote){.number = member->number++, .kind = VOTE_UPDATE});
                client_frame(&f, FRAME_VOTE, member->run, &w);
                alive = client_send(member->fd, f.at, f.size);
            }
            alive = alive && client_read(member->fd, raw, sizeof raw) && frame_get(raw, &h) && h.length <= CLIENT_FRAME &&
                    client_read(member->fd, payload, h.length);
        }
        reader_init(&r, payload, h.length);
        if (alive && get_admit(&r, &m)) {
            writer_init(&w, bytes, sizeof bytes);
            put_linked(&w, &(struct msg_linked){.attempt = m.attempt});
            client_frame(&f, FRAME_LINKED, member->run, &w);
            member->linked = client_send(member->fd, f.at, f.size);
        }
    }
    return NULL;
}

TEST(a_peer_that_dials_another_version_says_both) /* it would look like a firewall */
{
    static struct program master;
    struct impostor im;
    struct msg_welcome welcome;
    struct msg_view view;
    pthread_t thread;
    char listen_option[] = "--listen", any_port[] = "127.0.0.1:0", who[60], want[300];
    uint16_t port = master_start(&master, listen_option, any_port, NULL);
    impostor_start(&im);
    struct by_hand member = {.fd = client_dial(port, false)};
    EXPECT(client_become_first_at(member.fd, im.port, &welcome, &view));
    member.run = welcome.run;
    member.number = view.vote_number;
    pcclComm_t *comm = patient(port);
    log_begin();
    EXPECT_EQ(pthread_create(&thread, NULL, admit, &member), 0);
    EXPECT_EQ(pcclConnect(comm), pcclMasterConnectionFailed);
    snprintf(who, sizeof who, "the peer at 127.0.0.1:%u", im.port);
    expect_version_error(who);
    snprintf(want, sizeof want, "%s speaks version %d of the protocol, this peer version %d: " REMEDY, who, OTHER, FRAME_VERSION);
    expect_warning(want);
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    pthread_join(thread, NULL);
    EXPECT(member.linked);
    close(member.fd);
    impostor_stop(&im);
    EXPECT_EQ(program_end(&master, SIGTERM), 0);
}
