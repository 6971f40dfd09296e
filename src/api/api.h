/* api.h - what the files behind pccl.h share: handles, entry checks, errors, conversions.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_API_API_H
#define PCCL_API_API_H

#include "api/api_handle.h"
#include "include/pccl.h"
#include "engine/comm.h"

struct pcclComm_t {
    struct api_handle handle;
    struct comm *comm; /* owned */
};

/* No process has more memory than a 47 bit address reaches; plans and state trees can number all of that. */
#define API_MOST_BYTES ((size_t)1 << 47)

/* The remedy where versions of the protocol differ: this side's release, since the other's is not known. */
#define API_TEXT_OF(x) #x
#define API_TEXT(x) API_TEXT_OF(x)
#define API_SAME_VERSION                                                                                              \
    "run the same version of PCCL everywhere (this is PCCL " API_TEXT(PCCL_VERSION_MAJOR) "." API_TEXT(PCCL_VERSION_MINOR) \
    "." API_TEXT(PCCL_VERSION_PATCH) ")"

/* The values of pcclDataType_t, for texts. */
#define API_REDOPS "0 (pcclSum) to 7 (pcclBitXor), or one of pcclRedOpCreatePreMulSum"
#define API_DATATYPES "0 (pcclUint8) to 14 (pcclFloat8E5M2)"

/* ---- Errors: api_error.c ---------------------------------------------------------------------------------------------------- */

/* Stores this thread's last error; returns `result`. */
pcclResult_t api_fail(pcclResult_t result, pcclCause_t cause, const char *phase, const char *fmt, ...) PCCL_PRINTF(4, 5);
/* The same for what a session said; success stores nothing.  `phase`: the call; tag: of the operation, or 0. */
pcclResult_t api_outcome(const struct session_outcome *o, const char *phase, uint64_t tag);
/* `remedy`: in place of the one that the table has for such an outcome; null: that one. */
pcclResult_t api_outcome_hint(const struct session_outcome *o, const char *phase, uint64_t tag, const char *remedy);

/* The same as what the program is told later, with nothing stored; all zeros after a success. */
pcclResult_t api_outcome_told(const struct session_outcome *o, const char *phase, uint64_t tag, pcclErrorInfo_t *error);

/* "argument is null: remedy". */
pcclResult_t api_null(const char *phase, const char *argument, const char *remedy);
/* Changes the class of this thread's last error. */
void api_reclass(pcclErrorClass_t error_class);
/* No error any more. */
void api_forget(void);
/* Makes an error that was stored before this thread's last one again. */
void api_restore(const pcclErrorInfo_t *error);

/* ---- Entry: api.c ------------------------------------------------------------------------------------------------------------ */

/* The original's calls take a communicator as const; what is counted in it, and stored in handles, is the library's own. */
static inline pcclComm_t *api_own(const pcclComm_t *communicator)
{
    return ((union { const pcclComm_t *in; pcclComm_t *own; }){.in = communicator}).own;
}

/* Checks a communicator and counts the call; the comm stays alive until api_leave; null unless that succeeds. */
pcclResult_t api_enter(const pcclComm_t *handle, const char *phase, struct comm **comm_out);
void api_leave(struct comm *comm);
/* Checks that it is a member of a view. */
pcclResult_t api_member(struct comm *comm, const char *phase, struct session_info *info);
/* The same error where it was one and is none any more; success before the first connect, and while connecting. */
pcclResult_t api_not_gone(struct comm *comm, const char *phase);

/* ---- Communicators: api_create.c --------------------------------------------------------------------------------------------- */

pcclResult_t api_communicator(const struct comm_params *params, const char *phase, pcclComm_t **comm_out);
uint16_t api_lanes(uint32_t pool); /* of a pool that may be 0 */

/* ---- Operators: api_premul.c --------------------------------------------------------------------------------------------------- */

enum { API_WHY = 256 };

struct api_redop {
    enum redop op;
    uint64_t factor; /* REDOP_PREMUL: as it is now */
};

/* What the program means by `given`; false, with the reason: there is no such operator, or not of that type. */
bool api_redop(struct comm *c, unsigned given, enum dtype type, struct api_redop *out, char why[API_WHY]);

/* ---- Calls that sum: api_sum.c ------------------------------------------------------------------------------------------------- */

/* What the program calls the fields. */
struct api_sum_fields {
    const char *datatype, *algorithm, *quantized_datatype;
    const char *quantized_last; /* the last of them where it follows another of its struct */
};

struct api_sum {
    enum dtype type;
    struct api_redop redop;
    enum quant quant;
    enum dtype quant_type;
};

/* Null `quantization`: none.  False, with the reason: "field is value: remedy". */
bool api_sum(struct comm *c, unsigned datatype, unsigned op, const pcclQuantizationOptions_t *quantization,
             const struct api_sum_fields *fields, struct api_sum *out, char why[API_WHY]);
