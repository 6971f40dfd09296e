/* redial.pml - a member whose connections have closed: when the master takes it out, and when it may come back (M11).
 *
 * N - 1 peers have a link with member V, and V has its control connection with the master.  All connections of V are reset at once, or
 * one of them, or V ends: its connections close, then its listener, or the other way round; or its host vanishes and nobody is told.
 * V dials the master again (take_over of src/world/member.c).  A peer whose link has closed dials V, or asks whether V still listens
 * (src/engine/links/knock.c), and tells the master of a refusal, once in each view (links_refused of src/session/links/peer_links.c).  The master
 * takes V out at a refusal together with a closed control connection (src/world/redial.c).  A freeze ends when V has reported or is out.
 * What is said of an older view does not count.  Time: the second ends only when nothing else can happen any more, so a living V comes back
 * before.
 * Checked: (1) V is not taken out while it lives; (2) a V that has ended, on a host that is still there, is out before the second ends;
 * (3) a V whose host has vanished is out in the end; (4) a V that lives is connected in the end, and no freeze waits for it.
 *
 * How to run (spin, gcc; each line takes under 1 min):
 *     spin -DRESET=1 -DCRASH=1 -a redial.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c && ./pan -m200000     # expect "errors: 0"
 *     spin -DRESET=1 -DCRASH=1 -t -p -g redial.pml     # after "errors: 1": the counterexample, same -D options
 * Budgets: N members (3); RESET resets of all connections of V, CONTROL of the control connection alone, LINK of one link alone, CUT views that
 * end for other reasons, CRASH whether V may end, GONE whether its host may vanish (all 0).  NEWEST: V dials the links; else its peers do.
 *
 * Must hold:
 *   -DRESET=1 -DCRASH=1                        -DRESET=1 -DCRASH=1 -DNEWEST
 *   -DRESET=2 -DLINK=1 -DCRASH=1               -DRESET=2 -DCONTROL=1 -DCRASH=1 -DNEWEST
 *   -DRESET=1 -DCUT=1 -DLINK=1 -DCRASH=1       -DRESET=1 -DCUT=2 -DCRASH=1 -DNEWEST
 *   -DRESET=1 -DGONE=1 -DLINK=1                -DRESET=2 -DGONE=1 -DCUT=1 -DNEWEST
 *   -DN=4 -DRESET=1 -DCRASH=1 -DCUT=1          -DN=2 -DRESET=3 -DLINK=1 -DCONTROL=1 -DCRASH=1
 * Must be caught:
 *   -DRESET=1 -DREDIAL_NOT                     out as soon as the control connection and a link have closed
 *   -DCRASH=1 -DNEWEST -DKNOCK_NOT             who does not dial a link does not ask whether the other end listens
 *   -DCRASH=1 -DNEWEST -DKNOCK_ONCE            ... or asks once: the listener may close last
 *   -DCRASH=1 -DCUT=1 -DREFUSED_ONCE           a refusal is told once, and not again in the next view
 *   -DCRASH=1 -DREFUSED_EARLY                  a refusal that comes before the end of the control connection is forgotten
 */
#ifndef N
#define N 3
#endif
#ifndef RESET
#define RESET 0
#endif
#ifndef CONTROL
#define CONTROL 0
#endif
#ifndef LINK
#define LINK 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef GONE
#define GONE 0
#endif
#define P (N-1)                 /* peers of V */
#define LOST 1
#define REFUSED 2

bit alive = 1, listens = 1, gone;   /* V; gone: its host */
/* the control connection: V has one that is good; the master has one; REGISTER is on its way; an end that the master has not read, of the
 * connection that it has, of the one that REGISTER is on */
bit has = 1, conn = 1, reg, eof_old, eof_new;
/* links: both ends use it; an end that the peer has not read */
bit link[P] = 1, eof[P], asked[P];
byte view, seen[P], told[P];    /* the master's; each peer's, and what it has told of V in it */
bit frozen, link_lost, refused, out;
byte nreset, ncontrol, nlink, ncut;
hidden byte j;
chan say[P] = [8] of { byte, byte };

