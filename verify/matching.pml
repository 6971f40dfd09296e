/* matching.pml - messages of several pairs at once at one receiver: lines, failed announcements, views, votes (B12 to B15).
 *
 * S sources each make KS calls of send to one receiver, and it RC calls of receive, each from any source or from a named one, chosen freely;
 * all on one tag, up to W of each process at once (threads, groups of calls).  When its calls have ended a program may vote (update); the
 * last thing that each does is its U-th vote.  Functions meant are those of src/session: number and match (pair.c), pair_next (pair_match.c),
 * asked, refused, pair_replay, line_on (pair.c), refusal_skip (refusal.c), owed_clear (tags.c), decide (install.c), ballot_words (ballot.c).
 *   Receives wait in one line, in the order of calls; the first is matched if it can be: one from a named source at once, with the next
 * number of that pair, one from any source with an error that is owed (lowest source first), else with what was heard of first.
 *   Words of a pair come in order, each in the view that it was said in: ANN (READY, or the bytes themselves), ASK (a sender's REFUSE), HOLD,
 * REF (the receiver's REFUSE), TOLD (the sender's FINISHED for that).  FREEZE, VIEW and ANSWER of the master come on a connection of their own, so that they pass words.
 *   Views are those of view_change.pml: freeze and report in one step, decision of all reports, what was not launched is owed.
 *   ANSWER: what is owed goes, and numbers that were refused and not launched here are skipped, as far as they were refused before it:
 * a refusal says how many votes had been answered in the view where it was said first.
 *   Blocked: the master ends the view if a call waits for one who votes; a receive from any source if all its sources do, and then by name.  (That the rest may wait for the receiver instead, for a stall time, is not here.)
 * What has no number yet ends alone: that one, and those behind it whose source votes.  Records stay until the view ends.
 * Checked: (1) the k-th send of a source since the last vote and the k-th receive that was matched with that source since then are one
 * message: same outcome, and after a success the bytes of that send; so nothing is matched twice, and a failed announcement ends one
 * receive, before later ones of its source; (2) no receive passes one that was called before and that its message fits; (3) who is given
 * up as blocked has nobody left who could end it, and each such view ends a call; (4) when nothing more can happen every program has ended: no receive waits while
 * something that fits it is announced, nobody waits for a vote that waits for its own call.
 *
 * How to run (spin, gcc; each line takes under 2 min):
 *     spin -DCUT=1 -a matching.pml
 *     gcc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan -m400000     # expect "errors: 0"
 *     spin -DCUT=1 -t -p -g matching.pml     # after "errors: 1": the counterexample, same -D options
 * Variant: FIRST_HEARD: announced looks at no numbers (harmless: what is smaller is heard of in time, too).
 * Budgets: S sources (2), KS sends of each (2), RC receives (2), W calls at once (2), U votes of each program (1); CUT views that end with the
 *   same members, CRASH sources that die, GIVE calls that are given up (deadline, cancel, no memory), AGAIN links that are made again
 *   within a view (words are said again, in any order), ADM votes that are answered by a view (all 0).
 *
 * Must hold:
 *   -DU=2 -DS=1 -DCUT=1 -DGIVE=2               -DGIVE=2 -DCUT=1
 *   -DCRASH=1 -DCUT=1                          -DCRASH=1 -DGIVE=1
 *   -DU=2 -DGIVE=2                             -DU=2 -DCUT=1 -DGIVE=1
 *   -DU=2 -DS=1 -DKS=3 -DRC=3 -DGIVE=2         -DCUT=2
 *   -DU=2 -DADM=1 -DGIVE=1                     -DU=3 -DS=1 -DGIVE=2
 *   -DAGAIN=1 -DGIVE=1                         -DS=1 -DKS=3 -DRC=3 -DW=3 -DGIVE=2 -DCUT=1
 *   -DKS=3 -DRC=3 -DGIVE=1                     -DRC=3 -DW=3 -DGIVE=1
 *   -DU=2 -DS=1 -DAGAIN=1 -DGIVE=1 -DCUT=1     -DS=3 -DKS=1 -DRC=3 -DW=3
 *   -DAGAIN=1 -DGIVE=1 -DFIRST_HEARD           -DS=3 -DKS=1 -DRC=3 -DW=3 -DGIVE=1
 * Must be caught:
 *   -DGIVE=1 -DFAILED_SKIP                     a receive from any source passes over announcements that have failed; B13
 *   -DCUT=1 -DFAILED_LAST                      a receive takes what is owed after what is announced of the same source; B13
 *   -DCUT=1 -DOWED_UNSEEN                      a receive from any source is not matched with what is owed; B13
 *   -DCUT=1 -DOWE_TAG                          an error is owed by tag, not by pair; B1
 *   -DCUT=1 -DNODEBT                           a late caller does not get the abort; P7
 *   -DANY_DROP                                 a receive that is matched drops the other announcements; B12
 *   -DGIVE=1 -DANY_GIVEUP                      a matched receive is given up alone; B12
 *   -DLINE_PASSED                              a receive from a named source does not wait behind one from any source; B12
 *   -DS=1 -DCRASH=1 -DANY_NOLOSS               a receive that is matched with nothing outlives the loss of a member; B14
 *   -DU=2 -DCUT=1 -DOWED_KEPT                  an update does not clear what is owed; P7
 *   -DU=2 -DGIVE=1 -DSKIP_NOT                  it does not skip what was refused; P10
 *   -DU=2 -DGIVE=2 -DSKIP_ALL                  it skips what others refused after it, too
 *   -DU=2 -DGIVE=1 -DSETTLED_LEAST             who refuses at a sender's wish counts its own answered votes, if they are fewer
 *   -DS=1 -DU=2 -DGIVE=1 -DVOTE_UNTOLD         a receiver votes before its refusal is known to have come; B15
 *   -DU=2 -DGIVE=1 -DAGAIN=1 -DWORD_ONCE       a refusal that is said again is not answered again, and what was answered is lost; B15
 *   -DU=2 -DVOTE_PENDING                       a program votes beside its calls; P1
 *   -DANY_ONE                                  a receive from any source counts as blocked when one of its sources votes
 *   -DANY_UNTOLD                               the master is not told of it
 *   -DANY_UNNAMED                              its view does not end it
 *   -DRC=1 -DBLOCKED_NOT                       no view ends for a call that waits for one who votes
 */
