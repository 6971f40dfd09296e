/* paths.pml - messages between two of a larger view that have no link: what a relay that keeps nothing passes on, loses, and says (B2 to B9).
 *
 * S makes K calls of send, one after the other, R as many of receive; X is linked with both.  A message is PARTS parts.  Functions meant are
 * those of src/session: path_tell (path.c), path_settle (path_parts.c), path_passes (path_words.c), path_message, path_part, path_got, pair_replay, links_ping, greet_members.
 *   S says READY; R, once it has launched, GOT with what is in place; S then WINDOW parts more at most; R says HOLD in the place of the last GOT.
 * ASK is a REFUSE of S, which only asks; REF is R's; TOLD is FINISHED for either.  X passes on what is of its view to whom it hears, and drops
 * the rest.  Whom somebody hears: who has said PING of his view over the present link.  X says PATH to both when it hears one of them anew and
 * reaches the other; then S says READY and ASK again, and R its word, or GOT with what is in place, from where S goes on.
 *   A link that is made again loses what was on its way.  Views: freeze and report in one step, at each by itself; decision of the reports
 * by B9; what was not launched is owed; the next view is installed at each by itself.  If X is lost another one stands in its place then.
 * Checked: (1) both ends of a message are told the same, if both are members, and the sender of no success that R has not told; (2) what R
 * tells a success of is in place whole, each part once, in order; (3) no more than BOUND parts are on their way from X to R, or from S to X;
 * (4) when nothing more can happen the calls of all who live have returned, and nothing is on record: a vote may wait for that (B15).
 *
 * How to run (spin, gcc; each line takes under a minute):
 *     spin -DCUT=1 -a paths.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DCUT=1 -t -p -g paths.pml     # after "errors: 1": the counterexample, same -D options
 * Budgets: K calls (2), PARTS of a message (3), WINDOW parts said and not in place (2); AGAIN links that are made again within a view, with no
 *   master that could end it, CUT views that end with the same members, GIVE calls that are given up, CRASH processes that die (0).
 * Variant: LAZY: R's program calls nothing before S's first call has returned, which is to be given up.
 * Not modelled: several messages at once, of which one has its turn; a loss of the master (P9).
 *
 * Must hold:
 *   -DAGAIN=1 -DGIVE=1                         -DCUT=1 -DAGAIN=1
 *   -DAGAIN=2 -DPARTS=4 -DGIVE=1               -DK=1 -DCUT=1 -DAGAIN=2
 *   -DCRASH=1 -DGIVE=1                         -DCRASH=1 -DAGAIN=1
 *   -DCRASH=1 -DCUT=1                          -DCRASH=2
 *   -DCUT=2                                    -DLAZY -DAGAIN=1 -DGIVE=1
 *   -DK=1 -DCUT=1 -DAGAIN=1 -DGIVE=1           -DPARTS=1 -DCUT=1 -DGIVE=1
 * Must be caught:
 *   -DK=1 -DPATH_UNTOLD                        X does not say when there is a path again
 *   -DAGAIN=1 -DPATH_S                         it says so to the sender alone
 *   -DK=1 -DPATH_R                             ... to the receiver alone
 *   -DAGAIN=1 -DREADY_ONCE                     the sender does not say READY again then
 *   -DLAZY -DAGAIN=1 -DGIVE=1 -DASK_ONCE       nor that it has given up
 *   -DAGAIN=1 -DHOLD_ONCE                      the receiver does not say its word again
 *   -DAGAIN=1 -DGOT_ONCE                       nor what is in place
 *   -DAGAIN=2 -DWORD_ONCE                      a word that is said again is not answered again; B15
 *   -DAGAIN=1 -DGOT_BEGIN                      GOT is said from the beginning, wherever the receiver has come to
 *   -DAGAIN=1 -DGOES_ON                        the sender goes on from where it was, not from where GOT says
 *   -DAGAIN=1 -DMISPLACED                      parts are taken in any order
 *   -DK=1 -DPARTS_ALL                          as many parts are on their way as there are
 *   -DREADY_AGAIN                              READY that is said again is answered by GOT, too: parts are said twice
 *   -DCUT=1 -DLATE_PART                        a frozen receiver takes parts; P4
 *   -DK=1 -DCRASH=1 -DNOCUTREPORT              no view ends for the loss of one of the three
 */
#ifndef K
#define K 2
#endif
#ifndef PARTS
#define PARTS 3
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef BOUND
#define BOUND (WINDOW*(1+AGAIN))
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef GIVE
#define GIVE 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
/* processes, and their bits */
#define S 0
#define R 1
#define X 2
#define B(p) (1<<(p))
#define HAS(m,p) (((m)&B(p))!=0)
/* outcomes; RUN: none yet */
#define NEW 0
#define RUN 1
#define OK 2
#define LOST 3
#define REFD 4
mtype = { PING, PATH, READY, PART, GOT, ANEW, ASK, HOLD, REF, TOLD };

