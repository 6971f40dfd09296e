/* worlds.pml - two worlds with common members at one master: what happens in one changes no outcome in the other (W1).
 *
 * N processes are members of both worlds, A (0) and B (1).  In each world a thread of its own runs a program of L steps: collective,
 * vote, collective, ...  (an update in A, a sync in B); after an abort it repeats the collective at once.  Views, HOLD, FREEZE,
 * decision and owed aborts are those of view_change.pml, votes those of vote.pml, without newcomers; the master never crashes.
 *   SUSP times a living member is excluded from A; CUT times a view of A ends with the same members; CUTB: of B; CRASH processes die.
 *   STUCK: process 0 never votes in A.  MUTE: process 0 never reports in A, and is not found silent either.
 * Checked: (1) no call of a world is a success at one member and an abort at another; (2) B is as if A were not there: while
 * nothing has happened in B (no CRASH, CUTB) no view of B ends, no call of B fails, what B's programs read are all members; (3) when
 * nothing more can happen every call in B has returned, and in A unless STUCK or MUTE; (4) an answer comes to who has asked.
 *
 * How to run (spin, gcc; each good line takes under 3 min):
 *     spin -DN=2 -DSUSP=1 -a worlds.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DN=2 -DSUSP=1 -t -p -g worlds.pml     # after "errors: 1": the counterexample, same -D options
 *
 * Must hold:
 *   -DN=2 -DSTUCK -DCUT=1                      -DN=2 -DCRASH=1 -DSUSP=1
 *   -DN=3 -DL=2 -DSUSP=1                       -DN=3 -DL=1 -DCRASH=1
 *   -DN=2 -DSUSP=1 -DCUT=1                     -DN=2 -DSTUCK -DCRASH=1
 *   -DN=2 -DMUTE -DCUT=1 -DCUTB=1              -DN=2 -DCUT=1 -DCUTB=1
 *   -DN=3 -DL=2 -DSTUCK -DCUT=1                -DN=3 -DL=1 -DMUTE -DCUT=1 -DCUTB=1
 * Must be caught:
 *   -DN=2 -DCUT=1 -DFREEZE_ALL                 a freeze reaches all worlds of the master
 *   -DN=2 -DSUSP=1 -DEXCLUDE_ALL               who is excluded from one world is excluded from all
 *   -DN=2 -DSUSP=1 -DLINK_SHARED               worlds share the link of a pair, and it goes with one of them
 *   -DN=2 -DSTUCK -DVOTE_ALL                   a vote is complete when the members of all worlds have asked
 *   -DN=2 -DVOTE_SHARED                        who has asked in one world counts as having asked in the other
 *   -DN=2 -DNUMBER_SHARED                      requests are numbered by process
 *   -DN=2 -DCONFLICT_ALL                       votes of different kinds in two worlds conflict
 *   -DN=2 -DMUTE -DCUT=1 -DCUTB=1 -DONE_FREEZE the master ends one view at a time
 *   -DN=2 -DMUTE -DCUT=1 -DSESSION_SHARED      a process that is frozen in one world holds nothing in the other
 *   -DN=2 -DSTUCK -DCALL_BARRED                a call waits while the process votes in another world
 *   -DN=2 -DSUSP=1 -DSNAP_SHARED               the sizes that a program reads are those of the process
 */
#ifndef N
#define N 2
#endif
#ifndef L
#define L 3
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef SUSP
#define SUSP 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef CUTB
#define CUTB 0
#endif
#define K ((L+1)/2)             /* operations per view */
#define F (CRASH+SUSP+CUT+CUTB)
#define V (2+2*F)               /* views of a world are 1..V-1 */
#define KC (L+2*F)              /* calls per thread */
#define B(p) (1<<(p))
#define ALL (B(N)-1)
#define HAS(m,p) (((m)&B(p))!=0)
#define A 0
#define IDLE 0
#define RUN 1
#define HELD 2
#define SUCC 1
#define ABRT 2
mtype = { FREEZE, VIEW, FENCE, ANSWER, ERROR };