#ifndef S
#define S 2
#endif
#ifndef KS
#define KS 2
#endif
#ifndef RC
#define RC 2
#endif
#ifndef W
#define W 2
#endif
#ifndef U
#define U 1
#endif
#ifndef CUT
#define CUT 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef GIVE
#define GIVE 0
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef ADM
#define ADM 0
#endif
#define M (KS+RC)               /* numbers of a pair in a view */
#define AT(i,n) ((i)*M+(n))
#define B(p) (1<<(p))
#define HAS(m,p) (((m)&B(p))!=0)
#define ALL (B(S)-1)            /* sources; the receiver is S, and never lost */
#define Q(i,v) ((i)*2+((v)&1))  /* words of two views at most are under way */
#define NONE 0
#define RUN 1
#define ASKED 2                 /* a send: its receiver is asked to refuse it */
#define UNSAID 3                /* the same, of one that was never announced */
#define FIN 2                   /* a receive */
#define REFD 3
#define OK 1
#define ERR 2
mtype = { ANN, ASK, HOLD, REF, TOLD, FREEZE, VIEW, ANSWER };

/* sources: installed view, votes answered in it, next number, messages since the last vote, votes answered, calls made, errors owed;
 * by number: state, which message; refused before it was launched: 1+votes answered */
