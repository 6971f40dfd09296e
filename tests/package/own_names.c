/* own_names.c - a user program that happens to use the library's internal names; it must link against the archive.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>

int vote_open(void);
int conn_send(void);
int log_line(void);
int check_fail(void);
int master_step(void);

int vote_open(void)
{
    return 1;
}

int conn_send(void)
{
    return 2;
}

int log_line(void)
{
    return 3;
}

int check_fail(void)
{
    return 4;
}

int master_step(void)
{
    return 5;
}

int main(void)
{
    if (pcclInit() != pcclSuccess || pcclGetResultString(pcclSuccess) == 0) {
        return 1;
    }
    return vote_open() + conn_send() + log_line() + check_fail() + master_step() != 15;
}
