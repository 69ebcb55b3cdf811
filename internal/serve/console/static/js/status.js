// What outcomes are called, and the tone that each is shown in. Pure.

const outcomes = {
  ok: ['ok', 'OK'],
  tool_error: ['failed', 'Tool error'],
  timeout: ['timeout', 'Timed out'],
  cancelled: ['idle', 'Cancelled'],
  denied: ['denied', 'Denied'],
  oom: ['limit', 'Out of memory'],
  pids_limit: ['limit', 'Process limit'],
  output_limit: ['limit', 'Output limit'],
  cpu_limit: ['limit', 'CPU limit'],
  crashed: ['failed', 'Crashed'],
  no_result: ['failed', 'No result'],
  start_failed: ['failed', 'Start failed'],
  protocol_error: ['failed', 'Protocol error'],
  policy_violation: ['limit', 'Policy violation'],
  collateral: ['idle', 'Collateral'],
  unkillable: ['failed', 'Unkillable'],
  overloaded: ['limit', 'Overloaded'],
  invalid_args: ['failed', 'Invalid arguments'],
  network_limit: ['limit', 'Network limit'],
  lost: ['failed', 'Lost'],
  open: ['open', 'Open'],
};

/** statuses are all outcomes of calls. */
export const statuses = Object.keys(outcomes).filter((s) => s !== 'open');

/** tones are the groups that outcomes are counted in, in the order of charts. */
export const tones = ['ok', 'failed', 'timeout', 'limit', 'denied', 'idle'];

export const toneNames = {
  ok: 'OK', failed: 'Failed', timeout: 'Timed out', limit: 'Limit', denied: 'Denied', idle: 'Cancelled', open: 'Open',
};

export const toneOf = (status) => outcomes[status]?.[0] ?? 'failed';
export const nameOf = (status) => outcomes[status]?.[1] ?? status;

/** icons of the tones; see icons.js. */
export const iconOf = { ok: 'check', failed: 'cross', timeout: 'clock', limit: 'gauge', denied: 'shield', idle: 'slash', open: 'dots' };

/** byTone adds up counts of outcomes. */
export function byTone(counts) {
  const sum = {};
  for (const [status, n] of Object.entries(counts)) sum[toneOf(status)] = (sum[toneOf(status)] ?? 0) + n;
  return sum;
}

const reasons = {
  deadline: 'the deadline passed', idle: 'it sent nothing for too long', total: 'its total time was used up',
  user: 'by a human', headless: 'nobody is there to ask', policy: 'by the operator’s policy',
  turn_budget: 'the turn’s budget is used up', repeat: 'the same call again and again', parent: 'with its parent turn',
  disconnect: 'its client went away', shutdown: 'the daemon ended', panic: 'it panicked',
};

/** What a reason means depends on the outcome; any is that of all others. */
const ofOutcome = {
  timeout: { denied: 'nobody answered in time', invalid_args: 'the timeout asked for is not valid', any: 'the turn’s deadline passed' },
  error: { tool_error: '', any: 'the host failed' }, // that a tool failed is in the outcome's name
};

/** reasonOf is an outcome's reason in words, or nothing; unknown ones stand for themselves. */
export function reasonOf(reason, status = '') {
  const words = ofOutcome[reason];
  return words ? words[status] ?? words.any : reasons[reason] ?? reason;
}

const kinds = {
  approval: 'Approval', confirm: 'Confirm', password: 'Password', device_code: 'Device code',
  questionnaire: 'Question', escalation: 'Escalation',
};

export const kindOf = (kind) => kinds[kind] ?? kind;
