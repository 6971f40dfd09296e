/* fpenv.c - the fixed floating-point environment of all kernels.
 *
 * A program may have set flush-to-zero, another rounding or unmasked exceptions; results must not depend on it.  enter
 * saves the control word and sets round to nearest, denormals kept, all exceptions masked; leave puts back every bit,
 * sticky flags included.  The memory clobbers keep the arithmetic between the two.
 * SPDX-License-Identifier: MIT */
#include "kernels/kernels.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

void fpenv_enter(struct fpenv *env)
{
    env->saved = _mm_getcsr();
    _mm_setcsr(0x1F80u);
    __asm__ volatile("" ::: "memory");
}

void fpenv_leave(const struct fpenv *env)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr((unsigned)env->saved);
}

#elif defined(__aarch64__)

void fpenv_enter(struct fpenv *env)
{
    const uint64_t ours = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(env->saved));
    __asm__ volatile("msr fpcr, %0" ::"r"(ours) : "memory");
}

void fpenv_leave(const struct fpenv *env)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(env->saved) : "memory");
}

#else

#include <fenv.h>

/* No portable way to ask for denormals: such machines keep them unless told otherwise. */
void fpenv_enter(struct fpenv *env)
{
    env->saved = (uint64_t)fegetround();
    (void)fesetround(FE_TONEAREST);
    __asm__ volatile("" ::: "memory");
}

void fpenv_leave(const struct fpenv *env)
{
    __asm__ volatile("" ::: "memory");
    (void)fesetround((int)env->saved);
}

#endif