/* threads, by T = world*N+process: step; calls returned; view, operation, its state; waits in a vote, requests answered; owed aborts; sizes */
byte dead, out[2], frz[2];
byte pc[2*N], cl[2*N], pv[2*N] = 1, sq[2*N], st[2*N], vn[2*N], debt[2*N], snap[2*N] = ALL;
bit vw[2*N];
byte launched[2*V*K], held[2*V*K], dec[2*V*K], memb[2*V];
/* master, by world: freezing; survivors, reports, voters; view, votes answered */
bit ph[2];
byte surv[2] = ALL, acks[2], voted[2], mv[2] = 1, rnd[2];
byte oc[2*KC];                  /* outcome by call */
byte ncrash, nsusp, ncut, ncutb; bit calm;
chan c[2*N] = [6] of { mtype, byte };           /* control connection of each world */
hidden byte i, s, f1, f2, f3, ar; hidden mtype ty;

#define T(w,p) ((w)*N+(p))
#define O(w,v,n) ((w)*V*K+(v)*K+(n))
#define OP(w,p) O(w,pv[T(w,p)],sq[T(w,p)])
#define MEMB(w,v) memb[(w)*V+(v)]
#define UP(w,p) (!HAS(dead,p) && !HAS(out[w],p))
#define SEND(w,p,t,a) if :: UP(w,p) -> assert(len(c[T(w,p)])<6); c[T(w,p)]!t,a :: else fi
#ifdef SESSION_SHARED
#define FROZEN(w,p) (HAS(frz[0],p) || HAS(frz[1],p))
#else
#define FROZEN(w,p) HAS(frz[w],p)
#endif
#ifdef NUMBER_SHARED
#define VN(w,p) (vn[p]+vn[N+(p)])
#else
#define VN(w,p) vn[T(w,p)]
#endif
#ifdef CALL_BARRED
#define BARRED(w,p) vw[T(1-(w),p)]
#else
#define BARRED(w,p) 0
#endif
#if defined(STUCK)
#define VOTES(w,p) ((w)==1 || (p)!=0)
#else
#define VOTES(w,p) 1
#endif
#ifdef MUTE
#define REPORTS(w,p) ((w)==1 || (p)!=0)
#else
#define REPORTS(w,p) 1
#endif
#define QUIET (CRASH==0 && ncutb==0)            /* nothing has happened in B */

inline drain(n) { do :: nempty(c[n]) -> c[n]?ty,ar :: empty(c[n]) -> break od; ty=0; ar=0 }
inline give(w,p,o) {
  assert(cl[T(w,p)]<KC); assert(oc[(w)*KC+cl[T(w,p)]]==0 || oc[(w)*KC+cl[T(w,p)]]==o); oc[(w)*KC+cl[T(w,p)]]=o;
  assert(w==0 || !QUIET || (o==SUCC && snap[T(w,p)]==ALL));
  cl[T(w,p)]++; if :: o==SUCC -> pc[T(w,p)]++ :: else fi }
inline sizes(w,p,m) { snap[T(w,p)]=m;
#ifdef SNAP_SHARED
  snap[T(1-(w),p)]=m
#else
  skip
#endif
  }
inline install(w,p,v) {
  s=0;
  do :: s<K ->
     if :: s<sq[T(w,p)] -> assert(dec[O(w,v,s)]!=ABRT)
        :: s==sq[T(w,p)] && st[T(w,p)]!=IDLE -> if :: dec[O(w,v,s)]==ABRT -> sizes(w,p,MEMB(w,v)) :: else fi; give(w,p,dec[O(w,v,s)])
        :: else -> assert(dec[O(w,v,s)]!=SUCC); if :: dec[O(w,v,s)]==ABRT -> debt[T(w,p)]++ :: else fi
     fi; s++
  :: else -> break od; s=0;
  pv[T(w,p)]=v; sq[T(w,p)]=0; st[T(w,p)]=IDLE; frz[w] = frz[w] & ~B(p) }
