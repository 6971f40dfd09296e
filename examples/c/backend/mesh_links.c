/* mesh_links.c - connecting the ranks, and the thread that reads and writes; see mesh.h.
 * SPDX-License-Identifier: MIT */
#include "mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

_Thread_local char mesh_error[160];

struct message *message_new(uint64_t channel, uint32_t kind, uint64_t bytes)
{
    struct message *message = malloc(sizeof *message + bytes);
    if (message != NULL) {
        *message = (struct message){.channel = channel, .kind = kind, .bytes = bytes};
    }
    return message;
}

static void append(struct message ***end, struct message *message)
{
    message->next = NULL;
    **end = message;
    *end = &message->next;
}

void mesh_wake(struct mesh *mesh)
{
    ssize_t ignored = write(mesh->wake[1], "", 1); /* a full pipe wakes as well */
    (void)ignored;
}

struct message *mesh_take(struct mesh *mesh, uint32_t from, uint64_t channel, uint32_t kind)
{
    struct peer *peer = &mesh->peers[from];
    for (struct message **at = &peer->in; *at != NULL; at = &(*at)->next) {
        struct message *found = *at;
        if (found->channel == channel && found->kind == kind) {
            *at = found->next;
            if (*at == NULL) {
                peer->in_end = at;
            }
            return found;
        }
    }
    return NULL;
}

void mesh_abort(struct mesh *mesh)
{
    mesh->aborted = true;
    for (uint32_t r = 0; r < mesh->ranks; r++) {
        if (mesh->peers[r].fd >= 0) {
            (void)shutdown(mesh->peers[r].fd, SHUT_RDWR); /* the thread finds it closed */
        }
    }
}

static void peer_gone(struct peer *peer)
{
    if (peer->fd >= 0) {
        (void)close(peer->fd);
    }
    peer->fd = -1;
    peer->gone = true;
}

static void header_of(const struct message *message, unsigned char *header)
{
    uint64_t kind = message->kind;
    memcpy(header, &message->channel, 8);
    memcpy(header + 8, &message->bytes, 8);
    memcpy(header + 16, &kind, 8);
}

static void peer_write(struct peer *peer)
{
    while (peer->out != NULL) {
        struct message *first = peer->out;
        unsigned char header[24];
        header_of(first, header);
        bool in_header = peer->sent < sizeof header;
        const unsigned char *from = in_header ? header + peer->sent : first->data + (peer->sent - sizeof header);
        size_t rest = (in_header ? 0 : first->bytes) + sizeof header - peer->sent;
        ssize_t done = send(peer->fd, from, rest, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                peer_gone(peer);
            }
            return;
        }
        peer->sent += (size_t)done;
        if (peer->sent == sizeof header + first->bytes) {
            peer->out = first->next;
            peer->out_end = peer->out == NULL ? &peer->out : peer->out_end;
            peer->sent = 0;
            free(first);
        }
    }
}

void mesh_send(struct mesh *mesh, uint32_t to, struct message *message)
{
    struct peer *peer = &mesh->peers[to];
    if (to == mesh->rank) {
        append(&peer->in_end, message);
    } else if (peer->gone) {
        free(message); /* whoever needs an answer sees that it is gone */
    } else {
        append(&peer->out_end, message);
        peer_write(peer); /* what is small has left when the call returns, though this process may end right then */
    }
}

/* One read; false: there is no more now. */
static bool peer_read(struct peer *peer)
{
    unsigned char *to = peer->half == NULL ? peer->header + peer->got : peer->half->data + peer->got;
    size_t rest = (peer->half == NULL ? sizeof peer->header : peer->half->bytes) - peer->got;
    ssize_t done = rest == 0 ? 0 : recv(peer->fd, to, rest, MSG_DONTWAIT);
    if (rest > 0 && done <= 0) {
        if (done == 0 || (errno != EAGAIN && errno != EINTR)) {
            peer_gone(peer);
        }
        return false;
    }
    peer->got += (size_t)done;
    if (peer->half == NULL && peer->got == sizeof peer->header) {
        uint64_t fields[3];
        memcpy(fields, peer->header, sizeof fields);
        peer->half = message_new(fields[0], (uint32_t)fields[2], fields[1]);
        peer->got = 0;
        if (peer->half == NULL) {
            peer_gone(peer);
            return false;
        }
    }
    if (peer->half != NULL && peer->got == peer->half->bytes) {
        append(&peer->in_end, peer->half);
        peer->half = NULL;
        peer->got = 0;
    }
    return true;
}

static bool all_sent(const struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->ranks; r++) {
        if (mesh->peers[r].out != NULL && !mesh->peers[r].gone) {
            return false;
        }
    }
    return true;
}

