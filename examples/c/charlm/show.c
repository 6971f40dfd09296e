/* show.c - lines, curve and sample on standard output.
 * SPDX-License-Identifier: MIT */
#include "show.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CURVE_POINTS = 100000, CURVE_WIDTH = 72, CURVE_HEIGHT = 14 };

static double show_began;
static char show_who[32];
static struct {
    uint64_t step;
    double loss;
} points[CURVE_POINTS];
static size_t point_count;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void show_begin(double began, const char *who)
{
    show_began = began > 0 ? began : now_seconds();
    snprintf(show_who, sizeof show_who, "%s", who);
    setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines, also into a pipe that several peers share */
}

double show_seconds(void)
{
    return now_seconds() - show_began;
}

void show_line(const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    printf("%6.2f s  %-7s %s\n", show_seconds(), show_who, line);
}

void show_remember(uint64_t step, double loss)
{
    if (point_count < CURVE_POINTS) {
        points[point_count].step = step;
        points[point_count].loss = loss;
        point_count++;
    }
}

/* Mean of the points that fall into each column, then marks from top to bottom. */
void show_curve(double bigram_loss)
{
    double column[CURVE_WIDTH], low = bigram_loss, high = bigram_loss;
    size_t count = point_count < CURVE_WIDTH ? point_count : CURVE_WIDTH;
    for (size_t c = 0; c < count; c++) {
        size_t from = c * point_count / count, to = (c + 1) * point_count / count;
        column[c] = 0;
        for (size_t i = from; i < to; i++) {
            column[c] += points[i].loss / (double)(to - from);
        }
        low = column[c] < low ? column[c] : low;
        high = column[c] > high ? column[c] : high;
    }
    if (count < 2) {
        return;
    }
    double height = (high - low) / (CURVE_HEIGHT - 1);
    printf("\ntraining loss (*), nats per character; bigram model's validation loss (-)\n");
    for (int row = CURVE_HEIGHT - 1; row >= 0; row--) {
        double level = low + height * row;
        char line[CURVE_WIDTH + 1] = {0};
        for (size_t c = 0; c < count; c++) {
            bool here = column[c] > level - height / 2 && column[c] <= level + height / 2;
            bool bigram = bigram_loss > level - height / 2 && bigram_loss <= level + height / 2;
            line[c] = here ? '*' : bigram ? '-' : ' ';
        }
        printf("%5.2f |%s\n", level, line);
    }
    printf("      +");
    for (size_t c = 0; c < count; c++) {
        putchar('-');
    }
    printf("\n       step %llu%*s%llu\n", (unsigned long long)points[0].step, (int)count - 10, "",
           (unsigned long long)points[point_count - 1].step);
}

void show_sample(const float *params, const struct text *t, size_t length)
{
    unsigned char context[TEXT_CONTEXT];
    uint64_t random = 7;
    memcpy(context, t->symbols + t->held[0] - TEXT_CONTEXT, sizeof context);
    printf("\nthe model writes, after \"");
    for (size_t i = 0; i < TEXT_CONTEXT; i++) {
        putchar(text_char(context[i]) == '\n' ? ' ' : text_char(context[i]));
    }
    printf("\":\n  | ");
    for (size_t i = 0; i < length; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned symbol = model_draw(params, context, (double)(random >> 11) / 9007199254740992.0);
        memmove(context, context + 1, TEXT_CONTEXT - 1);
        context[TEXT_CONTEXT - 1] = (unsigned char)symbol;
        if (text_char(symbol) == '\n') {
            printf("\n  | ");
        } else {
            putchar(text_char(symbol));
        }
    }
    printf("\n\n");
}
