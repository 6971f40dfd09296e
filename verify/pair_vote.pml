/* pair_vote.pml - who waits in a call for one who waits in a vote: what the master hears of it, and ends (votes against operations).
 *
 * Each of N processes makes L calls, chosen freely: send to one, receive from one, receive from any source; up to W at once (threads, groups of
 * calls).  When its calls have ended it may vote, which is the last thing that it does.  A send and the first receive that fits it end together,
 * at once (how they are matched: matching.pml).  A heartbeat says whom one of the calls waits for: waits_oldest of src/session/membership/waits.c takes
 * those who are waited for in turn, and a receive from any source only if no call waits for one by name.  The master (blocked_by,
 * suspect_blocked of src/world/suspect.c) ends the view if that one votes; of a receive from any source if all others do, and
 * then it names the receiver, which gives it up (end_blocked of src/session/pair/pair.c).  Calls by name abort, and their other end is owed that;
 * but a receive that stands behind one from any source has no number: it goes on, or ends alone if its source is whom the view names, or lost
 * (line_on).
 * Checked: (1) a receive from any source that is given up as blocked has nobody left who could send; (2) each such view ends a call; (3) when nothing more can happen all have
 * voted, but for processes that wait for each other's calls alone: no call waits for one who votes.
 *
 * How to run (spin, gcc; each line takes under 1 min):
 *     spin -DL=2 -a pair_vote.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DL=2 -t -p -g pair_vote.pml     # after "errors: 1": the counterexample, same -D options
 * Budgets: N processes (3), L calls of each (2), W at once (2), CUT views that end with the same members, CRASH processes that die (0).
 *
 * Must hold:
 *   -DL=2                                      -DL=2 -DCUT=1
 *   -DL=2 -DCRASH=1                            -DL=3 -DW=1
 *   -DN=4 -DL=1 -DCRASH=1                      -DN=2 -DL=3 -DCUT=1 -DCRASH=1
 * Must be caught:
 *   -DL=2 -DWAIT_FIRST                         heartbeats say of the oldest call alone whom it waits for
 *   -DL=1 -DANY_ONE                            a receive from any source counts as blocked when one of its sources votes
 *   -DL=1 -DANY_UNTOLD                         the master is not told of it
 *   -DL=1 -DANY_UNNAMED                        its view does not end it
 *   -DL=2 -DLINE_UNTOLD                        ... nor of a receive from a named source that stands behind one from any
 *   -DL=2 -DLINE_STAYS                         its view does not end that
 *   -DL=1 -DNOSHRINK -DCRASH=1                 a vote waits for who is lost; M6
 *   -DN=2 -DL=1 -DANY_NOLOSS -DCRASH=1         a receive from any source outlives the loss of a member; B14
 */
#ifndef N
#define N 3
#endif
#ifndef L
#define L 2
#endif
#ifndef W
#define W 2
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#define B(p) (1<<(p))
#define HAS(m,p) (((m)&B(p))!=0)
#define ALL (B(N)-1)
#define AT(p,q) ((p)*N+(q))
#define ANY N                   /* calls that wait, in their order: 1+q, 1+ANY receives; SEND+1+q sends */
#define SEND 16

byte c[N*W], made[N];
byte owe_s[N*N], owe_r[N*N];    /* errors that the next send of p to q, the next receive of p from q gets */
byte vt, surv = ALL;            /* who waits in a vote, who is a member */
bit done;                       /* answered */
byte ncut, ncrash, nblocked;
byte i, a, b;                   /* what was picked */
hidden byte j, k, x, to, line;