static void *serve(void *argument)
{
    struct mesh *mesh = argument;
    struct pollfd *polls = calloc(mesh->ranks + 1, sizeof *polls);
    pthread_mutex_lock(&mesh->lock);
    while (polls != NULL && !(mesh->stopping && all_sent(mesh))) {
        for (uint32_t r = 0; r < mesh->ranks; r++) {
            polls[r].fd = mesh->peers[r].fd;
            polls[r].events = mesh->peers[r].out != NULL ? POLLIN | POLLOUT : POLLIN;
        }
        polls[mesh->ranks] = (struct pollfd){.fd = mesh->wake[0], .events = POLLIN};
        pthread_mutex_unlock(&mesh->lock);
        (void)poll(polls, mesh->ranks + 1, -1);
        char bytes[64];
        while (read(mesh->wake[0], bytes, sizeof bytes) > 0) {
        }
        pthread_mutex_lock(&mesh->lock);
        for (uint32_t r = 0; r < mesh->ranks; r++) {
            struct peer *peer = &mesh->peers[r];
            while (peer->fd >= 0 && (polls[r].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && peer_read(peer)) {
            }
            if (peer->fd >= 0) {
                peer_write(peer);
            }
        }
        works_advance(mesh);
        pthread_cond_broadcast(&mesh->changed);
    }
    pthread_mutex_unlock(&mesh->lock);
    free(polls);
    return NULL;
}

/* ---- Connecting ------------------------------------------------------------------------------------------------ */

static int listening(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof *address) == 0 && listen(fd, 128) == 0 &&
        getsockname(fd, (struct sockaddr *)address, &length) == 0) {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* This rank dials those below it, and says which it is. */
static bool dial(struct mesh *mesh, const pcclBackendParams_t *params, uint32_t to)
{
    char key[32], port[16];
    (void)snprintf(key, sizeof key, "port %u", to);
    if (params->store->get(params->store->user, key, port, sizeof port, params->timeout_ms) != pcclBackendSuccess) {
        (void)snprintf(mesh_error, sizeof mesh_error, "rank %u has told the store no port: is it there?", to);
        return false;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    int fd = mesh->peers[to].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t me = mesh->rank;
    bool well = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send(fd, &me, 4, MSG_NOSIGNAL) == 4;
    if (!well) {
        (void)snprintf(mesh_error, sizeof mesh_error, "rank %u cannot be reached: %s", to, strerror(errno));
    }
    return well;
}

static bool accept_above(struct mesh *mesh, int listener, int64_t timeout_ms)
{
    for (uint32_t left = mesh->ranks - 1 - mesh->rank; left > 0; left--) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        uint32_t who = 0;
        int fd = poll(&ready, 1, (int)timeout_ms) == 1 ? accept(listener, NULL, NULL) : -1;
        if (fd < 0 || recv(fd, &who, 4, MSG_WAITALL) != 4 || who <= mesh->rank || who >= mesh->ranks) {
            (void)snprintf(mesh_error, sizeof mesh_error, "%u ranks above this one have not dialled it in time", left);
            if (fd >= 0) {
                (void)close(fd);
            }
            return false;
        }
        mesh->peers[who].fd = fd;
    }
    return true;
}

static bool connect_all(struct mesh *mesh, const pcclBackendParams_t *params)
{
    struct sockaddr_in address;
    char key[32], port[16];
    int listener = listening(&address);
    if (listener < 0) {
        (void)snprintf(mesh_error, sizeof mesh_error, "no socket: %s", strerror(errno));
        return false;
    }
    (void)snprintf(key, sizeof key, "port %u", mesh->rank);
    (void)snprintf(port, sizeof port, "%u", ntohs(address.sin_port));
    bool well = params->store->set(params->store->user, key, port) == pcclBackendSuccess;
    for (uint32_t r = 0; well && r < mesh->rank; r++) {
        well = dial(mesh, params, r);
    }
    well = well && accept_above(mesh, listener, params->timeout_ms);
    (void)close(listener);
    return well;
}

static void mesh_free(struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->ranks && mesh->peers != NULL; r++) {
        struct peer *peer = &mesh->peers[r];
        peer_gone(peer);
        struct message *lists[] = {peer->out, peer->in, peer->half};
        for (int i = 0; i < 3; i++) {
            for (struct message *next, *at = lists[i]; at != NULL; at = next) {
                next = at->next;
                free(at);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        if (mesh->wake[i] >= 0) {
            (void)close(mesh->wake[i]);
        }
    }
    pthread_cond_destroy(&mesh->changed);
    pthread_mutex_destroy(&mesh->lock);
    free(mesh->peers);
    free(mesh);
}

static bool wake_pipe(int *ends)
{
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0;
}

struct mesh *mesh_open(const pcclBackendParams_t *params)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    if (mesh == NULL) {
        return NULL;
    }
    *mesh = (struct mesh){.rank = params->rank, .ranks = params->ranks, .wake = {-1, -1}, .users = 1};
    pthread_mutex_init(&mesh->lock, NULL);
    pthread_cond_init(&mesh->changed, NULL);
    mesh->works_end = &mesh->works;
    mesh->peers = calloc(mesh->ranks, sizeof *mesh->peers);
    for (uint32_t r = 0; mesh->peers != NULL && r < mesh->ranks; r++) {
        mesh->peers[r] = (struct peer){.fd = -1};
        mesh->peers[r].in_end = &mesh->peers[r].in;
        mesh->peers[r].out_end = &mesh->peers[r].out;
    }
    bool well = mesh->peers != NULL && wake_pipe(mesh->wake) && connect_all(mesh, params);
    if (!well || pthread_create(&mesh->thread, NULL, serve, mesh) != 0) {
        mesh_free(mesh);
        return NULL;
    }
    return mesh;
}

void mesh_close(struct mesh *mesh)
{
    pthread_mutex_lock(&mesh->lock);
    mesh->stopping = true;
    pthread_mutex_unlock(&mesh->lock);
    mesh_wake(mesh);
    pthread_join(mesh->thread, NULL);
    mesh_free(mesh);
}