void api_sum_params(const struct api_sum *sum, struct op_call *call);

/* ---- What all forms of all-reduce check: api_reduce.c -------------------------------------------------------------------------- */

/* Where a descriptor was given, so that an error names what the program wrote. */
struct api_reduce_where {
    struct comm *comm; /* whose operators are meant */
    const char *phase;
    size_t index; /* in `descriptors`; API_REDUCE_SINGLE: it is `descriptor` */
};

#define API_REDUCE_SINGLE SIZE_MAX

/* Checks what a single peer can check and fills in the launch. */
pcclResult_t api_reduce_check(const struct api_reduce_where *at, const void *send, void *recv, const pcclReduceDescriptor_t *d,
                              struct comm_launch *out);

/* ---- Algorithms: api_wishes.c ------------------------------------------------------------------------------------------------------ */

/* What PCCL_ALGO asks for. */
pcclResult_t api_wishes(const char *phase, struct choose_wishes *out);

/* ---- Launch: api_launch.c ------------------------------------------------------------------------------------------------------ */

/* Launches: blocking, as a handle, or into the group that this thread has open.  Between api_enter and api_leave. */
pcclResult_t api_launch(const pcclComm_t *communicator, struct comm_launch *launch, pcclAsyncOp_t *async_op_out, const char *phase,
                        uint64_t tag);

/* ---- Memory of calls that run at the same time: api_overlap.c ------------------------------------------------------------------- */

struct api_extent {
    uintptr_t from, end; /* the first byte, and the one behind the last */
};
struct api_extents {
    struct api_extent *list; /* owned */
    size_t count, capacity;
};
struct api_operands {
    struct api_extents read, written;
};
struct api_extent api_extent_of(const void *buffer, size_t bytes);
/* Whether the extent is, or would be, written where an operand lies. */
bool api_operands_meet(const struct api_operands *o, struct api_extent one, bool written);
bool api_operands_add(struct api_operands *o, struct api_extent one, bool written); /* false: no memory */
void api_operands_fini(struct api_operands *o);

struct api_use {
    struct api_extent extent;
    size_t index; /* of the call that uses it; one that reads and writes the same extent says so once */
    bool written;
};
/* Sorts them.  Whether two meet of which one is written; stores the indices of their calls, the lower one first. */
bool api_uses_meet(struct api_use *uses, size_t count, size_t *one_out, size_t *other_out);

/* ---- Groups: api_group.c ------------------------------------------------------------------------------------------------------ */

bool api_group_open(void); /* by this thread */
/* Until it is told otherwise, what this thread calls is no call of its group: a call that is made of others waits for them. */
void api_group_aside(bool aside);
/* Operands of this thread's calls so far that run together with a call it makes now, `async` or not.  Null: there are none. */
struct api_operands *api_group_operands(bool async);
/* Until null is set, all calls of this thread run together, and these are their operands. */
void api_group_together(struct api_operands *operands);
/* It is awaited with the group. */
pcclResult_t api_group_add(const pcclAsyncOp_t *op);
/* An error inside of a group is the group's, too; returns it. */
pcclResult_t api_group_note(pcclResult_t rc);

/* A message of this peer to itself; whichever comes later does the copy. */
struct api_own_message {
    const pcclComm_t *comm;
    uint64_t tag;
    bool receives;
    const void *in;
    void *out;
    size_t count;
    pcclDataType_t datatype;
    uint32_t *source; /* may be null */
    uint32_t rank;
};
pcclResult_t api_group_own(const struct api_own_message *m);

/* ---- Operations: api_pending.c ------------------------------------------------------------------------------------------------ */

/* `info` may be null. */
void api_reduce_info(const struct session_outcome *o, pcclReduceInfo_t *info);
/* -1: no limit; InvalidArgument below that. */
pcclResult_t api_deadline(const char *phase, int64_t timeout_ms, int64_t *deadline_out);
int64_t api_call_patience(void); /* until when what it launches asynchronously may be waited for; 0: not at all */
int64_t api_call_deadline(void); /* of what this thread launches now, as struct comm_launch has it */
void api_completion(const struct op_ended *report, uint64_t cookie, pcclCompletion_t *out);
/* Checks a handle that the program passed, an argument called as its kind's are, and enters its communicator.  `space` says which kind. */
pcclResult_t api_enter_async(const char *phase, uint8_t space, const void *handle, uint64_t *number_out, struct comm **comm_out);
/* InvalidUsage: no operation behind such a handle. */
pcclResult_t api_spent(const char *phase, uint8_t space, uint64_t number);

/* ---- Addresses: api.c --------------------------------------------------------------------------------------------------------- */

struct net_address api_address_in(const ccoip_socket_address_t *a);
ccoip_socket_address_t api_address_out(const struct net_address *a);

#endif