byte iv[S] = 1, ss[S], sn[S], sk[S], se[S], sc[S], sow[S], st[S*M], si[S*M], note[S*M];
/* receiver: the same; by number: state, which message, announced (1+message), refused (1+votes answered) */
byte unt[S*M];                  /* refused by itself, and its sender, which had not come to it, has not said that it has the word */
byte rv = 1, rss, rn[S], rk[S], re, rc, row[S], rs[S*M], ri[S*M], ga[S*M], gr[S*M], rmem = ALL;
byte hl[S*M], nh;               /* announcements that no receive has taken, in the order in which they were heard of */
byte ln[W], nl;                 /* the line: 0 any source, 1+i */
bit stale;                      /* the program does not know yet that a member is lost */
byte frz, vt, dead;             /* processes that are frozen; wait in a vote; have died */
byte surv = ALL, acks, asked, dec[S*M];         /* master: survivors; of the sources and the receiver, who has reported, who has voted */
bit ph; byte blk;               /* the view is being ended; for a receive from any source, or for a source that votes: 1+i */
byte oc[(U+1)*S*M];             /* outcomes of messages, by votes answered */
byte ncut, ncrash, ngive, nagain, nadm, nblocked;
chan q[2*S] = [8] of { mtype, byte, byte };     /* to the receiver */
chan a[2*S] = [8] of { mtype, byte, byte };     /* to the source */
chan mc[S+1] = [4] of { mtype, byte };
byte i;                         /* the one that was picked */
hidden byte j, k, n, x, p, h, tn, tx, arg, got; hidden mtype ty;

c_code {
static int bit_of(int m, int s) { return (m >> s) & 1; }
static int live(int s) { return !bit_of(now.dead, s); }
static int may(int s) { return live(s) && !bit_of(now.frz, s); }
static int s_open(int s) { int n, c=0; for (n=0; n<M; n++) c += now.st[s*M+n]!=0; return c; }
static int r_open(void) { int n, c=now.nl; for (n=0; n<S*M; n++) c += now.rs[n]==1; return c; }
static int sends(int s) { return may(s) && !bit_of(now.vt, s) && now.sc[s]<KS && now.se[s]<U && s_open(s)<W; }
static int votes(int s) { return live(s) && !bit_of(now.vt, s) && now.se[s]<U && s_open(s)==0; }
static int asks(int a) { return now.st[a]==1 && may(a/M); }
static int hears(int s) { return may(s) && q_len(now.a[s*2+(now.iv[s]&1)])>0; }
static int obeys(int s) { return live(s) && q_len(now.mc[s])>0; }
static int holds(int a) { return now.rs[a]==1 && now.ga[a]; }
static int gives(int a) { return now.rs[a]==1; }
static int in_line(int a) { return a<now.nl; }
static int heard(int s) { return q_len(now.q[s*2+(now.rv&1)])>0; }
static int again(int s) { return may(s) && may(S) && now.iv[s]==now.rv; }
static int dies(int s) { return live(s); }
#define FIND(is,count) \
static int is##_at(void) { return now.i<(count) && is(now.i); } \
static int is##_from(int n) { for (; n<(count); n++) if (is(n)) return 1; return 0; } \
static int is##_any(void) { return is##_from(0); } \
static int is##_more(void) { return is##_from(now.i+1); }
FIND(sends,S)
FIND(votes,S)
FIND(asks,S*M)
FIND(hears,S)
FIND(obeys,S)
FIND(holds,S*M)
FIND(gives,S*M)
FIND(in_line,W)
FIND(heard,S)
FIND(again,S)
FIND(dies,S)
/* what was refused here, and not launched there, is known there */
static int told(void) {
  int s, n;
  for (s=0; s<S; s++) for (n=0; n<M; n++)
    if (now.unt[s*M+n]) return 0;
  return 1; }
static int r_votes(void) { return !bit_of(now.vt, S) && now.re<U; }
static int installed(void) { int c; for (c=0; c<=S; c++) if (q_len(now.mc[c])) return 0; return 1; }  /* M5 */
static int quiet(void) {
  int c;
  for (c=0; c<2*S; c++) if (q_len(now.q[c]) || q_len(now.a[c])) return 0;
  return installed(); }
/* a receive waits for a source that votes; a send for the receiver, if it does */
static int waits_for(int s) {
  int n;
  if (!bit_of(now.surv, s) || !bit_of(now.asked, s)) return 0;
  for (n=0; n<M; n++) if (now.rs[s*M+n]==1 && !now.ga[s*M+n]) return 1;
  for (n=0; n<now.nl; n++) if (now.ln[n]==1+s) return 1;
  return 0; }
FIND(waits_for,S)
static int blocked(void) {
  int s, n;
  for (s=0; s<S; s++) for (n=0; n<M && bit_of(now.surv, s); n++) if (now.st[s*M+n] && bit_of(now.asked, S)) return 1;
  return 0; }
static int any_blocked(void) {
  int m = now.surv & now.asked;
#ifdef ANY_ONE
  return now.nl>0 && now.ln[0]==0 && m;
#else
  return now.nl>0 && now.ln[0]==0 && m && m==now.surv;
#endif
  }
static int owes(void) { int s, n=0; for (s=0; s<S; s++) n += now.row[s]; return n; }
static int over(void) {
  int s;
  for (s=0; s<S; s++) if (live(s) && (now.se[s]<U || s_open(s))) return 0;
  return now.re==U && r_open()==0; }
}

