/* formation.pml - how sized worlds begin: claims to ranks under a name at one master, and who hears what of it.
 *
 * N programs each make up to C calls, one after the other, that create a world of N ranks; rank r is program r.  After an error
 * each calls again; after a success it is done (default), or creates the next world under the same name at once (REUSE).
 * A name has incarnations: at most one is forming; it ends formed (its first view is journalled) or given up (a tombstone).
 *   Connection: a call dials, sends REGISTER(attempt), answers WELCOME with CLAIM on the same connection, and from then on the claim
 * counts.  RES times a connection breaks: what the program sent can still be read by the master, even after what it says on the
 * next one; what the master sent is lost.  The program dials again with the same attempt.
 *   Answers of the master: VIEW (formed), GIVEN_UP(cause), REFUSED (to this claim alone), GONE (no member any more: the outcome at the
 * others is unknown).  DL: calls carry a deadline, which may pass at any time.  DECL programs send DECLINE.
 *   Master: MCRASH times it crashes and restarts with its journal, or with nothing (NOJOURNAL).  What was counted in an earlier epoch
 * and is not on record has ended with it, for all of that name (default), or goes on as a new claim (GOES_ON).
 *   SPLIT: derived formation, one name per call, over two colours: programs 0 and 1, and the last one (without a colour: NOCOLOR);
 * EXPECT names the members of the parent in which the call began; the parent loses crashed programs, and SUSP living ones.
 *   ONCE: a name that was formed is never formed again.  DIFFER: in its first call the last program names another size, or with
 * SPLIT another list.  RIVAL: one more program claims rank 1, too.
 * Checked: (1) call c of all programs, crashed ones counted, has one outcome: the same incarnation, or the same cause (NOJOURNAL: all
 * calls that one incarnation has counted); REFUSED and GONE are neither; (2) an incarnation is the success of one call only, and
 * a ONCE name of one incarnation; no claim of the living counts again after its incarnation has told somebody; (3) no first view names a program whose connection was seen to close, and no living program on
 * its connection is taken for lost; (4) once nothing more can happen, every call has returned, but for those that wait, without a
 * deadline, for a crashed program under a name of their own, or as a rival for the next world.
 *
 * How to run (spin, gcc; each good line takes under 3 min):
 *     spin -DN=2 -DRES=1 -DDL -a formation.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DN=2 -DRES=1 -DDL -t -p -g formation.pml     # after "errors: 1": the counterexample, same -D options
 *
 * Must hold:
 *   -DN=2 -DRES=1 -DDL -DC=3                       -DN=3 -DRES=1 -DCRASH=1
 *   -DN=3 -DRES=1 -DDL -DDECL=1                    -DN=3 -DRES=1 -DREUSE
 *   -DN=2 -DRES=1 -DMCRASH=1 -DDL                  -DN=3 -DMCRASH=1 -DDL
 *   -DN=2 -DRES=1 -DMCRASH=1 -DDL -DGOES_ON        -DN=2 -DRES=1 -DMCRASH=1 -DNOJOURNAL
 *   -DN=2 -DMCRASH=2 -DDL -DC=3                    -DN=2 -DRES=1 -DONCE -DREUSE -DMCRASH=1
 *   -DN=3 -DRES=1 -DDIFFER                         -DN=2 -DRIVAL
 *   -DN=3 -DRIVAL                                  -DN=3 -DSPLIT -DCRASH=1 -DDL
 *   -DN=3 -DSPLIT -DMCRASH=1 -DCRASH=1             -DN=3 -DSPLIT -DDIFFER
 *   -DN=3 -DSPLIT -DREUSE -DCRASH=1                -DN=3 -DRES=1 -DCRASH=1 -DDL
 *   -DN=3 -DSPLIT -DRES=1 -DCRASH=1 -DSUSP=1       -DN=3 -DSPLIT -DRES=1 -DMCRASH=1 -DSUSP=1
 *   -DN=3 -DSPLIT -DRES=1 -DDECL=1 -DDL
 *   -DN=2 -DMCRASH=1 -DCRASH=1 -DDL -DNOJOURNAL
 *   -DN=2 -DRES=2 -DCRASH=1 -DMCRASH=1 -DDL -DREUSE
 *   -DN=2 -DRES=1 -DCRASH=1 -DMCRASH=2 -DDL -DGOES_ON
 *   -DN=2 -DRES=1 -DCRASH=1 -DMCRASH=1 -DNOJOURNAL -DONCE -DREUSE
 *   -DN=2 -DRES=1 -DCRASH=1 -DMCRASH=1 -DDL -DCLOSE_IGNORED -DLOSS_LATER
 * Must be caught:
 *   -DN=2 -DREUSE -DREUSE_FORMED               a formed incarnation takes its members' next CREATE (W2)
 *   -DN=2 -DRES=1 -DDL -DCLAIM_AT_ONCE         a claim counts with its REGISTER, whoever is left at the other end (W3)
 *   -DN=2 -DRES=1 -DDL -DC=3 -DTOLD_AT_ONCE    a tombstone answers a REGISTER (W3)
 *   -DN=2 -DRES=1 -DDL -DSTALE_CLAIM           an earlier connection of an attempt is still read (W3)
 *   -DN=2 -DRES=1 -DCLOSE_REPLACED             the end of a connection that was replaced counts (W3)
 *   -DN=2 -DRIVAL -DRIVAL_TAKES                any claim replaces another to the same rank (W3)
 *   -DN=2 -DRES=1 -DKNOWN_LATER                a known attempt is taken for a new one (W4)
 *   -DN=2 -DRES=1 -DONCE -DKNOWN_LATER         its name is said to be used (W4)
 *   -DN=2 -DDL -DDEADLINE_OWN                  a member gives up by itself at its deadline (W5)
 *   -DN=2 -DDECL=1 -DDECLINE_OWN               a member gives up by itself when it declines (W5)
 *   -DN=3 -DDL -DDEADLINE_EACH                 the master tells the deadline to its own caller only (W5)
 *   -DN=2 -DRES=1 -DCLOSE_FORMED               a close gives up what is published (W6)
 *   -DN=2 -DCRASH=1 -DCLOSE_IGNORED            a close before the first view counts for nothing (W6)
 *   -DN=2 -DDL -DNOTOMB                        a tombstone goes when all who have registered are told (W7)
 *   -DN=2 -DMCRASH=1 -DVIEW_EARLY              VIEW leaves before it is on record (W8)
 *   -DN=2 -DMCRASH=1 -DDL -DGIVEN_UP_EARLY     GIVEN_UP leaves before it is on record (W8)
 *   -DN=2 -DMCRASH=1 -DDL -DC=3 -DTOLD_LOST    whom a tombstone has told is not on record (W8)
 *   -DN=3 -DMCRASH=1 -DEPOCH_ALONE             what ended with the epoch is told to those who come back only (W8)
 *   -DN=2 -DMCRASH=1 -DNOJOURNAL -DUNKNOWN_GIVEN_UP    a master without journal says GIVEN_UP of what it does not know (W8)
 *   -DN=2 -DRES=1 -DMCRASH=1 -DNOJOURNAL -DEPOCH_LAST    a claim names the last epoch that it was counted in (W8)
 *   -DN=2 -DMCRASH=1 -DNOJOURNAL -DGOES_ON     or takes it for a new claim (W8)
 *   -DN=3 -DDIFFER -DSIZE_ALONE                another size is an error of its caller only (W9)
 *   -DN=3 -DSPLIT -DDIFFER -DLIST_FIRST        the first list counts (W9)
 *   -DN=3 -DSPLIT -DCRASH=1 -DSPLIT_APART      each colour begins by itself (W10)
 *   -DN=3 -DSPLIT -DCRASH=1 -DNOCOLOR_EARLY    who has no colour returns at once (W10)
 *   -DN=3 -DSPLIT -DMCRASH=1 -DTORN            each colour is on record by itself (W10)
 *   -DN=3 -DSPLIT -DCRASH=1 -DPARENT_LATE      the list is not compared with the parent when it comes (W11)
 *   -DN=3 -DSPLIT -DCRASH=1 -DPARENT_NOT       the parent's loss of an expected member counts for nothing (W11)
 *   -DN=3 -DSPLIT -DSUSP=1 -DNONMEMBER         who is no member of the parent any more may claim (W11)
 *   -DN=2 -DONCE -DREUSE -DONCE_FIRST          a used name is refused to rank 0 only (W12)
 *   -DN=2 -DONCE -DREUSE -DMCRASH=1 -DONCE_LOST    a used name is not on record (W12)
 */