c_code {
static int is_in(int m, int p) { return (m >> p) & 1; }
static int others(int p) { return now.surv & ~(1 << p); }
static int partner(int x) { return x>16 ? x-17 : x-1; }
static int calls(int p) { int w, n=0; for (w=0; w<W; w++) n += now.c[p*W+w]!=0; return n; }
static int calls_of(int p, int x) { int w; for (w=0; w<W; w++) if (now.c[p*W+w]==x) return 1; return 0; }
static int called(int i) { int p=i/N; return is_in(now.surv & ~now.vt, p) && now.made[p]<L && !now.done && calls(p)<W; }
static int votes(int p) { return is_in(now.surv & ~now.vt, p) && !now.done && calls(p)==0; }
static int dies(int p) { return is_in(now.surv, p) && !now.done; }
/* a receive from any source stands before it */
static int in_line(int p, int w) { int v; for (v=0; v<w; v++) if (now.c[p*W+v]==1+N) return 1; return 0; }
/* what a heartbeat may say is of this call */
static int tells(int p, int w) {
  int v, x=now.c[p*W+w];
  if (x==0) return 0;
#ifdef WAIT_FIRST
  for (v=0; v<w; v++) if (now.c[p*W+v]!=1+N) return 0;
#endif
#ifdef LINE_UNTOLD
  if (x<1+N && in_line(p,w)) return 0;
#endif
  for (v=0; x==1+N && v<W; v++) if (now.c[p*W+v]!=0 && now.c[p*W+v]!=1+N) return 0;
  return 1; }
/* ... and it waits for one who votes */
static int stuck(int p, int w) {
  int x=now.c[p*W+w], m=others(p);
  if (x!=1+N) return x!=0 && is_in(now.vt, partner(x));
  return (m & now.vt)==m; }     /* who is alone waits for nobody */
static int ends(int i) {
  int p=i/W, w=i%W;
  if (!is_in(now.surv, p) || now.done || now.c[i]==0) return 0;
#ifdef ANY_ONE
  if (now.c[p*W+w]==1+N && tells(p,w)) return (others(p) & now.vt)!=0;
#endif
#ifdef ANY_UNTOLD
  if (now.c[p*W+w]==1+N) return 0;
#endif
  return others(p)!=0 && tells(p,w) && stuck(p,w); }
static int over(void) {
  int p, w;
  for (p=0; p<N; p++) for (w=0; w<W; w++) if (is_in(now.surv, p) && now.c[p*W+w] && stuck(p,w)) return 0;
  for (p=0; p<N; p++) if (is_in(now.surv, p) && calls(p)>0) return 1;  /* for each other alone */
  return now.done; }
#define FIND(is,count) \
static int is##_at(void) { return now.i<(count) && is(now.i); } \
static int is##_from(int n) { for (; n<(count); n++) if (is(n)) return 1; return 0; } \
static int is##_any(void) { return is##_from(0); } \
static int is##_more(void) { return is##_from(now.i+1); }
FIND(called,N*N)
FIND(votes,N)
FIND(ends,N*W)
FIND(dies,N)
}

/* the first call of p that is this one ends */
inline end(p,call) {
  k=0; do :: c[(p)*W+k]!=(call) -> k++ :: else -> break od;
  do :: k<W-1 -> c[(p)*W+k]=c[(p)*W+k+1]; k++ :: else -> break od; c[(p)*W+k]=0; k=0 }
inline waits(p,call) { k=0; do :: c[(p)*W+k]!=0 -> k++ :: else -> break od; c[(p)*W+k]=(call); k=0 }
/* a send of p to q: takes what is owed, meets a receive, or waits */
inline send(p,q) {
  made[p]++;
  if :: owe_s[AT(p,q)]>0 -> owe_s[AT(p,q)]--
     :: else ->
        k=0; do :: k<W && c[(q)*W+k]!=1+p && c[(q)*W+k]!=1+ANY -> k++ :: else -> break od;
        if :: k<W -> x=c[(q)*W+k]; end(q,x); x=0 :: else -> waits(p,SEND+1+q) fi; k=0 fi }
inline receive(p,q) {
  made[p]++;
  if :: owe_r[AT(p,q)]>0 -> owe_r[AT(p,q)]--
     :: else -> if :: c_expr { (calls_of(now.b,16+1+now.a)) } -> end(q,SEND+1+p) :: else -> waits(p,1+q) fi fi }