/* one of those that are */
#define PICK(is) c_expr { (is##_any() > 0) } -> do :: c_expr { (is##_at() > 0) } -> break :: c_expr { (is##_more() > 0) } -> i++ od
#define SAY(i,t,n,x) if :: rv<=iv[i] -> assert(nfull(q[Q(i,iv[i])])); q[Q(i,iv[i])]!t,n,x :: else fi        /* else its view is over there */
#define TELL(i,t,n,x) if :: iv[i]<=rv && !HAS(dead,i) -> assert(nfull(a[Q(i,rv)])); a[Q(i,rv)]!t,n,x :: else fi
inline drain(c) { do :: nempty(c) -> c?ty,k,_ :: empty(c) -> break od; ty=0; k=0 }
inline drain_master(s) { do :: nempty(mc[s]) -> mc[s]?ty,k :: empty(mc[s]) -> break od; ty=0; k=0 }
inline give(e,s,m,o) { assert((m)<M && (e)<=U); assert(oc[((e)*S+(s))*M+(m)]==NONE || oc[((e)*S+(s))*M+(m)]==o); oc[((e)*S+(s))*M+(m)]=o }

/* ---- what both do ---- */

#define NAMED 64                /* in VIEW, beside its members: came for a receive from any source; for one who votes: 8 times 1+i */
#define VOTER(arg) (((arg)>>3)&3)
#define ADMITS 128              /* answers the votes */
#ifdef SKIP_NOT
#define SKIPS(refused,answers) 0
#elif defined(SKIP_ALL)
#define SKIPS(refused,answers) ((refused)>0)
#else
#define SKIPS(refused,answers) ((refused)>0 && (refused)-1<=answers)
#endif
#ifdef OWED_KEPT
#define CLEAR(owed) skip
#else
#define CLEAR(owed) owed=0
#endif
#ifdef NODEBT
#define OWE(owed,d) skip
#else
#define OWE(owed,d) if :: (d)==ERR -> owed++ :: else fi
#endif
#define REPORT(who) if :: ph && arg==surv -> acks = acks | B(who) :: else fi
inline vote(who) { vt = vt | B(who); asked = asked | B(who) }
/* the link is made again: what was under way is lost, and all that is open is said once more */
inline say_again(s) {
  drain(q[Q(s,iv[s])]); drain(a[Q(s,iv[s])]);
  if :: p=0 :: p=1 fi;
  n=0; do :: n<M ->
    h=(p -> M-1-n : n);
    if :: st[AT(s,h)]==RUN || st[AT(s,h)]==ASKED -> SAY(s,ANN,h,si[AT(s,h)]) :: else fi;
    if :: st[AT(s,h)]==UNSAID || st[AT(s,h)]==ASKED -> SAY(s,ASK,h,ss[s]) :: else fi;
    if :: rs[AT(s,n)]==FIN -> TELL(s,HOLD,n,0) :: gr[AT(s,n)]>0 -> TELL(s,REF,n,gr[AT(s,n)]-1) :: else fi; n++
  :: else -> break od; n=0; h=0; p=0 }