#ifndef N
#define N 2
#endif
#ifndef C
#define C 2
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef RES
#define RES 0
#endif
#ifndef DECL
#define DECL 0
#endif
#ifndef MCRASH
#define MCRASH 0
#endif
#ifndef SUSP
#define SUSP 0
#endif
#ifdef RIVAL
#define P (N+1)
#else
#define P N
#endif
#define I (C+2+2*MCRASH)        /* incarnations are 1..I-1, never reused */
#define B(p) (1<<(p))
#define HAS(m,p) (((m)&B(p))!=0)
#define ALL (B(N)-1)
#define SEAT(p) ((p)<N -> (p) : 1)
#define ATT(p,n) ((p)*C+(n)+1)  /* the attempt number of call n of program p */
#define PROG(a) (((a)-1)/C)
#define CALL(a) (((a)-1)%C)

/* outcome of a call, cause of a formation given up */
#define SUCC 1
#define LOST 2
#define DEADLINE 3
#define DECLINED 4
#define DIFFERENT 5
#define EPOCH 6
#define USED 7                  /* a ONCE name */
#define REFUSED 8               /* the rank is another's */
#define GONE 9                  /* error class "rejoin" */
/* incarnation */
#define EMPTY 0
#define FORMING 1
#define FORMED 2
#define GIVEN 3
/* call of a program */
#define IDLE 0
#define DIALLED 1
#define CLAIMED 2
mtype = { REGISTER, CLAIM, DECLINE, CLOSE, WELCOME, VIEW, GIVEN_UP, ANSWER, DOWN };

