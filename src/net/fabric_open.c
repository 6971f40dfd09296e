/* fabric_open.c - finds libfabric and a provider, opens and closes an endpoint.
 * SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include "core/clock.h"
#include "core/mix.h"
#include "core/pages.h"
#include "net/fabric_port.h"
#include "net/fds.h"

#define FABRIC_PATIENCE_NS (10 * (int64_t)CLOCK_S) /* a thread of a busy host may not run for seconds */

/* What is called by name; all else goes through tables of what these return. */
struct fabric_library {
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    void (*freeinfo)(struct fi_info *);
    struct fi_info *(*dupinfo)(const struct fi_info *);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    const char *(*strerror)(int);
    char why[160]; /* it is not there; "" if it is */
};

static struct fabric_library fabric_library;
static pthread_once_t fabric_library_once = PTHREAD_ONCE_INIT;

static void *fabric_symbol(void *handle, const char *name)
{
    void *at = dlsym(handle, name);
    if (at == NULL && fabric_library.why[0] == '\0') {
        snprintf(fabric_library.why, sizeof fabric_library.why, "libfabric.so.1 has no %s", name);
    }
    return at;
}

/* Never unloaded: providers leave threads and handlers behind. */
static void fabric_library_load(void)
{
    struct fabric_library *l = &fabric_library;
    void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        snprintf(l->why, sizeof l->why, "%.150s", why != NULL ? why : "it cannot be loaded");
        return;
    }
    union {
        void *at;
        int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
        void (*freeinfo)(struct fi_info *);
        struct fi_info *(*dupinfo)(const struct fi_info *);
        int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
        const char *(*strerror)(int);
    } f; /* the way from data to code that POSIX promises */
    f.at = fabric_symbol(handle, "fi_getinfo");
    l->getinfo = f.getinfo;
    f.at = fabric_symbol(handle, "fi_freeinfo");
    l->freeinfo = f.freeinfo;
    f.at = fabric_symbol(handle, "fi_dupinfo");
    l->dupinfo = f.dupinfo;
    f.at = fabric_symbol(handle, "fi_fabric");
    l->fabric = f.fabric;
    f.at = fabric_symbol(handle, "fi_strerror");
    l->strerror = f.strerror;
}

/* Devices for which libfabric has providers of their own; the others are sockets, which need no help. */
static bool fabric_hardware(void)
{
    static const char *const kinds[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        DIR *d = opendir(kinds[i]);
        for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
            found = found || e->d_name[0] != '.';
        }
        if (d != NULL) {
            closedir(d);
        }
    }
    return found;
}

static bool fabric_is_hardware(const struct fi_info *info)
{
    static const char *const names[] = {"efa", "verbs", "cxi", "opx", "psm2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(info->fabric_attr->prov_name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- One provider -------------------------------------------------------------------------------------------------------- */

static pccl_status fabric_failed(struct err *err, const struct fi_info *info, const char *what, int rc)
{
    return err_set(err, PCCL_ERR_SYSTEM, "libfabric, provider %s: %s: %s", info->fabric_attr->prov_name, what, fabric_library.strerror(-rc));
}

static int fabric_open_queue(struct fabric_port *p)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
    p->waits = true;
    int rc = fi_cq_open(p->domain, &attr, &p->cq, NULL);
    if (rc != 0) { /* then a timer tells when to look */
        attr.wait_obj = FI_WAIT_NONE;
        p->waits = false;
        rc = fi_cq_open(p->domain, &attr, &p->cq, NULL);
    }
    if (rc == 0 && p->waits) {
        rc = fi_control(&p->cq->fid, FI_GETWAIT, &p->queue.fd);
    }
    return rc;
}

static int fabric_open_endpoint(struct fabric_port *p)
{
    size_t bytes = sizeof p->name;
    int rc = fi_endpoint(p->domain, p->info, &p->ep, NULL);
    if (rc == 0) {
        rc = fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV);
    }
    if (rc == 0) {
        rc = fi_ep_bind(p->ep, &p->av->fid, 0);
    }
    if (rc == 0) {
        rc = fi_enable(p->ep);
    }
    if (rc == 0) {
        rc = fi_getname(&p->ep->fid, p->name, &bytes);
        p->name_bytes = (uint8_t)bytes;
    }
    return rc;
}