/* ---- sources ---- */

inline launch(s) {
  sc[s]++;
  if :: sow[s]>0 -> sow[s]--; give(se[s],s,sk[s],ERR); sk[s]++
     :: else -> tn=sn[s]; assert(tn<M); sn[s]++; tx=sk[s]; sk[s]++;
        if :: note[AT(s,tn)]>0 -> note[AT(s,tn)]=0; give(se[s],s,tx,ERR)
           :: else -> si[AT(s,tn)]=tx;
              if :: st[AT(s,tn)]=RUN; SAY(s,ANN,tn,tx)
                 :: ngive<GIVE -> ngive++; st[AT(s,tn)]=UNSAID; SAY(s,ASK,tn,ss[s]) fi fi fi;
  tn=0; tx=0 }
inline source_hears(s) {
  a[Q(s,iv[s])]?ty,n,x;
#ifdef WORD_ONCE
  if :: ty==REF && (st[AT(s,n)]!=NONE || (n>=sn[s] && note[AT(s,n)]==0)) -> SAY(s,TOLD,n,0) :: else fi;
#else
  if :: ty==REF -> SAY(s,TOLD,n,0) :: else fi;
#endif
  if :: st[AT(s,n)]!=NONE -> st[AT(s,n)]=NONE; if :: ty==HOLD -> give(se[s],s,si[AT(s,n)],OK) :: else -> give(se[s],s,si[AT(s,n)],ERR) fi; si[AT(s,n)]=0
     :: st[AT(s,n)]==NONE && n>=sn[s] -> assert(ty==REF); if :: note[AT(s,n)]==0 -> note[AT(s,n)]=1+x :: else fi
     :: else fi;
  ty=0; n=0; x=0 }
inline source_answered(s) {
  n=0; do :: n<M -> if :: n>=sn[s] && SKIPS(note[AT(s,n)],ss[s]) -> sn[s]=n+1; note[AT(s,n)]=0 :: else fi; n++ :: else -> break od; n=0;
  ss[s]++; CLEAR(sow[s]); se[s]++; sk[s]=0; vt = vt & ~B(s) }
inline source_installs(s) {
  n=0; do :: n<M ->
    if :: st[AT(s,n)]!=NONE -> assert(dec[AT(s,n)]!=NONE); give(se[s],s,si[AT(s,n)],dec[AT(s,n)])
       :: st[AT(s,n)]==NONE && n>=sn[s] -> assert(dec[AT(s,n)]!=OK); OWE(sow[s],dec[AT(s,n)])
       :: else fi;
    st[AT(s,n)]=NONE; si[AT(s,n)]=0; note[AT(s,n)]=0; n++
  :: else -> break od; n=0;
  drain(a[Q(s,iv[s])]); iv[s]++; sn[s]=0; ss[s]=0; frz = frz & ~B(s) }
inline source_obeys(s) {
  mc[s]?ty,arg;
  if :: ty==FREEZE -> frz = frz | B(s); REPORT(s)
     :: ty==VIEW -> source_installs(s); if :: arg&ADMITS -> source_answered(s); ss[s]=0 :: else fi
     :: ty==ANSWER -> source_answered(s)
  fi; ty=0; arg=0 }

/* ---- receiver ---- */

inline unlist(at) {
  h=0; do :: h<nh && hl[h]!=at -> h++ :: else -> break od;
  if :: h<nh -> nh--; do :: h<nh -> hl[h]=hl[h+1]; h++ :: else -> break od; hl[nh]=0 :: else fi; h=0 }