inline receive_any(p) {
  made[p]++; x=0;
  j=0; do :: j<N -> if :: x==0 && owe_r[AT(p,j)]>0 -> owe_r[AT(p,j)]--; x=1 :: else fi; j++ :: else -> break od;
  j=0; do :: j<N -> b=j; if :: x==0 && c_expr { (calls_of(now.b,16+1+now.a)) } -> end(j,SEND+1+p); x=1 :: else fi; j++ :: else -> break od; j=0; b=0;
  if :: x==0 && surv==B(p) -> skip :: x==0 && surv!=B(p) -> waits(p,1+ANY) :: else fi; x=0 }
/* The view ends: calls by name abort, and who has not made the other half is owed that; from any source they end if they are named, or
 * somebody is lost; behind one of those, if their source is named, or lost. */
#ifdef LINE_STAYS
#define IN_CYCLE(q,named) 0
#else
#define IN_CYCLE(q,named) ((named)==(q))
#endif
inline end_view(lost,named) {
  j=0; do :: j<N ->
    k=0; x=0; line=0;
    do :: k<W ->
      to=c[j*W+k]; c[j*W+k]=0; line = (line || to==1+ANY);
      if :: to==0 -> skip
         :: to!=0 && to<1+ANY && line ->
            if :: IN_CYCLE(to-1,named) || !HAS(surv,to-1) -> skip :: else -> c[j*W+x]=to; x++ fi
         :: to==1+ANY && (lost || named==j) -> if :: named==j -> assert(((surv & ~B(j)) & vt)==(surv & ~B(j))) :: else fi
         :: to==1+ANY && !(lost || named==j) -> c[j*W+x]=to; x++
         :: to>SEND -> if :: HAS(surv,to-SEND-1) -> owe_r[AT(to-SEND-1,j)]++ :: else fi
         :: to!=0 && to<1+ANY && !line -> if :: HAS(surv,to-1) -> owe_s[AT(to-1,j)]++ :: else fi
      fi; k++
    :: else -> break od; j++
  :: else -> break od; j=0; k=0; x=0; to=0; line=0 }
/* what a lost one has called, and what is owed because of it */
inline forget(p) {
  j=0; do :: j<N -> owe_r[AT(j,p)]=0; owe_s[AT(j,p)]=0; owe_r[AT(p,j)]=0; owe_s[AT(p,j)]=0; j++ :: else -> break od;
  k=0; do :: k<W -> c[(p)*W+k]=0; k++ :: else -> break od; j=0; k=0 }
#ifdef ANY_NOLOSS
#define LOST 0
#else
#define LOST 1
#endif
#ifdef ANY_UNNAMED
#define NAMES(p) N
#else
#define NAMES(p) p
#endif
#ifdef NOSHRINK
#define VOTERS ALL
#else
#define VOTERS surv
#endif


/* one of those that are */
#define PICK(is) c_expr { (is##_any() > 0) } -> do :: c_expr { (is##_at() > 0) } -> break :: c_expr { (is##_more() > 0) } -> i++ od

active proctype all()
{
  do
  /* calls */
  :: atomic { PICK(called); a=i/N; b=i%N;
     if :: a==b -> receive_any(a)
        :: a!=b && !HAS(surv,b) -> made[a]++    /* ends at once */
        :: a!=b && HAS(surv,b) -> send(a,b)
        :: a!=b && HAS(surv,b) -> receive(a,b) fi; i=0; a=0; b=0 }
  :: atomic { PICK(votes); vt = vt|B(i); i=0 }
  :: atomic { !done && (vt & VOTERS)==VOTERS -> done=1 }
  /* a heartbeat of one whose call waits for who votes */
  :: atomic { PICK(ends); nblocked++; assert(nblocked<=N*L); a=(c[i]==1+ANY -> NAMES(i/W) : (c[i]>SEND -> c[i]-SEND-1 : c[i]-1)); end_view(0,a); i=0; a=0 }
  :: atomic { !done && ncut<CUT -> ncut++; end_view(0,N) }
  :: atomic { ncrash<CRASH && PICK(dies); ncrash++; surv = surv & ~B(i); vt = vt & ~B(i); forget(i); end_view(LOST,N); forget(i); i=0 }
  :: timeout -> break
  od;
  assert(c_expr { (over() > 0) })
}
