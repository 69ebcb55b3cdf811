// What the identity that this page acts for may do, by its roles. Pure; the daemon
// decides, and this spares people what it would refuse.

const has = (me, ...roles) => (me?.roles ?? []).some((role) => role === 'admin' || roles.includes(role));

/** seesTurns: its own, or everybody's. */
export const seesTurns = (me) => has(me, 'call', 'watch');

/** seesMore: questions of turns that it does not see. */
export const seesMore = (me) => has(me, 'approve') && !has(me, 'watch');

/** answers: some questions, at least. */
export const answers = (me) => has(me, 'approve');

/** mayAnswer: nobody answers for calls of their own, but for administrators. */
export const mayAnswer = (me, ask) => has(me) || (answers(me) && ask.owner !== me.identity);

/** waitingWords say for what a call waits that asks people. */
export const waitingWords = (me) => (me === null || answers(me) ? 'Waiting for you' : 'Waiting for an answer');
