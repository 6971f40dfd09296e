/* test_mistakes.c - what programs get wrong at first: the answer names the argument and its value, and nothing breaks.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

static bool says(const char *part)
{
    return strstr(pcclGetLastError(), part) != NULL;
}

TEST(a_port_alone_is_no_host_and_a_scope_is_refused) /* the resolver reads 5000 as the address 0.0.19.136, which nobody has */
{
    ccoip_socket_address_t a = {.port = 7};
    EXPECT_EQ(pcclParseAddress("5000", 1, &a), pcclInvalidArgument);
    EXPECT(says("'5000'") && says("host:port"));
    EXPECT_EQ(pcclParseAddress("5000:1", 1, &a), pcclInvalidArgument);
    EXPECT_EQ(pcclParseAddress("[fe80::1%lo]:5", 1, &a), pcclInvalidArgument); /* would lose which interface was meant */
    EXPECT(says("'[fe80::1%lo]:5'") && says("scope '%lo'"));
    EXPECT_EQ(pcclParseAddress("fe80::1%2", 1, &a), pcclInvalidArgument);
    EXPECT(says("scope '%2'"));
    EXPECT_EQ(a.port, 7);
    EXPECT_EQ(pcclParseAddress("127.0.0.1", 9, &a), pcclSuccess);
    EXPECT_EQ(a.port, 9);
    static const char *const bare[] = {"::1", "fd00::1:2", "fd00::5:21f0", "fd00::5:0110", "fd00:1:2:3:4:5:6:2110", "[::1:2110]"};
    for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++) { /* nobody takes their ends for ports */
        EXPECT_EQ(pcclParseAddress(bare[i], 9, &a), pcclSuccess);
        EXPECT(a.inet.protocol == inetIPv6 && a.port == 9);
    }
}

TEST(addresses_in_other_shapes_say_what_to_write_instead) /* http://, ::1 with a port and 1.2.3 are what people write first */
{
    static const struct {
        const char *text, *instead;
    } shapes[] = {{"::1:48148", "'[::1]:48148'"},         {"::1:2110", "meant '[::1]:2110' or '[::1:2110]'?"},         {"fe80::7:48148", "'[fe80::7]:48148'"},
                  {"http://node-1:48148", "'node-1:48148'"}, {"tcp://10.0.0.1:7/run", "'10.0.0.1:7'"},
                  {"http://", "names no host: write host, host:port or [ipv6]:port, without 'http://'"},
                  {"http:///run", "names no host"},
                  {"1.2.3", "four numbers"},              {"1.2.3:5", "four numbers"},
                  {"256.1.1.1", "four numbers"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        ccoip_socket_address_t a = {.port = 7};
        EXPECT_EQ(pcclParseAddress(shapes[i].text, 1, &a), pcclInvalidArgument);
        EXPECT(says(shapes[i].text) && says(shapes[i].instead));
        EXPECT_EQ(a.port, 7);
    }
}

TEST(null_pointers_are_named) /* "null pointer" of four arguments */
{
    ccoip_socket_address_t a;
    pcclAsyncReduceOp_t handle = {NULL, 1};
    size_t index = 0;
    EXPECT_EQ(pcclParseAddress(NULL, 1, &a), pcclInvalidArgument);
    EXPECT(says("text is null"));
    EXPECT_EQ(pcclParseAddress("127.0.0.1", 1, NULL), pcclInvalidArgument);
    EXPECT(says("address_out is null"));
    EXPECT_EQ(pcclGetMasterAddress(NULL, &a), pcclInvalidArgument);
    EXPECT(says("master_instance is null"));
    EXPECT_EQ(pcclTestAsyncReduce(&handle, NULL), pcclInvalidArgument);
    EXPECT(says("done_out is null"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(&handle, 1, 0, &index), pcclInvalidArgument);
    EXPECT(says("reduce_handles[0].comm is null"));
}

TEST(a_master_address_that_was_never_filled_in_says_how) /* the result of pcclParseAddress was not looked at */
{
    pcclCommCreateParams_t params = {.peer_group = 0};
    pcclComm_t *comm = NULL;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclInvalidArgument);
    EXPECT(says("port 0") && says("pcclParseAddress") && says("'10.0.0.1:48148'"));
    params.master_address.inet.protocol = (ccoip_inet_protocol_t)7;
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclInvalidArgument);
    EXPECT(says("protocol 7"));
    EXPECT(comm == NULL);
}

