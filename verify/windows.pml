/* windows.pml - what one member asks another one's window for, over messages that views cut off (O1, O2, O5, O6).
 *
 * An origin starts K operations, each a put, a number (fetch and add) or a signal, chosen freely, at most SPAN of them under way.  Each is a
 * request and, for a put or a number, one message more: bytes there, an answer back.  On each of the three tags the i-th message that one
 * end sends in a view is the i-th that the other receives in it.  A view ends CUT times, at each end by itself: whatever of it has not ended
 * there is lost there, and may have been done at the other end; the origin hears of that later, one operation after another, while its
 * program starts more.  It gives up GIVEUP operations.  With each request the origin says up to which number all is over; the target may read
 * that before it hears itself that bytes have come.
 * Checked: (1) each message that comes is of the operation that its receive is for; (2) an operation is done once, or not if given up;
 * (3) what is ordered (numbers, signals) is done after all that was called before it, and no byte of these lands after it; (4) when nothing
 * more can happen all have ended, and were done unless given up.
 *
 * How to run (spin, gcc; each line takes under a minute):
 *     spin -DK=3 -DCUT=2 -a windows.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DK=3 -DCUT=2 -t -p -g windows.pml     # after "errors: 1": the counterexample, same -D options
 *
 * Must hold:
 *   -DK=3 -DGIVEUP=2                           -DK=3 -DCUT=1 -DGIVEUP=1
 *   -DK=2 -DCUT=2 -DGIVEUP=1                   -DK=4 -DCUT=1 -DSPAN=2
 *   -DK=2 -DCUT=3                              -DK=3 -DCUT=2
 * Must be caught:
 *   -DK=3 -DCUT=1 -DHASTY                      what was cut off goes out again as the origin hears of each
 *   -DK=3 -DCUT=1 -DAHEAD                      the program starts in the next view before the origin has heard of the last one's end
 *   -DK=2 -DCUT=1 -DKEPT                       the target keeps what waits for messages of an older view
 *   -DK=1 -DCUT=1 -DAGAIN                      what is asked again is done again
 *   -DK=2 -DCUT=1 -DPUT_AGAIN                  bytes that have come are taken again
 *   -DK=2 -DEARLY                              a signal does not wait for bytes that are on their way
 *   -DK=2 -DCUT=1 -DUNBOUND                    a request may go out in another view than its bytes
 *   -DK=2 -DGIVEUP=1 -DNOVOID                  the target is not told what is given up
 *   -DK=3 -DPASSED                             a signal that waits is passed over when its origin says that its number is over
 */
#ifndef K
#define K 3
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef GIVEUP
#define GIVEUP 0
#endif
#ifndef SPAN
#define SPAN K
#endif
#ifdef AHEAD
#define BEHIND(x) 0
#else
#define BEHIND(x) (x)
#endif
#ifdef PASSED
#define COUNTS(o) 0
#else
#define COUNTS(o) (kind[o]==SIGNAL)
#endif
#define V (2+CUT)               /* views are 1..V-1 */
#define M (2*K+GIVEUP)          /* messages of a tag in a view */
#define AT(v,n) ((v)*M+(n))
#define PUT 1
#define NUMBER 2
#define SIGNAL 3
#define VOID 4
/* of an operation at the origin */
#define NEW 0
#define SENT 1
#define LOST 2                  /* its view has ended, which the origin has not heard */
#define OVER 3                  /* it has all that it waits for; the same */
#define GIVEN 4                 /* given up; the same */
#define CUTOFF 5                /* to be sent again */
#define DONE 6

byte ov = 1, tv = 1;            /* installed views */
byte kind[K], as[K];            /* what it was; and is asked as: VOID, once given up */
byte os[K], osv[K], rok[K], dok[K], next, gave; /* state, view of its messages; request heard, the other message over */
/* by view: requests, as what; bytes, taken, cancelled, the target's receives of them, to be refused; answers; the origin's receives, ended */
byte rq[V*M], rk[V*M], rb[V*M], nrq[V], nh[V]; /* rb: all smaller numbers are over */
byte pd[V*M], pc[V*M], px[V*M], npd[V], pr[V*M], pb[V*M], npr[V];
byte an[V*M], nan[V], ar[V*M], ac[V*M], nar[V];
byte done[K], did[K], wo[K+1], wv[K+1], nw; /* target: numbers, what was carried out, what waits for smaller numbers, in which view */
byte landed[K];                 /* bytes that have come, which the target has not heard */
byte i, j, k, q, b;

