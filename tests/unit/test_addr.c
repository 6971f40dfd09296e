/* test_addr.c - names of several addresses, as this program's own resolver tells them.
 * SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "tests/testing.h"

#include "net/addr.h"

static const char *const *resolved; /* addresses, ended by NULL */
static struct addrinfo nodes[4];
static struct sockaddr_storage places[4];

/* In the place of the system's, which reads this host's files. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    (void)node, (void)service, (void)hints;
    *found = NULL;
    int count = 0;
    while (resolved[count] != NULL) {
        count++;
    }
    for (int i = count - 1; i >= 0; i--) {
        struct net_address a = {.family = strchr(resolved[i], ':') != NULL ? 6 : 4};
        EXPECT_EQ(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, resolved[i], a.ip), 1);
        socklen_t size = addr_to_system(&a, &places[i]);
        nodes[i] = (struct addrinfo){.ai_addr = (struct sockaddr *)&places[i], .ai_addrlen = size, .ai_next = *found};
        *found = &nodes[i];
    }
    return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
    (void)found;
}

static void expect_chosen(const char *const *addresses, const char *chosen)
{
    struct net_address a;
    char text[ADDR_TEXT];
    resolved = addresses;
    EXPECT_EQ(addr_parse("name:5", 1, &a, NULL), PCCL_OK);
    EXPECT_STR(addr_format(&a, text), chosen);
}

/* The master's default, and a program that listens at 127.0.0.1, would not be found by the name of this host's own. */
TEST(localhost_is_the_address_of_ipv4_where_it_has_both)
{
    expect_chosen((const char *const[]){"::1", "127.0.0.1", NULL}, "127.0.0.1:5");
    expect_chosen((const char *const[]){"127.0.0.1", "::1", NULL}, "127.0.0.1:5");
    expect_chosen((const char *const[]){"::1", NULL}, "[::1]:5");
}

/* The resolver has put those first that this host can reach. */
TEST(any_other_name_is_its_first_address)
{
    expect_chosen((const char *const[]){"2001:db8::7", "10.0.0.7", NULL}, "[2001:db8::7]:5");
    expect_chosen((const char *const[]){"10.0.0.7", "2001:db8::7", "127.0.0.1", NULL}, "10.0.0.7:5");
    expect_chosen((const char *const[]){"::1", "10.0.0.7", NULL}, "[::1]:5");
}

/* The master lets one host hold few of the places for strangers: hosts of one IPv6 network would share them. */
TEST(addresses_are_of_one_host_if_all_their_bytes_are_the_same)
{
    static const struct { const char *a, *b; bool same; } pairs[] = {
        {"10.0.0.7", "10.0.0.7", true}, {"10.0.0.7", "10.0.0.8", false}, {"10.0.0.7", "11.0.0.7", false},
        {"2001:db8::7", "2001:db8::7", true}, {"2001:db8::7", "2001:db8::8", false}, {"2001:db8::7", "2001:db9::7", false},
        {"::1", "::", false}, {"0.0.0.0", "::", false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct net_address a = {.family = strchr(pairs[i].a, ':') != NULL ? 6 : 4, .port = 1};
        struct net_address b = {.family = strchr(pairs[i].b, ':') != NULL ? 6 : 4, .port = 2};
        EXPECT(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, pairs[i].a, a.ip) == 1);
        EXPECT(inet_pton(b.family == 6 ? AF_INET6 : AF_INET, pairs[i].b, b.ip) == 1);
        EXPECT_EQ(address_same_host(&a, &b), pairs[i].same);
        EXPECT(!addr_equal(&a, &b)); /* another port */
        b.port = 1;
        EXPECT_EQ(addr_equal(&a, &b), pairs[i].same);
    }
}