byte iv[3] = 1;                 /* installed views */
byte th[2], xh[2];              /* the view of X that S, R have heard of, and X of theirs, over the present link */
byte so[K], ro[K];              /* outcomes */
byte sc, rc;                    /* calls made */
byte sp, si; bit sg, sa;        /* of the send that runs: parts said, in place; whether R has asked for parts; has S asked to refuse it */
byte rp; bit bad;               /* of the receive that runs: parts in place; one is not where it belongs */
bit heard[K], rec[K], sowe[K], rowe[K], sref[K], rref[K]; /* READY; R's word is on record; owed to S, to R; a refusal that is noted */
byte dead, frz, gone;           /* have died; are frozen; are no members any more */
byte vw = 1, ph, dec[K];        /* the newest view; 1: it is being ended, 2: not all have installed it */
byte ncut, nagain, ngive, ncrash, nup, ndown; /* parts on their way to X, from it */
bit due;                        /* somebody is lost: the view has to end */
/* by process: to X, from X; what, view, message, part */
chan up[2] = [20] of { mtype, byte, byte, byte };
chan down[2] = [20] of { mtype, byte, byte, byte };
hidden byte p, k, v, n, o; hidden mtype w;

#define LIVE(q) (!HAS(dead,q))
#define MAY(q) (LIVE(q) && !HAS(frz,q))
#define SRUNS (sc>0 && so[sc-1]==RUN)
#define RRUNS (rc>0 && ro[rc-1]==RUN)
#define REACHES(q) (th[q]==iv[q])
#define XREACHES(q) (xh[q]==iv[X])
/* what is said to whom nobody hears is lost */
inline say(q,word,num,part) {
  if :: REACHES(q) && LIVE(X) ->
        assert(nfull(up[q])); up[q]!word(iv[q],num,part);
        if :: (word)==PART -> nup++; assert(nup<=BOUND) :: else fi
     :: else fi }
inline xsay(q,word,num,part) {
  if :: XREACHES(q) && LIVE(q) ->
        assert(nfull(down[q])); down[q]!word(iv[X],num,part);
        if :: (word)==PART -> ndown++; assert(ndown<=BOUND) :: else fi
     :: else fi }
inline ping(q) { if :: LIVE(q) && LIVE(X) -> assert(nfull(up[q])); up[q]!PING(iv[q],0,0) :: else fi }
inline xping(q) { if :: LIVE(q) && LIVE(X) -> assert(nfull(down[q])); down[q]!PING(iv[X],0,0) :: else fi }

/* ---- mistakes ---- */
#ifdef PARTS_ALL
#define PARTSWAIT (1)
#else
#define PARTSWAIT (sp-si<WINDOW)
#endif
#ifdef READY_ONCE
#define SAY_READY skip
#else
#define SAY_READY say(S,READY,sc-1,0)
#endif
#ifdef ASK_ONCE
#define SAY_ASK skip
#else
#define SAY_ASK say(S,ASK,sc-1,0)
#endif
#ifdef GOES_ON
#define SAID_FROM skip
#else
#define SAID_FROM sp=o
#endif
#ifdef WORD_ONCE
#define TOLD_AGAIN skip
#else
#define TOLD_AGAIN say(S,TOLD,n,0)
#endif
#ifdef GOT_BEGIN
#define IN_PLACE 0
#else
#define IN_PLACE rp
#endif
#ifdef LAZY
#define COMES (so[0]>RUN || HAS(dead|gone,S))
#else
#define COMES 1
#endif
#ifdef READY_AGAIN
#define ANSWERS_AGAIN 1
#else
#define ANSWERS_AGAIN 0
#endif
#ifdef MISPLACED
#define FITS (1)
#else
#define FITS (o==rp)
#endif
#ifdef GOT_ONCE
#define SAY_GOT skip
#else
#define SAY_GOT ask_parts()
#endif
#ifdef HOLD_ONCE
#define SAY_WORD skip
#else
#define SAY_WORD if :: ro[k]==OK -> say(R,HOLD,k,0) :: else -> say(R,REF,k,0) fi
#endif
#ifdef LATE_PART
#define TAKES_LATE (w==PART)
#else
#define TAKES_LATE 0
#endif
#ifdef PATH_UNTOLD
#define PATHS 0
#else
#define PATHS (XREACHES(S) && XREACHES(R))
#endif
#ifdef PATH_R
#define TELL_S skip
#else
#define TELL_S xsay(S,PATH,0,0)
#endif
#ifdef PATH_S
#define TELL_R skip
#else
#define TELL_R xsay(R,PATH,0,0)
#endif
#ifdef NOCUTREPORT
#define DUE 0
#else
#define DUE (due!=0)
#endif