static pccl_status fabric_open_all(struct fabric_port *p, struct err *err)
{
    struct fi_av_attr attr = {.type = p->info->domain_attr->av_type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE};
    int rc = fabric_library.fabric(p->info->fabric_attr, &p->fabric, NULL);
    const char *what = "open fabric";
    if (rc == 0) {
        what = "open domain";
        rc = fi_domain(p->fabric, p->info, &p->domain, NULL);
    }
    if (rc == 0) {
        what = "open completion queue";
        rc = fabric_open_queue(p);
    }
    if (rc == 0) {
        what = "open address vector";
        rc = fi_av_open(p->domain, &attr, &p->av, NULL);
    }
    if (rc == 0) {
        what = "open endpoint";
        rc = fabric_open_endpoint(p);
    }
    if (rc != 0) {
        return fabric_failed(err, p->info, what, rc);
    }
    p->provider = mix64(mix_text(1, p->info->fabric_attr->prov_name), p->info->addr_format);
    return PCCL_OK;
}

static struct fabric_port *fabric_port_new(const struct fi_info *info)
{
    struct fabric_port *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->patience_ns = FABRIC_PATIENCE_NS;
    p->queue.fd = p->tick.fd = -1;
    p->queue.ready = fabric_queue_ready;
    p->tick.ready = fabric_tick_ready;
    p->polled.look = fabric_look;
    p->polled.rest = fabric_rest;
    list_init(&p->polled.all);
    list_init(&p->slabs);
    list_init(&p->spare);
    list_init(&p->peers);
    list_init(&p->owing);
    list_init(&p->closing);
    for (int i = 0; i < FABRIC_BUCKETS; i++) {
        list_init(&p->by_key[i]);
    }
    p->info = fabric_library.dupinfo(info);
    p->tick.fd = fds_own(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (p->info == NULL || p->tick.fd < 0) {
        fabric_port_close(p);
        return NULL;
    }
    return p;
}

static void fabric_close(struct fid *fid)
{
    if (fid != NULL) {
        int rc = fi_close(fid);
        (void)rc; /* nothing is left to be done about it */
    }
}

void fabric_port_close(struct fabric_port *p)
{
    if (p == NULL) {
        return;
    }
    fabric_close(p->ep != NULL ? &p->ep->fid : NULL); /* before the memory that it may write to */
    for (struct list *l = list_pop(&p->closing); l != NULL; l = list_pop(&p->closing)) {
        free(LIST_ENTRY(l, struct fabric, closing));
    }
    for (struct list *l = list_pop(&p->slabs); l != NULL; l = list_pop(&p->slabs)) {
        struct fabric_slab *slab = LIST_ENTRY(l, struct fabric_slab, all);
        fabric_close(slab->mr != NULL ? &slab->mr->fid : NULL);
        pages_free(slab->memory, (size_t)FABRIC_SLAB * FABRIC_BUFFER_BYTES);
        free(slab);
    }
    for (struct list *l = list_pop(&p->peers); l != NULL; l = list_pop(&p->peers)) {
        free(LIST_ENTRY(l, struct fabric_peer, all));
    }
    fabric_close(p->av != NULL ? &p->av->fid : NULL);
    fabric_close(p->cq != NULL ? &p->cq->fid : NULL);
    fabric_close(p->domain != NULL ? &p->domain->fid : NULL);
    fabric_close(p->fabric != NULL ? &p->fabric->fid : NULL);
    fds_close(p->tick.fd);
    if (p->info != NULL) {
        fabric_library.freeinfo(p->info);
    }
    free(p);
}

/* ---- Which provider ------------------------------------------------------------------------------------------------------ */

static struct fi_info *fabric_hints(void)
{
    struct fi_info *hints = fabric_library.dupinfo(NULL);
    if (hints != NULL) {
        hints->caps = FI_MSG;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->ep_attr->type = FI_EP_RDM;
        hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    }
    return hints;
}

/* The first that can be opened. */
static pccl_status fabric_open_first(enum fabric_choice choice, const struct fi_info *infos, struct fabric_port **port_out, struct err *err)
{
    pccl_status st = err_set(err, PCCL_ERR_SYSTEM, "libfabric has no provider of reliable datagrams here");
    for (const struct fi_info *info = infos; info != NULL && st != PCCL_OK; info = info->next) {
        if (choice == FABRIC_AUTO && !fabric_is_hardware(info)) {
            continue;
        }
        struct fabric_port *p = fabric_port_new(info);
        st = p != NULL ? fabric_open_all(p, err) : err_set(err, PCCL_ERR_NOMEM, "libfabric: no memory or no descriptors");
        if (st != PCCL_OK) {
            fabric_port_close(p);
        } else {
            *port_out = p;
        }
    }
    return st;
}

static pccl_status fabric_open_any(enum fabric_choice choice, struct fabric_port **port_out, struct err *err)
{
    pthread_once(&fabric_library_once, fabric_library_load);
    if (fabric_library.why[0] != '\0') {
        return err_set(err, PCCL_ERR_SYSTEM, "PCCL_NET: libfabric is not here (%s): install libfabric1, or use PCCL_NET=Socket", fabric_library.why);
    }
    struct fi_info *hints = fabric_hints(), *infos = NULL;
    if (hints == NULL) {
        return err_set(err, PCCL_ERR_NOMEM, "libfabric: no memory");
    }
    int rc = fabric_library.getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &infos);
    pccl_status st = rc == 0 ? fabric_open_first(choice, infos, port_out, err)
                             : err_set(err, PCCL_ERR_SYSTEM, "PCCL_NET: libfabric finds no provider of reliable datagrams: %s; "
                                       "look at fi_info, or use PCCL_NET=Socket", fabric_library.strerror(-rc));
    fabric_library.freeinfo(hints);
    if (infos != NULL) {
        fabric_library.freeinfo(infos);
    }
    return st;
}