c_code {
static int out(int o) { return now.os[o]==SENT || now.os[o]==LOST || now.os[o]==OVER || now.os[o]==GIVEN; }
static int any_out(void) { int o; for (o=0; o<K; o++) if (out(o)) return 1; return 0; }
static int behind(void) { int o; for (o=0; o<K; o++) if (now.os[o]==CUTOFF || (out(o) && now.osv[o]!=now.ov)) return 1; return 0; }
static int base(void) { int o=0; while (o<now.next && now.os[o]==DONE) o++; return o; }
static int may_start(void) { return now.next<K && now.next-base()<SPAN && !BEHIND(behind()); }
static int awaits(int o, int as) { return now.os[o]==SENT && now.osv[o]==now.ov && now.as[o]==as; }
static int asked(int n) { int a=AT(now.ov,n), o=now.rq[a]; return n<now.nh[now.ov] && awaits(o,now.rk[a]) && !now.rok[o]; }
static int taken(int n) { int a=AT(now.ov,n), o=now.pd[a]; return now.pc[a] && awaits(o,PUT) && !now.dok[o]; }
static int answered(int n) { int a=AT(now.ov,n), o=now.ar[a]; return n<now.nan[now.ov] && !now.ac[a] && awaits(o,NUMBER); }
static int comes(int n) { int a=AT(now.tv,n); return n<now.npd[now.tv] && !now.pc[a] && !now.px[a]; }
static int place(int o) { int n=0; while (now.pd[AT(now.osv[o],n)]!=o) n++; return AT(now.osv[o],n); }
static int gives(int o) { return now.os[o]==SENT && !now.dok[o] && (now.as[o]==NUMBER || (now.as[o]==PUT && !now.pc[place(o)])); }
static int lands(int o) { return now.landed[o]; }
static int told(int o) { return now.os[o]==LOST || now.os[o]==OVER || now.os[o]==GIVEN; }
#define FIND(is,count) \
static int is##_at(void) { return now.i<(count) && is(now.i); } \
static int is##_from(int n) { for (; n<(count); n++) if (is(n)) return 1; return 0; } \
static int is##_any(void) { return is##_from(0); } \
static int is##_more(void) { return is##_from(now.i+1); }
FIND(asked,now.nrq[now.ov])
FIND(taken,now.npd[now.ov])
FIND(answered,now.nar[now.ov])
FIND(comes,now.npr[now.tv])
FIND(gives,K)
FIND(told,K)
FIND(lands,K)
static int smaller_done(void) { int n, o=now.q; for (n=0; n<o; n++) if (!now.done[n]) return 0; return 1; }
/* may be carried out now: what is ordered behind all before it that are not given up, nothing before what is ordered */
static int in_order(void) {
  int n, o=now.q;
  for (n=0; n<K; n++) {
    if (n>o && now.did[n] && now.kind[n]!=PUT) return 0;
    if (n<o && now.kind[o]!=PUT && !now.did[n] && now.as[n]!=VOID) return 0; }
  return 1; }
}

/* one of those that are */
#define PICK(is) c_expr { (is##_any() > 0) } -> do :: c_expr { (is##_at() > 0) } -> break :: c_expr { (is##_more() > 0) } -> i++ od

/* its request in view v, its other message in view u */
inline transmit(o,u,v) {
  os[o]=SENT; osv[o]=v; rok[o]=0; dok[o]=(as[o]!=PUT && as[o]!=NUMBER);
  if :: as[o]==PUT -> pd[AT(u,npd[u])]=o; npd[u]++ :: as[o]==NUMBER -> ar[AT(u,nar[u])]=o; nar[u]++ :: else fi;
  rq[AT(v,nrq[v])]=o; rk[AT(v,nrq[v])]=as[o]; rb[AT(v,nrq[v])]=c_expr { base() }; nrq[v]++ }
inline send_again() {
  if :: c_expr { (any_out() > 0) } -> skip
     :: else -> j=0; do :: j<K -> if :: os[j]==CUTOFF -> transmit(j,ov,ov) :: else fi; j++ :: else -> break od; j=0 fi }
inline cut_off(o) {
#ifdef HASTY
  transmit(o,ov,ov)
#else
  os[o]=CUTOFF; send_again()
#endif
}
inline give_up(o) {
#ifdef NOVOID
  os[o]=DONE; send_again()
#else
  as[o]=VOID; if :: osv[o]==ov -> transmit(o,ov,ov) :: else -> cut_off(o) fi
#endif
}
inline check_over(o) { if :: rok[o] && dok[o] -> os[o]=OVER :: else fi }

inline carry_out(o) { assert(!did[o]); q=o; assert(c_expr { (in_order() > 0) }); q=0; did[o]=1 }
/* what waits and has nothing before it any more; in the order of numbers */
inline answer() {
  do :: nw==0 -> break
     :: else -> q=wo[0];
#ifdef EARLY
        b=1;
#else
        b=done[q] || c_expr { (smaller_done() > 0) };
#endif
        if :: !b -> break
           :: else -> k=q;
#ifdef AGAIN
              carry_out(k);
#else
              if :: !done[k] || COUNTS(k) -> carry_out(k) :: else fi;
#endif
              done[k]=1;
              if :: kind[k]==NUMBER && wv[0]==tv -> an[AT(tv,nan[tv])]=k; nan[tv]++ :: else fi;
              k=0; drop(0) fi od; q=0; b=0 }