/* ---- S ---- */
inline go() {
  do :: SRUNS && sp<PARTS && PARTSWAIT && REACHES(S) -> say(S,PART,sc-1,sp); sp++ :: else -> break od }
inline s_end(how) { if :: how==OK -> assert(ro[sc-1]==OK) :: else fi; so[sc-1]=how; sp=0; si=0; sg=0; sa=0 }
inline s_call() {
  sc++;
  if :: HAS(gone,R) -> so[sc-1]=LOST
     :: !HAS(gone,R) && sowe[sc-1] -> so[sc-1]=LOST; sowe[sc-1]=0
     :: !HAS(gone,R) && !sowe[sc-1] && sref[sc-1] -> so[sc-1]=REFD; sref[sc-1]=0
     :: else -> so[sc-1]=RUN; say(S,READY,sc-1,0) fi }
inline s_hears() {
  if :: v!=iv[S] || HAS(frz,S) -> skip
     :: else ->
        if :: w==PATH ->
              if :: SRUNS -> SAY_READY; if :: sa -> SAY_ASK :: else fi :: else fi
           :: (w==GOT || w==ANEW) && SRUNS && n==sc-1 ->
              sg=1;
              if :: w==ANEW -> si=o; SAID_FROM :: else -> if :: o>si -> si=o :: else fi fi;
              go()
           :: w==HOLD && SRUNS && n==sc-1 -> s_end(OK); say(S,TOLD,n,0)
           :: w==REF && SRUNS && n==sc-1 -> s_end(REFD); say(S,TOLD,n,0)
           :: w==REF && n>=sc -> sref[n]=1; say(S,TOLD,n,0)
           :: (w==HOLD || w==REF) && n<sc && !(SRUNS && n==sc-1) -> TOLD_AGAIN
           :: else fi fi }

/* ---- R ---- */
inline ask_parts() { say(R,ANEW,rc-1,IN_PLACE) }
inline r_end(how) { ro[rc-1]=how; if :: how==OK -> assert(rp==PARTS && !bad) :: else fi; rp=0; bad=0 }
inline r_call() {
  rc++;
  if :: HAS(gone,S) -> ro[rc-1]=LOST
     :: !HAS(gone,S) && rowe[rc-1] -> ro[rc-1]=LOST; rowe[rc-1]=0
     :: !HAS(gone,S) && !rowe[rc-1] && rref[rc-1] -> ro[rc-1]=REFD; rref[rc-1]=0
     :: else -> ro[rc-1]=RUN; if :: heard[rc-1] -> ask_parts() :: else fi fi }
inline r_hears() {
  if :: v!=iv[R] || (HAS(frz,R) && !TAKES_LATE) -> skip
     :: else ->
        if :: w==PATH ->
              k=0; do :: k<K -> if :: rec[k] -> SAY_WORD :: else fi; k++ :: else -> break od; k=0;
              if :: RRUNS && heard[rc-1] -> SAY_GOT :: else fi
           :: w==READY && n>=rc -> heard[n]=1
           :: w==READY && RRUNS && n==rc-1 -> if :: !heard[n] || ANSWERS_AGAIN -> heard[n]=1; ask_parts() :: else fi
           :: w==PART && RRUNS && n==rc-1 && heard[n] && FITS ->
              bad = (bad || o!=rp); rp++;
              if :: rp==PARTS -> r_end(OK); rec[n]=1; say(R,HOLD,n,0)
                 :: else -> say(R,GOT,n,rp) fi
           :: w==ASK && RRUNS && n==rc-1 -> r_end(REFD); rec[n]=1; say(R,REF,n,0)
           :: w==ASK && n>=rc && !rref[n] -> rref[n]=1; rec[n]=1; say(R,REF,n,0)
           :: w==TOLD -> rec[n]=0
           :: else fi fi }

/* ---- X ---- */
/* it hears one of the two anew */
inline tell() { if :: PATHS -> TELL_S; TELL_R :: else fi }
inline x_hears() {
  if :: w==PING && v>xh[p] -> xh[p]=v; if :: v==iv[X] -> tell() :: else fi
     :: w!=PING && v==iv[X] -> xsay(1-p,w,n,o)
     :: else fi }

/* ---- the master ---- */
/* B9: of what those who live have reported.  Who has not launched is owed it. */
inline decide() {
  k=0;
  do :: k<K ->
     dec[k]=LOST;
     if :: LIVE(R) && (rref[k] || ro[k]==REFD) -> dec[k]=REFD; if :: k>=sc -> sref[k]=1 :: else fi
        :: LIVE(R) && ro[k]==OK -> dec[k]=OK
        :: else ->
           if :: k>=sc && RRUNS && k==rc-1 -> sowe[k]=1 :: else fi;
           if :: k>=rc && SRUNS && k==sc-1 -> rowe[k]=1 :: else fi fi; k++
     :: else -> break od; k=0 }