/* programs: crashed; done; has not noticed yet that the master crashed; calls returned; state of the call; connection in use; first epoch whose WELCOME it has answered */
byte dead, fin, cut, cl[P], s[P], k[P], we[P];
/* master: journalled (all but what is forming) */
byte st[I], ca[I], sa[I*N];     /* state, cause, attempt that holds each rank */
byte ls[I], nm[I];              /* expected ranks; name */
byte par = ALL;                 /* members of the parent */
byte ever;                      /* a ONCE name was formed */
/* master: in memory */
byte epoch = 1, form, pub, sc[N], ps[N], kinds, wl; /* forming; formed, not published; connection of each claim, of both; sizes or lists named; connections welcomed */
byte ninc;
/* checks: outcome by call, by incarnation; call of a formed incarnation; incarnation that counted a program; lists by call */
byte outc[C], outi[I], ci[I], gi[P], el[C], shut;
byte ncrash, nres, ndecl, nmcr, nsusp; bit calm;
chan u[P*2] = [5] of { mtype, byte, byte };     /* program to master, in order; two connections */
chan d[P*2] = [5] of { mtype, byte };           /* master to program */
hidden byte i, j, x, y, z, ar, er, dr, de, w; hidden mtype ty, dy;

#define UP(p) (!HAS(dead,p))
#ifdef EPOCH_LAST
#define FIRSTEPOCH ar
#else
#define FIRSTEPOCH (we[p]==0 -> ar : we[p])
#endif
#ifdef SPLIT
#define NAME(a) CALL(a)
#define INPAR(p) HAS(par,p)
#define PAST(q,n) (!HAS(par,q) || cl[q]>=n)
#if N==2
#define GATHERED(n) (PAST(0,n) && PAST(1,n))
#else
#define GATHERED(n) (PAST(0,n) && PAST(1,n) && PAST(2,n))
#endif
#define MAYCALL(p) ((el[cl[p]]!=0 && HAS(el[cl[p]],p)) || (el[cl[p]]==0 && INPAR(p) && GATHERED(cl[p])))
#define STUCK(p) (!INPAR(p) || (el[cl[p]]!=0 && !HAS(el[cl[p]],p)))
#else
#define NAME(a) 0
#define INPAR(p) 1
#define MAYCALL(p) 1
#define STUCK(p) 0
#endif
#if defined(DIFFER) && defined(SPLIT)
#define LIST(a) ((PROG(a)==N-1 && CALL(a)==0) -> (ALL & ~B(N-2)) : el[CALL(a)])
#elif defined(SPLIT)
#define LIST(a) el[CALL(a)]
#else
#define LIST(a) ALL
#endif
#ifdef DIFFER
#define KIND(a) ((PROG(a)==N-1 && CALL(a)==0) -> 2 : 1)
#else
#define KIND(a) 1
#endif
#define AT(n,p) sa[(n)*N+SEAT(p)]
#define SEND(p,c,t,a) if :: UP(p) && s[p]!=IDLE && k[p]==c -> assert(len(d[(p)*2+c])<5); d[(p)*2+c]!t,a :: else fi
#define SAY(p,t,a,e) if :: !HAS(cut,p) -> assert(len(u[(p)*2+k[p]])<5); u[(p)*2+k[p]]!t,a,e :: else fi
inline draind(n) { do :: nempty(d[n]) -> d[n]?dy,dr :: empty(d[n]) -> break od; dr=0; dy=0 }
inline drainu(n) { do :: nempty(u[n]) -> u[n]?dy,dr,de :: empty(u[n]) -> break od; dr=0; de=0; dy=0 }
/* what is counted or answered on a connection closes the earlier one of the same attempt unread, once that had its WELCOME */
#ifdef STALE_CLAIM
#define OLDER(p,c) 0
#else
#define OLDER(p,c) (k[p]==c && HAS(wl,(p)*2+1-c))
#endif
inline closeold(p,c) { if :: OLDER(p,c) -> wl = wl & ~B(p*2+1-c); drainu(p*2+1-c);
     if :: pub!=0 && AT(pub,p)!=0 && PROG(AT(pub,p))==p && ps[SEAT(p)]==1-c -> ps[SEAT(p)]=2 :: else fi :: else fi }