inline list(at) { hl[nh]=at; nh++ }
/* a receive gets its number, or an error; so many stand before it in the line */
inline take(s,before) {
  h=0; do :: h<before -> assert(ln[h]!=0 && ln[h]!=1+s); h++ :: else -> break od; h=0;
  tx=rk[s]; rk[s]++; tn=s;
#ifdef OWE_TAG
  tn=0; do :: tn<S && row[tn]==0 -> tn++ :: else -> break od; if :: tn==S -> tn=s :: else fi;
#endif
#ifdef FAILED_LAST
  if :: row[tn]>0 && ga[AT(s,rn[s])]==0 -> row[tn]--; give(re,s,tx,ERR)
#else
  if :: row[tn]>0 -> row[tn]--; give(re,s,tx,ERR)
#endif
     :: else -> tn=rn[s]; assert(tn<M); rn[s]++; ri[AT(s,tn)]=tx; unlist(AT(s,tn));
        if :: gr[AT(s,tn)]>0 -> rs[AT(s,tn)]=REFD; give(re,s,tx,ERR) :: else -> rs[AT(s,tn)]=RUN fi fi;
#ifdef ANY_DROP
  h=0; do :: h<nh -> if :: hl[h]/M!=s -> ga[hl[h]]=0 :: else fi; hl[h]=0; h++ :: else -> break od; h=0; nh=0;
#endif
  tn=0; tx=0 }
#ifdef FAILED_SKIP
#define FAILS(at) gr[at]
#else
#define FAILS(at) 0
#endif
#ifdef FIRST_HEARD
#define TURN(at) 1
#else
#define TURN(at) (rn[(at)/M]==(at)%M)
#endif
inline owing() { if :: j==S -> k=0; do :: k<S && row[k]==0 -> k++ :: else -> break od; j=k; k=0 :: else fi }
inline announced() {
  if :: j==S -> h=0; do :: h<nh && !(TURN(hl[h]) && !FAILS(hl[h])) -> h++ :: else -> break od;
               if :: h<nh -> j=hl[h]/M :: else fi; h=0
     :: else fi }
/* the first of the line, for as long as there is something for it */
inline match() {
  do :: nl==0 -> break
     :: else -> j=S;
        if :: ln[0]>0 -> j=ln[0]-1
           :: else ->
#ifndef OWED_UNSEEN
              owing();
#endif
              announced()
        fi;
        if :: j==S -> break :: else -> leave_line(0); take(j,0) fi od; j=0 }
inline leave_line(at) { nl--; h=at; do :: h<nl -> ln[h]=ln[h+1]; h++ :: else -> break od; ln[nl]=0; h=0 }
inline receive_any() {
  rc++;
  if :: stale -> stale=0 :: !stale && rmem==0 -> skip :: else -> ln[nl]=0; nl++; match() fi }
inline receive_from(s) {
  rc++;
  if :: !HAS(rmem,s) -> stale=0
     :: else ->
#ifdef LINE_PASSED
        take(s,nl)
#else
        ln[nl]=1+s; nl++; match()
#endif
  fi }
inline refuse(s,num,answers) {
  if :: rs[AT(s,num)]==RUN -> rs[AT(s,num)]=REFD; give(re,s,ri[AT(s,num)],ERR) :: else fi;
  gr[AT(s,num)]=1+(answers); TELL(s,REF,num,(answers)) }
/* by its own program */
inline give_up(s,num) { unt[AT(s,num)]=(ga[AT(s,num)]==0); refuse(s,num,rss) }
inline receiver_hears(s) {
  q[Q(s,rv)]?ty,n,x;
#ifdef SETTLED_LEAST
  if :: ty==ASK && rss<x -> x=rss :: else fi;
#endif
  if :: ty==ANN && n<rn[s] -> if :: rs[AT(s,n)]==RUN && ga[AT(s,n)]==0 -> ga[AT(s,n)]=1+x :: else fi
     :: ty==ANN && n>=rn[s] -> if :: ga[AT(s,n)]==0 && gr[AT(s,n)]==0 -> ga[AT(s,n)]=1+x; list(AT(s,n)); match() :: else fi
     :: ty==TOLD -> unt[AT(s,n)]=0
     :: ty==ASK && n<rn[s] -> if :: rs[AT(s,n)]==RUN -> refuse(s,n,x) :: else fi
     :: ty==ASK && n>=rn[s] -> if :: gr[AT(s,n)]==0 -> refuse(s,n,x); if :: ga[AT(s,n)]==0 -> list(AT(s,n)) :: else fi; match() :: else fi
  fi; ty=0; n=0; x=0 }