inline exclude() { assert(!alive); out=1 }
inline break_link(q) { if :: link[q] -> link[q]=0; eof[q]=1 :: else fi }
inline break_links() { j=0; do :: j<P -> break_link(j); j++ :: else -> break od; j=0 }
/* what was sent on it may have arrived before, or not */
inline break_control() {
  if :: reg -> if :: reg=0 :: eof_new=1 fi
     :: !reg && has && conn -> eof_old=1
     :: else fi; has=0 }

#ifdef REDIAL_NOT
#define GIVEN_AWAY 1
#else
#define GIVEN_AWAY refused
#endif
#ifdef REFUSED_EARLY
#define KEPT !conn              /* else it is forgotten */
#else
#define KEPT 1
#endif
#ifdef NEWEST
#ifdef KNOCK_NOT
#define ASKS 0
#else
#define ASKS !asked[q]
#endif
#else
#define ASKS 1                  /* the peer dials, again and again */
#endif
#ifdef REFUSED_ONCE
#define ANEW(t) (t==REFUSED -> REFUSED : 0)
#else
#define ANEW(t) 0
#endif

active [P] proctype peer()
{
  byte q = _pid, what, told_of;
end:
  do
  /* the link is made again, whoever dials */
  :: atomic { alive && listens && !out && !link[q] && !eof[q] -> link[q]=1; told[q]=(told[q]==REFUSED -> LOST : told[q]) }
  :: atomic { eof[q] -> eof[q]=0; asked[q]=0; if :: told[q]==0 -> told[q]=LOST; say[q]!LOST,seen[q] :: else fi }
  :: atomic { !listens && !gone && !link[q] && !eof[q] && told[q]!=REFUSED && ASKS -> told[q]=REFUSED; say[q]!REFUSED,seen[q] }
#ifdef KNOCK_ONCE
  :: atomic { listens && !gone && !link[q] && !eof[q] && !asked[q] -> asked[q]=1 }
#endif
  :: atomic { seen[q]<view -> seen[q]=view; told[q]=ANEW(told[q]) }
  /* the master reads what it has told */
  :: atomic { say[q]?what,told_of ->
     if :: told_of==view && !out ->
        link_lost=1; frozen=1; refused=(refused || (what==REFUSED && KEPT));
        if :: !conn && GIVEN_AWAY -> exclude() :: else fi
     :: else fi; what=0; told_of=0 }
  od
}

active proctype master()
{
  do
  /* what goes wrong */
  :: atomic { alive && nreset<RESET -> nreset++; break_links(); break_control() }
  :: atomic { alive && ncontrol<CONTROL -> ncontrol++; break_control() }
  :: atomic { alive && nlink<LINK -> nlink++; break_link(0) }
  :: atomic { CRASH && alive -> alive=0; break_links(); break_control() }
  :: atomic { CRASH && alive -> alive=0; listens=0; break_links(); break_control() }
  :: atomic { !alive && listens && !gone -> listens=0 }
  :: atomic { GONE && alive -> alive=0; gone=1; has=0 }
  :: atomic { ncut<CUT && !frozen && !out -> ncut++; frozen=1 }
  /* V dials the master again */
  :: atomic { alive && !has && !reg && !eof_new -> has=1; reg=1 }
  /* the master: the end of the control connection, REGISTER */
  :: atomic { eof_old -> eof_old=0; conn=0; if :: link_lost && GIVEN_AWAY && !out -> exclude() :: else fi }
  :: atomic { reg -> reg=0; conn=1; eof_old=eof_new; eof_new=0 }
  /* V reports, or is out: the next view */
  :: atomic { frozen && !out && alive && has && conn && !reg && !eof_old -> frozen=0; view++; link_lost=0; refused=0 }
  :: atomic { frozen && out -> frozen=0 }
  :: timeout -> break
  od;
  /* nothing else can happen: now the second ends, or the stall time of a host that has vanished */
  assert(alive || gone || out);                 /* (2) */
  if :: !out && (!conn || gone) -> exclude() :: else fi;
  assert(alive || out);                         /* (3) */
  assert(!alive || (!out && conn && has && !frozen)) /* (4) */
}