inline erase(n) { st[n]=EMPTY; ca[n]=0; ls[n]=0; nm[n]=0; w=0; do :: w<N -> sa[(n)*N+w]=0; w++ :: else -> break od; w=0 }

/* a tombstone, and the attempts of a first view, go when every expected program has been told or is gone */
#ifdef NOTOMB
#define SETTLED(n,q) (!HAS(ls[n],q) || HAS(dead,q) || sa[(n)*N+(q)]==0 || CALL(sa[(n)*N+(q)])<cl[PROG(sa[(n)*N+(q)])])
#else
#define SETTLED(n,q) (!HAS(ls[n],q) || HAS(dead,q) || (sa[(n)*N+(q)]==0 -> !INPAR(q) : CALL(sa[(n)*N+(q)])<cl[PROG(sa[(n)*N+(q)])]))
#endif
#if N==2
#define ALLSETTLED(n) (SETTLED(n,0) && SETTLED(n,1))
#define COMPLETE(n) ((!HAS(ls[n],0) || sa[(n)*N]!=0) && (!HAS(ls[n],1) || sa[(n)*N+1]!=0))
#else
#define ALLSETTLED(n) (SETTLED(n,0) && SETTLED(n,1) && SETTLED(n,2))
#define COMPLETE(n) ((!HAS(ls[n],0) || sa[(n)*N]!=0) && (!HAS(ls[n],1) || sa[(n)*N+1]!=0) && (!HAS(ls[n],2) || sa[(n)*N+2]!=0))
#endif
inline forget() {
  i=1; do :: i<I -> if :: (st[i]==GIVEN || (st[i]==FORMED && pub!=i)) && ALLSETTLED(i) -> erase(i) :: else fi; i++ :: else -> break od; i=0 }