/* Of lists of counts the entry is named that cannot be, and each takes its turn; lists longer than memory are not read. */
static void huge(struct cluster_peer *p, void *context)
{
    enum { MANY = 64 };
    float in[MANY] = {0}, out[MANY];
    size_t one[2] = {1, 1}, wide[2] = {1, SIZE_MAX}, far[2] = {0, SIZE_MAX}, index = 0;
    pcclComm_t *comm = p->comm;
    pcclReduceOpDescriptor_t op = {in, out, cluster_floats(1, 1)};
    pcclAsyncOp_t handle = {comm, 1};
    (void)context;
    EXPECT_EQ(pcclAllGatherV(in, out, wide, NULL, pcclFloat, comm, NULL), pcclInvalidArgument);
    EXPECT(says("counts[1] is 18446744073709551615"));
    EXPECT_EQ(pcclReduceScatterV(in, out, one, far, pcclFloat, pcclSum, comm, NULL), pcclInvalidArgument);
    EXPECT(says("counts[1] is 1, from element 18446744073709551615 on"));
    EXPECT_EQ(pcclAllToAllV(in, wide, NULL, out, wide, NULL, pcclFloat, comm, NULL), pcclInvalidArgument);
    EXPECT(says(" send_counts[1] is"));
    EXPECT_EQ(pcclAllToAllV(in, one, NULL, out, one, far, pcclFloat, comm, NULL), pcclInvalidArgument);
    EXPECT(says(" recv_counts[1] is"));
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(&op, SIZE_MAX, comm, NULL, 1), pcclInvalidArgument);
    EXPECT(says("count is 18446744073709551615: at most"));
    EXPECT_EQ(pcclWaitAnyAsync(&handle, SIZE_MAX, 0, &index), pcclInvalidArgument);
    EXPECT(says("count is 18446744073709551615: at most"));
    EXPECT_EQ(pcclBarrier(comm, NULL), pcclSuccess);
}

TEST(counts_that_no_memory_holds_are_told_which) /* "count is 0" of a list, and what lies behind the program's was read */
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, huge, NULL);
    cluster_stop(&c);
}

TEST(an_unknown_number_is_told_with_those_there_are) /* "unknown option 7": and which are known? */
{
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    pcclPlan_t plan;
    uint64_t value = 0;
    int size = 0;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclGetAttribute(comm, (pcclAttribute_t)9, &size), pcclInvalidArgument);
    EXPECT(says("attribute is 9: expected 1 (PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) to 4"));
    EXPECT_EQ(pcclSetOption(comm, (pcclOption_t)-1, 1), pcclInvalidArgument);
    EXPECT(says("option is -1: expected 1 (PCCL_OPTION_OPERATION_DEADLINE_MS) to 5"));
    EXPECT_EQ(pcclGetOption(comm, (pcclOption_t)6, &value), pcclInvalidArgument);
    EXPECT(says("option is 6: expected 1"));
    EXPECT_EQ(pcclSetLogCallback(NULL, (pcclLogLevel_t)6, NULL), pcclInvalidArgument);
    EXPECT(says("level is 6: expected 0 (pcclLogTrace) to 5 (pcclLogNone)"));
    EXPECT_EQ(pcclGetPlan(comm, (pcclCollective_t)-1, 1, pcclFloat, pcclSum, &plan), pcclInvalidArgument);
    EXPECT(says("collective is -1: expected 0"));
    EXPECT_EQ(pcclGetPlan(comm, pcclCollectiveAllReduce, 1, (pcclDataType_t)300, pcclSum, &plan), pcclInvalidArgument);
    EXPECT(says("datatype is 300: expected 0"));
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(an_option_out_of_range_is_told_the_range)
{
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    pcclComm_t *comm = NULL;
    uint64_t value = 0;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_STALL_TIMEOUT_MS, 49), pcclInvalidArgument);
    EXPECT(says("option 2") && says("49 ms") && says("50 to 4294967295"));
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 0), pcclInvalidArgument);
    EXPECT(says("0 ms") && says("1 to 4294967295"));
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_VOTE_DEADLINE_MS, UINT64_MAX), pcclInvalidArgument);
    EXPECT_EQ(pcclGetOption(comm, PCCL_OPTION_VOTE_DEADLINE_MS, NULL), pcclInvalidArgument);
    EXPECT(says("value_out is null"));
    EXPECT_EQ(pcclGetOption(comm, PCCL_OPTION_STALL_TIMEOUT_MS, &value), pcclSuccess);
    EXPECT_EQ(value, 10000);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