inline receiver_answered() {
  j=0; do :: j<S ->
    n=0; do :: n<M ->
      if :: n>=rn[j] && SKIPS(gr[AT(j,n)],rss) -> rn[j]=n+1; gr[AT(j,n)]=0; ga[AT(j,n)]=0; unlist(AT(j,n)) :: else fi; n++
    :: else -> break od; n=0;
    CLEAR(row[j]); rk[j]=0; j++
  :: else -> break od; j=0;
  rss++; re++; vt = vt & ~B(S) }
inline receiver_installs() {
  got=0; x=0; j=0;
  do :: j<S ->
    n=0; do :: n<M ->
      if :: rs[AT(j,n)]==RUN -> assert(dec[AT(j,n)]==ERR); give(re,j,ri[AT(j,n)],ERR); got=1
         :: rs[AT(j,n)]==NONE && n>=rn[j] -> assert(dec[AT(j,n)]!=OK); OWE(row[j],dec[AT(j,n)])
         :: else -> assert((arg&ADMITS) || rs[AT(j,n)]==NONE || dec[AT(j,n)]==(rs[AT(j,n)]==FIN -> OK : ERR))
      fi;
      rs[AT(j,n)]=NONE; ri[AT(j,n)]=0; unt[AT(j,n)]=0; ga[AT(j,n)]=0; gr[AT(j,n)]=0; n++
    :: else -> break od; n=0;
    if :: HAS(rmem,j) && !HAS(arg,j) -> x=1 :: else fi;
    if :: !HAS(arg,j) -> row[j]=0 :: else fi;
    drain(q[Q(j,rv)]); rn[j]=0; j++
  :: else -> break od; j=0;
  do :: nh>0 -> nh--; hl[nh]=0 :: else -> break od;
  rv++; rss=0; frz = frz & ~B(S); rmem = arg & ALL;
  n=0; do :: n<nl ->
    if :: ln[n]>0 && !HAS(rmem,ln[n]-1) -> leave_line(n); got=1
#ifndef ANY_NOLOSS
       :: ln[n]==0 && x==1 -> leave_line(n); got=1
#endif
#ifndef ANY_UNNAMED
       :: ln[n]==0 && x==0 && (arg&NAMED) -> leave_line(n); assert((rmem & vt)==rmem && c_expr { (owes() == 0) })
#endif
       :: ln[n]>0 && HAS(rmem,ln[n]-1) && VOTER(arg)==ln[n] -> leave_line(n)
       :: else -> n++ fi
  :: else -> break od; n=0;
  stale = (stale || x) && !got; got=0; x=0;
  match() }
inline receiver_obeys() {
  mc[S]?ty,arg;
  if :: ty==FREEZE -> frz = frz | B(S); REPORT(S)
     :: ty==VIEW -> receiver_installs(); if :: arg&ADMITS -> receiver_answered(); rss=0 :: else fi
     :: ty==ANSWER -> receiver_answered()
  fi; ty=0; arg=0 }

/* ---- master ---- */

inline send_all(t,m) { j=0; do :: j<S -> if :: HAS(surv,j) && !HAS(dead,j) -> assert(nfull(mc[j])); mc[j]!t,m :: else fi; j++ :: else -> break od;
  assert(nfull(mc[S])); mc[S]!t,m; j=0 }
inline count() { nblocked++; assert(nblocked<=S*KS+RC) }
inline freeze() { ph=1; acks=0; send_all(FREEZE,surv) }
inline decide() {
  j=0; do :: j<S*M ->
    if :: rs[j]==FIN -> dec[j]=OK
       :: rs[j]!=FIN && (gr[j]>0 || rs[j]==RUN || (HAS(surv,j/M) && st[j]!=NONE)) -> dec[j]=ERR
       :: else -> dec[j]=NONE fi; j++
  :: else -> break od; j=0;
  ph=0; acks=0; send_all(VIEW,surv|(blk==NAMED -> NAMED : blk*8)); blk=0 }