inline freeze(w) {
  assert(w==0 || !QUIET); ph[w]=1; acks[w]=0; i=0;
  do :: i<N -> if :: HAS(surv[w],i) -> SEND(w,i,FREEZE,surv[w]) :: else fi; i++ :: else -> break od; i=0 }
inline exclude(w,x) {
  surv[w] = surv[w] & ~B(x); voted[w] = voted[w] & ~B(x); SEND(w,x,FENCE,0);
  if :: surv[w]!=0 -> freeze(w) :: else -> ph[w]=0; acks[w]=0 fi }

#define STEPS(w) \
 :: atomic { UP(w,p) && !FROZEN(w,p) && pc[T(w,p)]<L && (pc[T(w,p)]&1)==0 && st[T(w,p)]==IDLE && !BARRED(w,p) ->       /* calls a collective */ \
      if :: debt[T(w,p)]>0 -> debt[T(w,p)]--; give(w,p,ABRT) \
         :: else -> st[T(w,p)]=RUN; launched[OP(w,p)] = launched[OP(w,p)] | B(p) fi } \
 :: atomic { UP(w,p) && !FROZEN(w,p) && st[T(w,p)]==RUN && (launched[OP(w,p)] & MEMB(w,pv[T(w,p)]))==MEMB(w,pv[T(w,p)]) -> \
      st[T(w,p)]=HELD; held[OP(w,p)] = held[OP(w,p)] | B(p) } \
 :: atomic { UP(w,p) && !FROZEN(w,p) && st[T(w,p)]==HELD && (held[OP(w,p)] & MEMB(w,pv[T(w,p)]))==MEMB(w,pv[T(w,p)]) -> \
      st[T(w,p)]=IDLE; sq[T(w,p)]++; give(w,p,SUCC) } \
 :: atomic { UP(w,p) && pc[T(w,p)]<L && (pc[T(w,p)]&1)==1 && !vw[T(w,p)] && VOTES(w,p) && !BARRED(w,p) ->              /* votes */ \
      vw[T(w,p)]=1; if :: VN(w,p)==rnd[w] && HAS(surv[w],p) -> voted[w] = voted[w]|B(p) :: else fi } \
 :: atomic { UP(w,p) && nempty(c[T(w,p)]) -> c[T(w,p)]?ty,ar;                                                          /* the master speaks */ \
      if :: ty==FREEZE -> frz[w] = frz[w]|B(p); if :: ph[w]==1 && ar==surv[w] && REPORTS(w,p) -> acks[w] = acks[w]|B(p) :: else fi \
         :: ty==VIEW -> install(w,p,ar) \
         :: ty==ANSWER -> assert(vw[T(w,p)]); vw[T(w,p)]=0; vn[T(w,p)]++; debt[T(w,p)]=0; sizes(w,p,ar); give(w,p,SUCC) \
         :: ty==ERROR -> vw[T(w,p)]=0; vn[T(w,p)]++; give(w,p,ABRT) \
         :: ty==FENCE -> out[w] = out[w]|B(p); st[T(w,p)]=IDLE; vw[T(w,p)]=0; drain(T(w,p)) \
      fi; ty=0; ar=0 }

proctype Process(byte p) {
end: do
 STEPS(0)
 STEPS(1)
#if CRASH>0
 :: atomic { !HAS(dead,p) && !calm && ncrash<CRASH -> ncrash++; dead = dead|B(p); drain(p); drain(N+p) }
#endif
 od }