/* a call returns: the one place where outcomes are compared */
inline give(p,n,o) {
  if :: o<=USED ->
#ifndef NOJOURNAL
       y = (o==SUCC -> 16+n : o); assert(outc[cl[p]]==0 || outc[cl[p]]==y); outc[cl[p]]=y; y=0;
#endif
       if :: n!=0 -> assert(outi[n]==0 || outi[n]==o); outi[n]=o :: else fi;
#ifndef NOJOURNAL
       if :: o==SUCC -> assert(ci[n]==0 || ci[n]==cl[p]+1); ci[n]=cl[p]+1 :: else fi
#else
       skip
#endif
     :: else fi;
  if :: o!=SUCC -> SAY(p,CLOSE,0,0) :: else fi;
  draind(p*2+k[p]); cut = cut & ~B(p); s[p]=IDLE; we[p]=0; gi[p]=0; cl[p]++;
  if :: o==REFUSED || o==USED -> fin = fin|B(p)
#ifndef REUSE
     :: o==SUCC -> fin = fin|B(p)
#endif
#ifdef SPLIT
     :: o==GONE -> fin = fin|B(p)
#endif
     :: else fi;
  forget() }

proctype Program(byte p) {
end: do
 :: atomic { UP(p) && !HAS(fin,p) && s[p]==IDLE && cl[p]<C && MAYCALL(p) && empty(u[p*2+1-k[p]]) ->       /* the program calls */
#ifdef SPLIT
      if :: el[cl[p]]==0 -> el[cl[p]]=par :: else fi;
#endif
      k[p]=1-k[p]; s[p]=DIALLED; SAY(p,REGISTER,ATT(p,cl[p]),0) }
 :: atomic { UP(p) && s[p]!=IDLE && nempty(d[p*2+k[p]]) -> d[p*2+k[p]]?ty,ar;
      if :: ty==WELCOME && s[p]==DIALLED -> s[p]=CLAIMED; SAY(p,CLAIM,ATT(p,cl[p]),we[p]); we[p]=FIRSTEPOCH
         :: ty==VIEW -> give(p,ar,SUCC)
         :: ty==GIVEN_UP -> give(p,ar/16,ar%16)
         :: ty==ANSWER -> give(p,0,ar)
         :: ty==DOWN -> cut = cut & ~B(p); s[p]=DIALLED; SAY(p,REGISTER,ATT(p,cl[p]),0)
         :: else fi; ty=0; ar=0 }
#if RES>0
 :: atomic { UP(p) && s[p]!=IDLE && !calm && nres<RES && empty(u[p*2+1-k[p]]) -> nres++;
      SAY(p,CLOSE,0,0); cut = cut & ~B(p); draind(p*2+k[p]); k[p]=1-k[p]; s[p]=DIALLED; SAY(p,REGISTER,ATT(p,cl[p]),0) }
#endif
#if DECL>0
 :: atomic { UP(p) && s[p]==CLAIMED && !calm && ndecl<DECL -> ndecl++; SAY(p,DECLINE,ATT(p,cl[p]),0);
#ifdef DECLINE_OWN
      give(p,gi[p],DECLINED)
#endif
    }
#endif
#ifdef DEADLINE_OWN
 :: atomic { UP(p) && s[p]==CLAIMED -> give(p,gi[p],DEADLINE) }
#endif
#if CRASH>0
 :: atomic { UP(p) && !calm && ncrash<CRASH -> ncrash++; SAY(p,CLOSE,0,0); cut = cut & ~B(p); draind(p*2+k[p]); dead = dead|B(p); s[p]=IDLE; we[p]=0; gi[p]=0; forget() }
#endif
 od }

/* the master's word, to all whose claims count; on record before it leaves */
inline giveup(n,o) {
  st[n]=GIVEN; ca[n]=o; kinds=0; shut=0;
  if :: form==n -> form=0 :: else fi; x=0;
  do :: x<N -> if :: sa[n*N+x]!=0 -> SEND(PROG(sa[n*N+x]),sc[x],GIVEN_UP,n*16+o) :: else fi; sc[x]=0; x++ :: else -> break od; x=0;
  forget() }
inline start(a) { ninc++; assert(ninc<I); form=ninc; st[form]=FORMING; nm[form]=NAME(a); ls[form]=LIST(a) }