pccl_status fabric_port_open(enum fabric_choice choice, struct fabric_port **port_out, struct err *err)
{
    *port_out = NULL;
    if (choice == FABRIC_NEVER || (choice == FABRIC_AUTO && !fabric_hardware())) {
        return PCCL_OK;
    }
    pccl_status st = fabric_open_any(choice, port_out, err);
    return choice == FABRIC_AUTO ? PCCL_OK : st; /* sockets do */
}

/* ---- What others are told of it ---------------------------------------------------------------------------------------------- */

bool fabric_port_offer(const struct fabric_port *p, struct fabric_end *end_out)
{
    memset(end_out, 0, sizeof *end_out);
    if (getrandom(&end_out->key, sizeof end_out->key, 0) != (ssize_t)sizeof end_out->key) {
        return false;
    }
    end_out->provider = p->provider;
    end_out->bytes = p->name_bytes;
    memcpy(end_out->address, p->name, p->name_bytes);
    return true;
}

bool fabric_fits(const struct fabric_port *p, const struct fabric_end *theirs)
{
    if (p == NULL || theirs->bytes == 0 || theirs->provider != p->provider) {
        return false;
    }
    return p->info->addr_format == FI_ADDR_STR ? theirs->bytes < sizeof theirs->address : theirs->bytes == p->name_bytes; /* a text ends */
}

bool fabric_suits(const struct fabric_port *p, enum fabric_choice choice)
{
    return p != NULL && (choice == FABRIC_ALWAYS || (choice == FABRIC_AUTO && fabric_is_hardware(p->info)));
}

const char *fabric_port_provider(const struct fabric_port *p)
{
    return p->info->fabric_attr->prov_name;
}