inline drop(at) { nw--; k=at; do :: k<nw -> wo[k]=wo[k+1]; wv[k]=wv[k+1]; k++ :: else -> break od; wo[nw]=0; wv[nw]=0; k=0 }
inline insert(o) {
  j=0; do :: j<nw && wo[j]<o -> j++ :: else -> break od;
  if :: j<nw && wo[j]==o -> skip
     :: else -> k=nw; do :: k>j -> wo[k]=wo[k-1]; wv[k]=wv[k-1]; k-- :: else -> break od; wo[j]=o; wv[j]=tv; nw++; k=0 fi; j=0 }
inline drop_older() {
#ifdef KEPT
  skip
#else
  j=0; do :: j<nw && wv[j]<tv && kind[wo[j]]==NUMBER -> drop(j) :: j<nw && !(wv[j]<tv && kind[wo[j]]==NUMBER) -> j++ :: else -> break od; j=0
#endif
}

active proctype both()
{
  atomic { do :: i<K -> if :: kind[i]=PUT :: kind[i]=NUMBER :: kind[i]=SIGNAL fi; as[i]=kind[i]; i++ :: else -> break od; i=0 }
  do
  /* the program starts one: two messages, together */
  :: atomic { c_expr { (may_start() > 0) } ->
#ifdef UNBOUND
     if :: ov<V-1 -> transmit(next,ov,ov+1) :: transmit(next,ov,ov) fi;
#else
     transmit(next,ov,ov);
#endif
     next++ }
  /* the origin's ends of messages */
  :: atomic { PICK(asked); rok[rq[AT(ov,i)]]=1; check_over(rq[AT(ov,i)]); i=0 }
  :: atomic { PICK(taken); dok[pd[AT(ov,i)]]=1; check_over(pd[AT(ov,i)]); i=0 }
  :: atomic { PICK(answered);
     assert(an[AT(ov,i)]==ar[AT(ov,i)]); ac[AT(ov,i)]=1; dok[ar[AT(ov,i)]]=1; check_over(ar[AT(ov,i)]); i=0 }
  /* it gives one up whose other message has not been taken */
  :: atomic { gave<GIVEUP && PICK(gives); gave++; os[i]=GIVEN;
     if :: as[i]==PUT -> j=0; do :: pd[AT(osv[i],j)]!=i -> j++ :: else -> break od; px[AT(osv[i],j)]=1; j=0 :: else fi; i=0 }
  /* it hears how one has ended */
  :: atomic { PICK(told);
     if :: os[i]==OVER -> os[i]=DONE; send_again() :: os[i]==LOST -> cut_off(i) :: os[i]==GIVEN -> give_up(i) fi; i=0 }
  /* views end, at each by itself */
  :: atomic { ov<V-1 && ov<=tv -> i=0; do :: i<K -> if :: os[i]==SENT && osv[i]==ov -> os[i]=LOST :: else fi; i++ :: else -> break od; i=0; ov++ }
  :: atomic { tv<V-1 && tv<=ov && c_expr { (lands_any() == 0) } -> tv++ }
  /* the target hears the next request */
  :: atomic { nh[tv]<nrq[tv] -> i=rq[AT(tv,nh[tv])]; drop_older();
     j=0; do :: j<rb[AT(tv,nh[tv])] -> done[j]=1; j++ :: else -> break od; j=0;
     if :: rk[AT(tv,nh[tv])]==VOID -> done[i]=1
        :: rk[AT(tv,nh[tv])]==PUT -> pr[AT(tv,npr[tv])]=i;
#ifndef PUT_AGAIN
           pb[AT(tv,npr[tv])]=done[i];
#endif
           npr[tv]++
        :: rk[AT(tv,nh[tv])]==SIGNAL && done[i] -> skip
        :: else -> insert(i) fi;
     nh[tv]++; answer(); i=0 }
  /* bytes come, or are refused */
  :: atomic { PICK(comes); pc[AT(tv,i)]=1; assert(pr[AT(tv,i)]==pd[AT(tv,i)]); i=pr[AT(tv,i)] + K*pb[AT(tv,i)];
     if :: i<K -> did[i]=0; carry_out(i); landed[i]=1 :: else fi; i=0 }
  :: atomic { PICK(lands); landed[i]=0; done[i]=1; answer(); i=0 }
  :: timeout -> break
  od;
  i=0; do :: i<K -> assert(os[i]==DONE && (did[i] || as[i]==VOID)); i++ :: else -> break od
}