/* what is settled already; y: it was */
inline settled(p,c,a,e) {
  y=1; j=1; do :: j<I && AT(j,p)!=a -> j++ :: else -> break od;
#ifdef KNOWN_LATER
  if :: j<I && st[j]==FORMED -> j=I :: else fi;
#endif
  if :: j<I && st[j]==FORMED -> SEND(p,c,VIEW,j)
     :: j<I && st[j]==GIVEN -> SEND(p,c,GIVEN_UP,j*16+ca[j])
     :: j<I && st[j]==FORMING -> y=0
     :: j>=I ->
       j=1; do :: j<I && !(st[j]==GIVEN && nm[j]==NAME(a) && HAS(ls[j],SEAT(p)) && AT(j,p)==0) -> j++ :: else -> break od;
       if :: j<I -> AT(j,p)=a; SEND(p,c,GIVEN_UP,j*16+ca[j])
          :: j>=I && !INPAR(p) ->
#ifdef NONMEMBER
            y=0
#else
            SEND(p,c,ANSWER,GONE)
#endif
#ifdef ONCE
#ifdef ONCE_FIRST
          :: j>=I && INPAR(p) && ever!=0 && SEAT(p)==0 -> SEND(p,c,ANSWER,USED)
          :: j>=I && INPAR(p) && ever!=0 && SEAT(p)!=0 -> y=0
#else
          :: j>=I && INPAR(p) && ever!=0 -> SEND(p,c,ANSWER,USED)
#endif
#endif
          :: j>=I && INPAR(p) && ever==0 && form!=0 && AT(form,p)!=0 ->
#ifdef RIVAL_TAKES
            y=0
#else
            SEND(p,c,ANSWER,REFUSED)
#endif
          :: j>=I && INPAR(p) && ever==0 && !(form!=0 && AT(form,p)!=0) && e!=0 && e!=epoch ->
#if defined(GOES_ON)
            y=0
#elif defined(NOJOURNAL) && !defined(UNKNOWN_GIVEN_UP)
            SEND(p,c,ANSWER,GONE)
#elif defined(NOJOURNAL)
            SEND(p,c,GIVEN_UP,gi[p]*16+EPOCH)
#elif defined(EPOCH_ALONE)
            SEND(p,c,GIVEN_UP,EPOCH)
#else
            if :: form==0 -> start(a) :: else fi;
            AT(form,p)=a; sc[SEAT(p)]=c; w=form; giveup(w,EPOCH); w=0
#endif
#ifdef REUSE_FORMED
          :: j>=I && (st[1]==FORMED || ci[1]!=0) && form==0 -> SEND(p,c,VIEW,1)
#endif
          :: else -> y=0
       fi
  fi; j=0 }

inline claim(p,c,a) {
#ifdef SPLIT
  if :: form!=0 && nm[form]<NAME(a) -> erase(form); form=0; kinds=0 :: else fi;                /* claims of the dead: names are apart */
  if :: form!=0 && nm[form]>NAME(a) -> assert(!UP(p)) :: else
#endif
  if :: form==0 -> start(a) :: else fi;
  AT(form,p)=a; sc[SEAT(p)]=c; shut = shut & ~B(SEAT(p));
  assert(!UP(p) || gi[p]==0 || gi[p]==form || outi[gi[p]]==0); gi[p]=form; kinds = kinds | KIND(a); z=form;
#ifdef LIST_FIRST
  kinds=0;
#else
  ls[form] = ls[form] | LIST(a);
#endif
#ifdef SIZE_ALONE
  if :: kinds==3 -> kinds = kinds & ~KIND(a); AT(form,p)=0; SEND(p,c,GIVEN_UP,DIFFERENT) :: else fi
#else
  if :: kinds==3 -> giveup(z,DIFFERENT)
#if defined(SPLIT) && !defined(PARENT_LATE)
     :: kinds!=3 && !COMPLETE(form) && ((ls[form] & ~par & ~(sa[form*N]!=0 -> 1 : 0) & ~(sa[form*N+1]!=0 -> 2 : 0)
#if N>2
          & ~(sa[form*N+2]!=0 -> 4 : 0)
#endif
          )!=0) -> giveup(z,LOST)
#endif
     :: else fi
#endif
#ifdef NOCOLOR_EARLY
  ; if :: p==N-1 -> SEND(p,c,VIEW,z) :: else fi
#endif
#ifdef SPLIT_APART
  ; if :: form!=0 && p<2 && sa[form*N]!=0 && sa[form*N+1]!=0 -> SEND(0,sc[0],VIEW,form); SEND(1,sc[1],VIEW,form) :: else fi
#endif
  ; z=0
#ifdef SPLIT
  fi
#endif
  }