/* A communicator that is in no run: arguments are looked at first. */
static pcclComm_t *loner(void)
{
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    pcclComm_t *comm = NULL;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    return comm;
}

static bool says_of(const char *place, const char *words)
{
    char text[200];
    snprintf(text, sizeof text, "%s%s", place, words);
    return says(text);
}

/* The same mistake in each call that takes descriptors. */
static void expect_bad_descriptor(pcclComm_t *comm, pcclReduceDescriptor_t bad, const char *words, const char *range)
{
    float x[4] = {0}, y[4] = {0};
    pcclAsyncReduceOp_t handle;
    pcclReduceOpDescriptor_t list[3] = {{x, y, cluster_floats(4, 1)}, {x, y, bad}, {x, y, cluster_floats(4, 3)}};
    EXPECT_EQ(pcclAllReduce(x, y, &bad, comm, NULL), pcclInvalidArgument);
    EXPECT(says_of("reduce: descriptor->", words) && says(range));
    EXPECT_EQ(pcclAllReduceAsync(x, y, &bad, comm, &handle), pcclInvalidArgument);
    EXPECT(says_of("launch: descriptor->", words) && says(range));
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 3, comm, NULL, 2), pcclInvalidArgument);
    EXPECT(says_of("reduce many: descriptors[1].descriptor.", words) && says(range));
}