inline install(q) {
  iv[q]=vw; frz = frz & ~B(q);
  if :: q==S -> if :: SRUNS -> s_end(dec[sc-1]) :: else fi; gone = gone | (dead & B(R)); ping(S)
     :: q==R ->
        k=0; do :: k<K -> heard[k]=0; rec[k]=0; k++ :: else -> break od; k=0;
        if :: RRUNS -> r_end(dec[rc-1]) :: else fi; gone = gone | (dead & B(S)); ping(R)
     :: else -> xping(S); xping(R); tell(); tell()
  fi }
inline drop(q) {
  do :: nempty(up[q]) -> up[q]?w,v,n,o :: empty(up[q]) -> break od;
  do :: nempty(down[q]) -> down[q]?w,v,n,o :: empty(down[q]) -> break od;
  if :: q==S -> nup=0 :: else -> ndown=0 fi;
  th[q]=0; xh[q]=0; v=0; n=0; o=0 }

active proctype all()
{
  atomic { ping(S); ping(R); xping(S); xping(R) }
  do
  :: atomic { MAY(S) && sc<K && !SRUNS -> s_call() }
  :: atomic { MAY(R) && rc<K && !RRUNS && COMES -> r_call() }
  :: atomic { MAY(S) && SRUNS && !sa && ngive<GIVE -> ngive++; sa=1; say(S,ASK,sc-1,0) }
  :: atomic { MAY(R) && RRUNS && ngive<GIVE -> ngive++; n=rc-1; r_end(REFD); rec[n]=1; say(R,REF,n,0); n=0 }
  /* what comes */
  :: atomic { nempty(down[S]) && LIVE(S) ->
     down[S]?w,v,n,o;
     if :: w==PING -> if :: v>th[S] -> th[S]=v :: else fi :: else -> s_hears() fi; v=0; n=0; o=0 }
  :: atomic { nempty(down[R]) && LIVE(R) ->
     down[R]?w,v,n,o;
     if :: w==PART -> ndown-- :: else fi;
     if :: w==PING -> if :: v>th[R] -> th[R]=v :: else fi :: else -> r_hears() fi; v=0; n=0; o=0 }
  :: atomic { nempty(up[S]) && LIVE(X) -> p=S; up[S]?w,v,n,o; if :: w==PART -> nup-- :: else fi; x_hears(); v=0; n=0; o=0; p=0 }
  :: atomic { nempty(up[R]) && LIVE(X) -> p=R; up[R]?w,v,n,o; x_hears(); v=0; n=0; o=0; p=0 }
  /* what is lost */
  :: atomic { nagain<AGAIN && LIVE(X) && LIVE(S) -> nagain++; drop(S); ping(S); xping(S) }
  :: atomic { nagain<AGAIN && LIVE(X) && LIVE(R) -> nagain++; drop(R); ping(R); xping(R) }
  :: atomic { ncrash<CRASH && LIVE(S) -> ncrash++; due=1; dead = dead|B(S); drop(S) }
  :: atomic { ncrash<CRASH && LIVE(R) -> ncrash++; due=1; dead = dead|B(R); drop(R) }
  :: atomic { ncrash<CRASH && LIVE(X) -> ncrash++; due=1; dead = dead|B(X); drop(S); drop(R) }
  /* the view ends */
  :: atomic { ph==0 && DUE -> ph=1 }
  :: atomic { ph==0 && ncut<CUT -> ncut++; ph=1 }
  :: atomic { ph==1 && MAY(S) -> frz = frz|B(S) }
  :: atomic { ph==1 && MAY(R) -> frz = frz|B(R) }
  :: atomic { ph==1 && MAY(X) -> frz = frz|B(X) }
  :: atomic { ph==1 && (frz|dead)==7 -> decide(); vw++; ph=2; due=0; dead = dead & ~B(X); frz = frz|B(X) }
  :: atomic { ph==2 && LIVE(S) && iv[S]!=vw -> install(S) }
  :: atomic { ph==2 && LIVE(R) && iv[R]!=vw -> install(R) }
  :: atomic { ph==2 && LIVE(X) && iv[X]!=vw -> install(X) }
  :: atomic { ph==2 && (iv[S]==vw || !LIVE(S)) && (iv[R]==vw || !LIVE(R)) && (iv[X]==vw || !LIVE(X)) -> ph=0 }
  :: timeout -> break
  od;
  k=0;
  do :: k<K ->
        assert(so[k]>RUN || !LIVE(S)); assert(ro[k]>RUN || !LIVE(R));
        assert(!LIVE(S) || !LIVE(R) || (so[k]==ro[k] && !rec[k])); k++
     :: else -> break od
}