#ifdef CLOSE_REPLACED
#define OFSEAT(p,c) 1
#else
#define OFSEAT(p,c) (sc[SEAT(p)]==c)
#endif
#define HELD(p) (form!=0 && AT(form,p)!=0 && PROG(AT(form,p))==p)
inline hear(p,c) {
  u[p*2+c]?ty,ar,er;
  if :: ty==REGISTER -> wl = wl|B(p*2+c);                       /* nothing is decided before the WELCOME is answered */
#ifdef CLAIM_AT_ONCE
       settled(p,c,ar,0); if :: y==0 -> SEND(p,c,WELCOME,epoch); claim(p,c,ar) :: else fi
#elif defined(TOLD_AT_ONCE)
       settled(p,c,ar,0); if :: y==0 -> SEND(p,c,WELCOME,epoch) :: else fi
#else
       SEND(p,c,WELCOME,epoch)
#endif
     :: ty==CLAIM ->
#ifndef CLAIM_AT_ONCE
       closeold(p,c); settled(p,c,ar,er); if :: y==0 -> claim(p,c,ar) :: else fi
#endif
     :: ty==DECLINE -> if :: HELD(p) && AT(form,p)==ar && sc[SEAT(p)]==c -> w=form; giveup(w,DECLINED); w=0 :: else fi
     :: ty==CLOSE -> wl = wl & ~B(p*2+c);
       if :: HELD(p) && OFSEAT(p,c) -> assert(!UP(p) || s[p]==IDLE || k[p]!=sc[SEAT(p)]);
#ifdef CLOSE_IGNORED
            shut = shut|B(SEAT(p))
#else
            w=form; giveup(w,LOST); w=0
#endif
          :: pub!=0 && AT(pub,p)!=0 && PROG(AT(pub,p))==p && ps[SEAT(p)]==c -> ps[SEAT(p)]=2     /* its VIEW waits for it to dial again */
#ifdef CLOSE_FORMED
          :: pub==0 && form==0 && AT(1,p)!=0 && PROG(AT(1,p))==p && st[1]==FORMED && ps[SEAT(p)]==c -> giveup(1,LOST)
#endif
          :: else fi
  fi; ty=0; ar=0; er=0; y=0 }
#define HEAR(p) :: atomic { nempty(u[(p)*2]) -> hear(p,0) } :: atomic { nempty(u[(p)*2+1]) -> hear(p,1) }

inline publish(n) { x=0;
  do :: x<N -> if :: sa[n*N+x]!=0 -> SEND(PROG(sa[n*N+x]),ps[x],VIEW,n) :: else fi;
#ifndef CLOSE_FORMED
       ps[x]=0;
#endif
       x++ :: else -> break od; x=0 }
#define PLOSS(q) :: atomic { HAS(par,q) && (HAS(dead,q) || (!calm && nsusp<SUSP && par!=B(q))) -> if :: UP(q) -> nsusp++ :: else fi; par = par & ~B(q); \
     if :: form!=0 && HAS(ls[form],q) && sa[form*N+q]==0 && LEAVES -> w=form; giveup(w,LOST); w=0 :: else forget() fi }