TEST(a_bad_descriptor_is_told_field_value_and_range) /* "unknown operator 9": of which descriptor, and what is allowed? */
{
    pcclComm_t *comm = loner();
    const pcclReduceDescriptor_t good = cluster_floats(4, 2);
    pcclReduceDescriptor_t d = good;
    d.op = (pcclRedOp_t)9;
    expect_bad_descriptor(comm, d, "op is 9", "0 (pcclSum) to 7 (pcclBitXor)");
    d = good;
    d.src_descriptor.datatype = (pcclDataType_t)77;
    expect_bad_descriptor(comm, d, "src_descriptor.datatype is 77", "0 (pcclUint8) to 14 (pcclFloat8E5M2)");
    d = good;
    d.op = pcclBitOr;
    expect_bad_descriptor(comm, d, "op is 6 (or) of f32", "operators of bits are for integer types");
    d.op = pcclSum;
    d.src_descriptor.datatype = pcclFloat8E4M3;
    expect_bad_descriptor(comm, d, "op is 0 (sum) of f8e4m3", "travel as bytes");
    d.op = pcclProd;
    d.src_descriptor.datatype = pcclBool;
    expect_bad_descriptor(comm, d, "op is 2 (prod) of bool", "bool has sum, max and or");
    d = good;
    d.src_descriptor.distribution_hint = (pcclDistributionHint_t)3;
    expect_bad_descriptor(comm, d, "src_descriptor.distribution_hint is 3", "to 2 (pcclDistributionUniform)");
    d = good;
    d.quantization_options.algorithm = (pcclQuantizationAlgorithm_t)5;
    expect_bad_descriptor(comm, d, "quantization_options.algorithm is 5", "to 2 (pcclQuantZeroPointScale)");
    d = good;
    d.quantization_options = (pcclQuantizationOptions_t){(pcclDataType_t)15, pcclQuantMinMax};
    expect_bad_descriptor(comm, d, "quantization_options.quantized_datatype is 15", "0 (pcclUint8) to 14 (pcclFloat8E5M2)");
    d.quantization_options.quantized_datatype = pcclInt8;
    expect_bad_descriptor(comm, d, "quantization_options.algorithm is 1 (pcclQuantMinMax)",
                          "f32 or f64 to quantized_datatype u8, u16, u32 or u64, not f32 to i8");
    d.quantization_options = (pcclQuantizationOptions_t){pcclUint8, pcclQuantZeroPointScale};
    d.src_descriptor.datatype = pcclFloat16;
    expect_bad_descriptor(comm, d, "quantization_options.algorithm is 2 (pcclQuantZeroPointScale)",
                          "u8 to u64 or i8 to i64, not f16 to u8");
    d = good;
    d.count = ((size_t)1 << 45) + 1;
    expect_bad_descriptor(comm, d, "count is 35184372088833", "at most 35184372088832 elements of f32");
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(a_bad_list_of_operations_is_told_what_and_where) /* three causes in one text, and an element without its index */
{
    pcclComm_t *comm = loner();
    float x[4] = {0}, y[4] = {0};
    pcclReduceDescriptor_t d = cluster_floats(4, 1);
    pcclReduceOpDescriptor_t list[2] = {{x, y, cluster_floats(4, 1)}, {x, NULL, cluster_floats(4, 2)}};
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(NULL, 2, comm, NULL, 1), pcclInvalidArgument);
    EXPECT(says("descriptors is null"));
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 0, comm, NULL, 1), pcclInvalidArgument);
    EXPECT(says("count is 0"));
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 2, comm, NULL, -3), pcclInvalidArgument);
    EXPECT(says("max_in_flight is -3") && says("1 or more"));
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 2, comm, NULL, 1), pcclInvalidArgument);
    EXPECT(says("descriptors[1].recvbuf is null") && says("descriptor.count is 4"));
    list[1] = (pcclReduceOpDescriptor_t){NULL, y, cluster_floats(4, 2)};
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 2, comm, NULL, 1), pcclInvalidArgument);
    EXPECT(says("descriptors[1].sendbuf is null"));
    EXPECT_EQ(pcclAllReduce(NULL, y, &d, comm, NULL), pcclInvalidArgument);
    EXPECT(says("sendbuff is null while descriptor->count is 4"));
    EXPECT_EQ(pcclAllReduce(x, NULL, &d, comm, NULL), pcclInvalidArgument);
    EXPECT(says("recvbuff is null while descriptor->count is 4"));
    EXPECT_EQ(pcclAllReduce(x, y, NULL, comm, NULL), pcclInvalidArgument);
    EXPECT(says("descriptor is null"));
    EXPECT_EQ(pcclAllReduceAsync(x, y, &d, comm, NULL), pcclInvalidArgument);
    EXPECT(says("reduce_handle_out is null"));
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(a_bad_handle_is_told_which_and_its_tag) /* "the communicator is null" of a call that takes none */
{
    pcclComm_t *comm = loner();
    pcclAsyncReduceOp_t none = {NULL, 6}, unknown = {comm, 7}, both[2] = {unknown, none};
    bool done = false;
    size_t index = 5;
    EXPECT_EQ(pcclAwaitAsyncReduce(NULL, NULL), pcclInvalidArgument);
    EXPECT(says("await: reduce_handle is null"));
    EXPECT_EQ(pcclAwaitAsyncReduce(&none, NULL), pcclInvalidArgument);
    EXPECT(says("await: reduce_handle->comm is null"));
    EXPECT_EQ(pcclAwaitAsyncReduce(&unknown, NULL), pcclInvalidUsage);
    EXPECT(says("await: reduce_handle->tag is 7"));
    EXPECT_EQ(pcclTestAsyncReduce(NULL, &done), pcclInvalidArgument);
    EXPECT(says("test: reduce_handle is null"));
    EXPECT_EQ(pcclTestAsyncReduce(&none, &done), pcclInvalidArgument);
    EXPECT(says("test: reduce_handle->comm is null"));
    EXPECT_EQ(pcclTestAsyncReduce(&unknown, NULL), pcclInvalidArgument);
    EXPECT(says("test: done_out is null"));
    EXPECT_EQ(pcclTestAsyncReduce(&unknown, &done), pcclInvalidUsage);
    EXPECT(says("test: reduce_handle->tag is 7"));
    EXPECT_EQ(pcclCancelAsyncReduce(NULL), pcclInvalidArgument);
    EXPECT(says("cancel: reduce_handle is null"));
    EXPECT_EQ(pcclCancelAsyncReduce(&none), pcclInvalidArgument);
    EXPECT(says("cancel: reduce_handle->comm is null"));
    EXPECT_EQ(pcclCancelAsyncReduce(&unknown), pcclInvalidUsage);
    EXPECT(says("cancel: reduce_handle->tag is 7"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(NULL, 2, 0, &index), pcclInvalidArgument);
    EXPECT(says("reduce_handles is null"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(both, 2, 0, NULL), pcclInvalidArgument);
    EXPECT(says("index_out is null"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(both, 0, 0, &index), pcclInvalidArgument);
    EXPECT(says("count is 0"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(both, 2, -5, &index), pcclInvalidArgument);
    EXPECT(says("timeout_ms is -5") && says("-1 (no limit)"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(both, 2, 0, &index), pcclInvalidArgument);
    EXPECT(says("reduce_handles[1].comm is null"));
    both[1] = unknown;
    EXPECT_EQ(pcclWaitAnyAsyncReduce(both, 2, 0, &index), pcclInvalidUsage);
    EXPECT(says("reduce_handles[0].tag is 7"));
    EXPECT_EQ(index, 5);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

/* Entry 1 of two is `t`. */
static void expect_bad_entry(pcclComm_t *comm, pcclTensorInfo_t t, const char *words, const char *range)
{
    float w = 1;
    pcclTensorInfo_t infos[2] = {{.name = "w", .data = &w, .count = 1, .datatype = pcclFloat}, t};
    pcclSharedState_t state = {.revision = 3, .count = 2, .infos = infos};
    EXPECT_EQ(pcclSynchronizeSharedState(comm, &state, NULL), pcclInvalidArgument);
    EXPECT(says_of("sync: shared_state->infos[1].", words) && says(range));
    EXPECT_EQ(state.revision, 3);
}

TEST(a_bad_entry_of_the_shared_state_is_told_field_value_and_range) /* "entry 'y': unknown data type": which one is it? */
{
    pcclComm_t *comm = loner();
    double y = 2;
    const pcclTensorInfo_t good = {.name = "y", .data = &y, .count = 1, .datatype = pcclDouble};
    pcclTensorInfo_t t = good;
    t.name = NULL;
    expect_bad_entry(comm, t, "name is null", "a name of its own");
    t = good;
    t.datatype = (pcclDataType_t)15;
    expect_bad_entry(comm, t, "datatype of 'y' is 15", "0 (pcclUint8) to 14 (pcclFloat8E5M2)");
    t = good;
    t.device_type = pcclDeviceCuda;
    expect_bad_entry(comm, t, "device_type of 'y' is 1", "0 (pcclDeviceCpu)");
    t = good;
    t.data = NULL;
    expect_bad_entry(comm, t, "data of 'y' is null while its count is 1", "or count 0");
    t = good;
    t.count = ((size_t)1 << 44) + 1;
    expect_bad_entry(comm, t, "count of 'y' is 17592186044417", "at most 17592186044416 elements of f64");
    t.count--; /* with the one before it, too many */
    expect_bad_entry(comm, t, "count of 'y' is 17592186044416", "140737488355332 bytes, at most 140737488355328");
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(a_bad_shared_state_is_told_argument_and_value)
{
    pcclComm_t *comm = loner();
    pcclTensorInfo_t info = {.name = "w"};
    pcclSharedState_t state = {.revision = 1, .count = 2};
    EXPECT_EQ(pcclSynchronizeSharedState(comm, NULL, NULL), pcclInvalidArgument);
    EXPECT(says("shared_state is null"));
    EXPECT_EQ(pcclSynchronizeSharedState(comm, &state, NULL), pcclInvalidArgument);
    EXPECT(says("shared_state->infos is null while shared_state->count is 2"));
    state = (pcclSharedState_t){.revision = 1, .count = ((size_t)1 << 30) + 1, .infos = &info};
    EXPECT_EQ(pcclSynchronizeSharedState(comm, &state, NULL), pcclInvalidArgument);
    EXPECT(says("shared_state->count is 1073741825") && says("at most 1073741824"));
    state.count = 1;
    EXPECT_EQ(pcclSynchronizeSharedState(comm, &state, (pcclSharedStateSyncStrategy_t)3, NULL), pcclInvalidArgument);
    EXPECT(says("strategy is 3") && says("0 (PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR) to 2 "));
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

TEST(two_entries_of_one_name_are_both_found_among_many) /* the name is the key, but only the order told them apart */
{
    enum { MANY = 10000, FIRST = 17, SECOND = 9998 };
    struct cluster c;
    cluster_start(&c, 1, NULL, 1);
    char (*names)[16] = calloc(MANY, sizeof *names), was[16];
    pcclTensorInfo_t *infos = calloc(MANY, sizeof *infos);
    unsigned char *data = calloc(MANY, 1);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof *names, "layer.%zu", i * 7919 % MANY); /* in no order */
        infos[i] = (pcclTensorInfo_t){.name = names[i], .data = data + i, .count = 1, .datatype = pcclUint8};
    }
    pcclSharedState_t state = {.revision = 1, .count = MANY, .infos = infos};
    memcpy(was, names[SECOND], sizeof was);
    memcpy(names[SECOND], names[FIRST], sizeof was); /* equal texts, not one pointer */
    EXPECT_EQ(pcclSynchronizeSharedState(c.peer[0].comm, &state, NULL), pcclInvalidArgument);
    EXPECT(says("infos[17].name and shared_state->infos[9998].name") && says(names[FIRST]));
    memcpy(names[SECOND], was, sizeof was);
    EXPECT_EQ(pcclSynchronizeSharedState(c.peer[0].comm, &state, NULL), pcclSuccess); /* nothing was lost */
    free(data);
    free(infos);
    free(names);
    cluster_stop(&c);
}

static void odd_operations(struct cluster_peer *p, void *context)
{
    (void)context;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    unsigned char raw[64] = {0};
    char value[64];
    pcclReduceInfo_t info = {0};
    pcclReduceDescriptor_t d = cluster_floats(0, 1);
    EXPECT_EQ(pcclAllReduce(NULL, NULL, &d, p->comm, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, 2);
    /* beyond any address space: a plan could not number its frames, and would be empty */
    const size_t counts[] = {(size_t)1 << 46, (size_t)1 << 50, SIZE_MAX / 4, SIZE_MAX / 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        d = cluster_floats(counts[i], 2);
        EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclInvalidArgument);
        snprintf(value, sizeof value, "descriptor->count is %zu", counts[i]);
        EXPECT(says(value));
    }
    d = cluster_floats(4, 2);
    d.src_descriptor.distribution_hint = (pcclDistributionHint_t)9;
    EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("distribution_hint is 9"));
    d = cluster_floats(4, 3);
    memcpy(raw + 1, x, sizeof x);
    EXPECT_EQ(pcclAllReduce(raw + 1, raw + 33, &d, p->comm, NULL), pcclSuccess);
    memcpy(y, raw + 33, sizeof y);
    for (int i = 0; i < 4; i++) {
        EXPECT(y[i] == 2 * x[i]);
    }
    pcclAsyncReduceOp_t handle;
    d = cluster_floats(4, 4);
    EXPECT_EQ(pcclAllReduceAsync(x, y, &d, p->comm, &handle), pcclSuccess);
    EXPECT_EQ(pcclAllReduce(x, raw, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("tag 4: the tag is in flight: await it first, or use another tag"));
    pcclSharedState_t state = {.revision = 1};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclPendingAsyncOps);
    EXPECT(says("not awaited: 1"));
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclInvalidUsage);
    EXPECT(says("reduce_handle->tag is 4"));
    EXPECT_EQ(pcclConnect(p->comm), pcclInvalidUsage);
    EXPECT(!says("connect first"));
}

TEST(counts_and_buffers_at_the_edges)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, odd_operations, NULL);
    cluster_stop(&c);
}

TEST(destroyed_communicators_are_known_as_such) /* a second destroy frees what is freed */
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    pcclComm_t *gone = c.peer[1].comm;
    EXPECT_EQ(pcclDestroyCommunicator(gone), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(gone), pcclInvalidUsage);
    EXPECT_EQ(pcclConnect(gone), pcclInvalidUsage);
    EXPECT(says("destroyed"));
    int size = 0;
    EXPECT_EQ(pcclGetAttribute(gone, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size), pcclInvalidUsage);
    c.peer[1].comm = NULL;
    cluster_stop(&c);
}

/* Something listens there that is no master: it takes the connection and says nothing. */
TEST(an_address_where_no_master_answers_is_named)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    EXPECT(bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 8) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    pcclCommCreateParams_t params = {.master_address = {.inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}},
                                                        .port = ntohs(at.sin_port)}};
    pcclComm_t *comm = NULL;
    char name[32];
    snprintf(name, sizeof name, "127.0.0.1:%u", ntohs(at.sin_port));
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 200), pcclSuccess);
    EXPECT_EQ(pcclConnect(comm), pcclMasterConnectionFailed);
    EXPECT(says(name));
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    close(fd);
}