inline answer() {
  asked=0;
  if :: send_all(ANSWER,0)
     :: nadm<ADM && c_expr { (installed() > 0) } -> nadm++; j=0; do :: j<S*M -> dec[j]=NONE; j++ :: else -> break od; j=0; send_all(VIEW,surv|ADMITS) fi }

#ifdef VOTE_UNTOLD
#define TOLD 1
#else
#define TOLD c_expr { (told() > 0) }
#endif
#ifdef VOTE_PENDING
#define CALLS_ENDED 1
#else
#define CALLS_ENDED c_expr { (r_open() == 0) }
#endif
#define QUIET c_expr { (quiet() > 0) }  /* SUSPECT_WORD heartbeats have passed */

active proctype all()
{
  do
  /* programs of sources */
  :: atomic { PICK(sends); launch(i); i=0 }
  :: atomic { PICK(votes); vote(i); i=0 }
  :: atomic { ngive<GIVE && PICK(asks); ngive++; st[i]=ASKED; n=i%M; i=i/M; SAY(i,ASK,n,ss[i]); n=0; i=0 }
  /* their sessions */
  :: atomic { PICK(hears); source_hears(i); i=0 }
  :: atomic { PICK(obeys); source_obeys(i); i=0 }
  /* the receiver's program */
  :: atomic { rc<RC && re<U && !HAS(vt|frz,S) && c_expr { (r_open() < W) } -> receive_any() }
  :: atomic { rc<RC && re<U && !HAS(vt|frz,S) && c_expr { (r_open() < W) } -> if :: i=0 :: i=S-1 fi; receive_from(i); i=0 }
  :: atomic { c_expr { (r_votes() > 0) } && CALLS_ENDED && TOLD -> vote(S) }
  :: atomic { ngive<GIVE && !HAS(frz,S) && PICK(gives); ngive++;
#ifdef ANY_GIVEUP
     rs[i]=REFD; give(re,i/M,ri[i],ERR); i=0 }
#else
     n=i%M; i=i/M; give_up(i,n); n=0; i=0 }
#endif
  :: atomic { ngive<GIVE && !HAS(frz,S) && PICK(in_line); ngive++; leave_line(i); i=0; match() }
  /* its session */
  :: atomic { !HAS(frz,S) && PICK(holds);
     assert(ga[i]==1+ri[i]); rs[i]=FIN; n=i%M; i=i/M; give(re,i,ri[AT(i,n)],OK); TELL(i,HOLD,n,0); n=0; i=0 }
  :: atomic { !HAS(frz,S) && PICK(heard); receiver_hears(i); i=0 }
  :: atomic { nempty(mc[S]) -> receiver_obeys() }
  /* the master */
  :: atomic { ph && (acks&(surv|B(S)))==(surv|B(S)) -> decide() }
  :: atomic { !ph && asked==(surv|B(S)) -> answer() }
#ifndef BLOCKED_NOT
  :: atomic { !ph && QUIET && c_expr { (blocked() > 0) } -> count(); freeze() }
  :: atomic { !ph && QUIET && PICK(waits_for); blk=1+i; i=0; count(); freeze() }
#endif
#ifndef ANY_UNTOLD
  :: atomic { !ph && QUIET && c_expr { (any_blocked() > 0) } -> blk=NAMED; count(); freeze() }
#endif
  /* faults */
  :: atomic { !ph && ncut<CUT -> ncut++; freeze() }
  :: atomic { ncrash<CRASH && PICK(dies); ncrash++; dead = dead|B(i); drain(a[2*i]); drain(a[2*i+1]); drain_master(i);
     if :: skip :: drain(q[2*i]); drain(q[2*i+1]) fi; i=0 }
  :: atomic { (surv&dead)!=0 -> surv = surv & ~dead; asked = asked & ~dead; blk=0; freeze() }
  :: atomic { nagain<AGAIN && PICK(again); nagain++; say_again(i); i=0 }
  :: timeout -> break
  od;
  assert(c_expr { (over() > 0) })
}