#ifdef LOSS_LATER
#define LATELOSS 1
#else
#define LATELOSS 0
#endif
#ifdef PARENT_NOT
#define LEAVES 0
#else
#define LEAVES 1
#endif
active proctype Master() {
 atomic { i=0; do :: i<P -> run Program(i); i++ :: else -> break od; i=0 };
end: do
 HEAR(0) HEAR(1)
#if N+0>2 || defined(RIVAL)
 HEAR(2)
#endif
#if N+0>2 && defined(RIVAL)
 HEAR(3)
#endif
 :: atomic { form!=0 && COMPLETE(form) && kinds!=2 && pub==0 -> assert(shut==0 || LATELOSS);          /* links are made; journalled */
      st[form]=FORMED; pub=form; form=0; kinds=0; x=0; do :: x<N -> ps[x]=sc[x]; sc[x]=0; x++ :: else -> break od; x=0;
#ifdef ONCE
      assert(ever==0 || ci[0]!=0); ever=1;
#endif
#ifdef VIEW_EARLY
      publish(pub)                                                                         /* and journalled only in the next step */
#endif
    }
 :: atomic { pub!=0 -> w=pub; pub=0;
#ifndef VIEW_EARLY
      publish(w);
#endif
      w=0; forget() }
#ifdef DL
 :: atomic { form!=0 ->
#ifdef DEADLINE_EACH
      x=0; do :: x<N && sa[form*N+x]==0 -> x++ :: else -> break od;
      if :: x<N -> SEND(PROG(sa[form*N+x]),sc[x],GIVEN_UP,form*16+DEADLINE); sa[form*N+x]=0 :: else fi; x=0
#else
      w=form; giveup(w,DEADLINE); w=0
#endif
    }
#endif
#ifdef SPLIT
 PLOSS(0) PLOSS(1)
#if N>2
 PLOSS(2)
#endif
#endif
#if MCRASH>0
 :: atomic { !calm && nmcr<MCRASH -> nmcr++; epoch++; i=0;
      do :: i<P*2 -> drainu(i);
           if :: s[i/2]!=IDLE && k[i/2]==i%2 && UP(i/2) -> if :: draind(i) :: skip fi; assert(len(d[i])<5); d[i]!DOWN,0; cut = cut|B(i/2) :: else fi; i++
         :: else -> break od;
#ifdef VIEW_EARLY
      if :: pub!=0 -> erase(pub) :: else fi;
#endif
#ifdef TORN
      if :: form!=0 && N>2 && sa[form*N]!=0 && sa[form*N+1]!=0 && sa[form*N+2]!=0 -> st[form]=FORMED; sa[form*N+2]=0; form=0 :: else fi;
#endif
      if :: form!=0 -> erase(form) :: else fi;
      form=0; pub=0; kinds=0; shut=0; wl=0; i=0; do :: i<N -> sc[i]=0; ps[i]=0; i++ :: else -> break od;
      i=1; do :: i<I ->
#ifdef NOJOURNAL
           erase(i);
#endif
#ifdef GIVEN_UP_EARLY
           if :: st[i]==GIVEN -> erase(i) :: else fi;
#endif
#ifdef TOLD_LOST
           if :: st[i]==GIVEN -> w=0; do :: w<N -> sa[i*N+w] = (sa[i*N+w]!=0 && CALL(sa[i*N+w])<cl[PROG(sa[i*N+w])] -> 0 : sa[i*N+w]); w++ :: else -> break od; w=0 :: else fi;
#endif
           i++ :: else -> break od; i=0;
#if defined(ONCE) && (defined(ONCE_LOST) || defined(NOJOURNAL))
      ever=0;
#endif
    }
#endif
 od }

active proctype Faults() {
end: do
 :: atomic { !calm -> calm=1; break }
 od }

/* without a deadline a call waits for a program that has crashed */
#ifdef NOJOURNAL
#define WAITS(p) ((dead!=0 || nmcr!=0) && s[p]!=IDLE)
#elif CRASH>0 && !defined(DL) && !defined(SPLIT)
#define WAITS(p) (dead!=0 && s[p]!=IDLE)
#elif defined(RIVAL)
#define WAITS(p) (SEAT(p)==1 && HAS(fin,0) && s[p]!=IDLE && ci[gi[p]]==0)     /* for the next world of that name */
#else
#define WAITS(p) 0
#endif
#define OVER(p) (!UP(p) || HAS(fin,p) || cl[p]==C || (s[p]==IDLE && STUCK(p)) || WAITS(p))
active proctype Watch() {
end: timeout -> assert(OVER(0) && OVER(1)
#if N+0>2 || defined(RIVAL)
   && OVER(2)
#endif
#if N+0>2 && defined(RIVAL)
   && OVER(3)
#endif
   ) }
