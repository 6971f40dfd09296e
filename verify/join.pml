/* join.pml - how a sized world that shrinks takes in others later: JOIN and keys (W13).
 *
 * A formed world of N members, member p under key p, and J joiners.  Members update L times; joiners name a key (NAMED: all name that
 * of the last member) or take the lowest free one, and then update like the others.  CRASH processes die, SUSP living members are
 * excluded.  A view without the lost is published by itself (the freeze in one step); an update is answered when all survivors ask.
 * Checked: (1) no view has two members of one key; (2) a joiner is refused a key only if the view that answers the update has a
 * member of that key, and is told that a world is full only if no key is free; (3) when nothing more can happen every process has
 * ended: members have had all their answers, joiners are in, refused, or wait while members have no more updates to make.
 *
 * How to run (spin, gcc; each line takes seconds):
 *     spin -DNAMED -DCRASH=1 -a join.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DNAMED -DCRASH=1 -t -p -g join.pml     # after "errors: 1": the counterexample, same -D options
 *
 * Must hold:
 *   -DCRASH=1 -DSUSP=1                         -DNAMED -DCRASH=1 -DSUSP=1
 *   -DCRASH=3                                  -DNAMED -DCRASH=3
 *   -DN=3 -DJ=1 -DCRASH=2 -DSUSP=1
 * Must be caught:
 *   -DNAMED -DCRASH=1 -DKEY_EARLY              a named key is checked when its joiner registers: its holder may go, or two pass (W13)
 *   -DNAMED -DCRASH=1 -DKEY_OLD                joiners of one answer are compared with the view before it only (W13)
 *   -DCRASH=2 -DJOIN_WAITS                     a world without members keeps its joiners waiting (W13)
 */
#ifndef N
#define N 2
#endif
#ifndef J
#define J 2
#endif
#ifndef L
#define L 2
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef SUSP
#define SUSP 0
#endif
#define P (N+J)                 /* 4 at most */
#define B(p) (1<<(p))
#define HAS(m,p) (((m)&B(p))!=0)
#define ANY N                   /* the lowest free key */
#define TAKEN 1
#define FULL 2
#define NOBODY 3                /* the world has no members */

byte surv = B(N)-1, voted, reg, passed;         /* members; who asks; joiners that wait, whose key was checked */
byte dead, out, vw, pc[P], key[P], want[P];     /* processes: crashed; excluded or refused; waiting in an update; updates; keys */
byte ncrash, nsusp; bit calm;
hidden byte i, j, f, used;

#define UP(p) (!HAS(dead|out,p))
inline held(m) { used=0; j=0; do :: j<P -> if :: HAS(m,j) -> used = used|B(key[j]) :: else fi; j++ :: else -> break od; j=0 }
inline refuse(x,o) {                            /* f: members of the view that answers */
  held(f); assert(o==NOBODY -> surv==0 : (o==FULL -> used==B(N)-1 : HAS(used,want[x])));
  reg = reg & ~B(x); passed = passed & ~B(x); out = out|B(x); used=0 }
/* an update is answered: the joiners, one after the other */
inline answer() {
  f=surv; i=N;
  do :: i<P ->
       if :: HAS(reg,i) ->
#ifdef KEY_OLD
            held(surv);
#else
            held(f);
#endif
            if :: want[i]==ANY -> j=0; do :: j<N && HAS(used,j) -> j++ :: else -> break od; key[i]=j; j=0 :: else -> key[i]=want[i] fi;
#ifdef KEY_EARLY
            used = (HAS(passed,i) -> 0 : used);
#endif
            if :: key[i]==N -> refuse(i,FULL)
               :: key[i]!=N && HAS(used,key[i]) -> refuse(i,TAKEN)
               :: else -> f = f|B(i); reg = reg & ~B(i) fi
          :: else fi; i++
     :: else -> break od;
  i=0; used=0;
  do :: i<P -> if :: HAS(f,i) -> held(f & ~B(i)); assert(!HAS(used,key[i])) :: else fi; i++ :: else -> break od; i=0; used=0;
  i=0; do :: i<P -> if :: HAS(surv,i) -> pc[i]++ :: else fi; i++ :: else -> break od; i=0;
  vw = vw & ~voted; surv=f; voted=0; f=0 }

proctype Process(byte p) {
end: do
 :: atomic { UP(p) && HAS(surv,p) && !HAS(vw,p) && pc[p]<L -> vw = vw|B(p); voted = voted|B(p) }
 :: atomic { UP(p) && p>=N && !HAS(surv|reg,p) -> reg = reg|B(p);                  /* JOIN */
#ifdef NAMED
      want[p]=N-1;
#else
      want[p]=ANY;
#endif
#ifdef KEY_EARLY
      held(surv); f=surv;
      if :: want[p]!=ANY && HAS(used,want[p]) -> refuse(p,TAKEN) :: else -> passed = passed|B(p) fi; f=0; used=0;
#endif
      skip }
 :: atomic { !HAS(dead,p) && !calm && ncrash<CRASH -> ncrash++; dead = dead|B(p) }
 od }

#define LOST(x) :: atomic { HAS(surv,x) && (HAS(dead,x) || (!calm && nsusp<SUSP && UP(x) && surv!=B(x))) -> \
     if :: UP(x) -> nsusp++; out = out|B(x) :: else fi; surv = surv & ~B(x); voted = voted & ~B(x) } \
  :: atomic { HAS(reg,x) && HAS(dead,x) -> reg = reg & ~B(x) }
active proctype Master() {
 atomic { i=0; do :: i<P -> if :: i<N -> key[i]=i :: else fi; run Process(i); i++ :: else -> break od; i=0 };
end: do
 LOST(0) LOST(1) LOST(2) LOST(3)
 :: atomic { surv!=0 && voted==surv -> answer() }
#ifndef JOIN_WAITS
 :: atomic { surv==0 && reg!=0 -> i=N; do :: i<P -> if :: HAS(reg,i) -> refuse(i,NOBODY) :: else fi; i++ :: else -> break od; i=0 }
#endif
 od }

active proctype Faults() {
end: do
 :: atomic { !calm -> calm=1; break }
 od }

#define ATEND (surv!=0 && (surv & ~(dead|vw|out))!=0)     /* a member has no more updates to make */
#define OVER(p) (!UP(p) || (HAS(surv,p) && (pc[p]==L || ATEND)) || (HAS(reg,p) && ATEND))
active proctype Watch() {
end: timeout -> assert(OVER(0) && OVER(1) && OVER(2) && OVER(3)) }