/* all reports are in: f1 launched by some, f2 held by all, f3 finished by some */
inline decide(w) {
  assert(mv[w]+1<V); s=0;
  do :: s<K -> f1=0; f2=1; f3=0; i=0;
       do :: i<N -> if :: HAS(surv[w],i) ->
               if :: s<sq[T(w,i)] -> f1=1; f3=1 :: s==sq[T(w,i)] && st[T(w,i)]!=IDLE -> f1=1 :: else fi;
               if :: s<sq[T(w,i)] || (s==sq[T(w,i)] && st[T(w,i)]==HELD) -> skip :: else -> f2=0 fi
             :: else fi; i++
          :: else -> break od; i=0;
       if :: f1 && (f2 || f3) -> dec[O(w,mv[w]+1,s)]=SUCC :: f1 && !(f2 || f3) -> dec[O(w,mv[w]+1,s)]=ABRT :: else fi; s++
     :: else -> break od; s=0; f1=0; f2=0; f3=0;
  mv[w]++; MEMB(w,mv[w])=surv[w]; ph[w]=0; acks[w]=0;
  do :: i<N -> if :: HAS(surv[w],i) -> SEND(w,i,VIEW,mv[w]) :: else fi; i++ :: else -> break od; i=0 }
inline answer(w,t) {
  rnd[w]++; voted[w]=0; i=0;
  do :: i<N -> if :: HAS(surv[w],i) -> SEND(w,i,t,surv[w]) :: else fi; i++ :: else -> break od; i=0 }
#ifdef VOTE_ALL
#define COMPLETE(w) (voted[0]==surv[0] && voted[1]==surv[1])
#elif defined(VOTE_SHARED)
#define COMPLETE(w) (((voted[0]|voted[1]) & surv[w])==surv[w] && voted[w]!=0)
#else
#define COMPLETE(w) (voted[w]==surv[w])
#endif
#ifdef ONE_FREEZE
#define TURN(w) (!ph[1-(w)] || (w)==0)
#else
#define TURN(w) 1
#endif
#define WORLD(w) \
 :: atomic { ph[w] && surv[w]!=0 && (acks[w]&surv[w])==surv[w] && TURN(w) -> decide(w) } \
 :: atomic { !ph[w] && surv[w]!=0 && COMPLETE(w) -> answer(w,ANSWER) }
#define DEATH(w,x) :: atomic { HAS(surv[w],x) && HAS(dead,x) -> exclude(w,x) }
#ifdef EXCLUDE_ALL
#define ALSO(x) exclude(1,x)
#elif defined(LINK_SHARED)
#define ALSO(x) freeze(1)
#else
#define ALSO(x) skip
#endif
#define SUSPECT(x) :: atomic { !calm && nsusp<SUSP && HAS(surv[0],x) && UP(0,x) && surv[0]!=B(x) -> nsusp++; exclude(0,x); ALSO(x) }
active proctype Master() {
 atomic { MEMB(0,1)=ALL; MEMB(1,1)=ALL; i=0; do :: i<N -> run Process(i); i++ :: else -> break od; i=0 };
end: do
 WORLD(0)
 WORLD(1)
#if CRASH>0
 DEATH(0,0) DEATH(0,1) DEATH(1,0) DEATH(1,1)
#if N>2
 DEATH(0,2) DEATH(1,2)
#endif
#endif
#if SUSP>0
 SUSPECT(0) SUSPECT(1)
#if N>2
 SUSPECT(2)
#endif
#endif
#if CUT>0
 :: atomic { !calm && ncut<CUT && !ph[0] && surv[0]!=0 -> ncut++; freeze(0);
#ifdef FREEZE_ALL
      freeze(1)
#endif
    }
#endif
#if CUTB>0
 :: atomic { !calm && ncutb<CUTB && !ph[1] && surv[1]!=0 -> ncutb++; freeze(1) }
#endif
#ifdef CONFLICT_ALL
 :: atomic { !ph[0] && !ph[1] && voted[0]!=0 && voted[1]!=0 -> answer(0,ERROR); answer(1,ERROR) }
#endif
 od }

active proctype Faults() {
end: do
 :: atomic { !calm -> calm=1; break }
 od }

#define DONE(w,p) (!UP(w,p) || pc[T(w,p)]==L)
#if defined(STUCK) || defined(MUTE)
#define OVER(p) DONE(1,p)
#else
#define OVER(p) (DONE(0,p) && DONE(1,p))
#endif
active proctype Watch() {
end: timeout -> assert(OVER(0) && OVER(1)
#if N>2
   && OVER(2)
#endif
   ) }
