// A client and a scripted service -> what comes of each thing that an agent meets.
import { OnpolicyError } from '../../../dist/index.js';

const LOOP = 'Run the three steps.';
const FULL = 'Now do the rest of it.';
const SUMMARY = '<summary>Four stories were told. The rest is to be done.</summary>';
const REMEMBERED = 'My number is 4711.';

/** Each returns what went wrong; empty: nothing. `ask` runs the client and gives `{ code, text, ms }`. */
export const CASES = {
  question: async ({ ask, service }) => {
    service.reply = () => ({ text: 'The answer is 42.' });
    return unless(await ask('What is the answer?'), 'The answer is 42.');
  },
  'tool loop': async ({ ask, service, client }) => {
    service.reply = ({ messages, tools }) => {
      const results = resultsSince(messages, LOOP);
      if (results === null || !tools?.length) return { text: 'Three steps' }; // it asks for a title
      const step = results.length + 1;
      if (step <= 3) return { text: `Step ${step}.`, calls: [client.call(`echo done-${step}`)] };
      const are = results.every((text, i) => text.includes(`done-${i + 1}`));
      return { text: are ? 'All steps ran.' : `Wrong results: ${results.join(' | ')}` };
    };
    return unless(await ask(LOOP), 'All steps ran.');
  },
  resumed: async ({ ask, service }) => {
    service.reply = () => ({ text: 'I keep that in mind.' });
    const first = unless(await ask(REMEMBERED), 'I keep that in mind.');
    service.reply = ({ messages }) => ({
      text: textOf(messages).includes(REMEMBERED) ? 'It is 4711.' : 'I do not know.',
    });
    return first || unless(await ask('What is my number?', { resumes: true }), 'It is 4711.');
  },
  'full context': async ({ ask, service, client }) => {
    service.reply = () => ({ text: 'A long story. '.repeat(3500) });
    for (let turn = 0; turn < 4; turn++) await ask(`Tell me story ${turn}.`, { resumes: turn > 0 });
    service.reply = ({ messages }) => ({ text: isSummary({ messages }) ? SUMMARY : 'The rest is done.' });
    const before = service.seen.length;
    service.contextSize = Math.max(...service.seen.map(({ tokens }) => tokens)) + 9000;
    service.isExempt = isSummary;
    let { text } = await ask(FULL, { resumes: true });
    const since = () => service.seen.slice(before);
    const isTold = () => since().some(({ error }) => error?.code === 'CONTEXT_OVERFLOW');
    if (client.id === 'ai')
      return text.includes('the context is full') ? '' : `it does not know why: ${text.slice(-300)}`;
    if (!since().some(({ request }) => isSummary(request)))
      ({ text } = await ask(FULL, { resumes: true, contextSize: service.contextSize })); // Codex must know the size
    if (!isTold()) return 'it shortened the conversation before it was full';
    if (!since().some(({ request }) => isSummary(request))) return `it began no summary: ${text.slice(-300)}`;
    const last = service.seen.at(-1);
    const hasGoneOn = !last.error && !isSummary(last.request) && textOf(last.request.messages).includes(FULL);
    return hasGoneOn ? '' : `it did not go on: ${text.slice(-300)}`;
  },
  'wrong key': async ({ ask, server }) => {
    const before = server.refused;
    const { code, ms, text } = await ask('What is the answer?', { key: 'wrong' });
    const tries = server.refused - before;
    if (ms > 60_000 || tries > 3) return `it tried for ${Math.round(ms / 1000)} s, ${tries} times`;
    return /401|key|auth|token/i.test(text) || code !== 0 ? '' : `it said ${text.slice(-200)}`;
  },
  'busy server': async ({ ask, service }) => {
    let left = 2;
    service.reply = () =>
      left-- > 0
        ? { error: new OnpolicyError('OVERLOADED', 'too many requests wait', { retryAfterMs: 1000 }) }
        : { text: 'The answer is 42.' };
    return unless(await ask('What is the answer?'), 'The answer is 42.');
  },
  'slow prompt': async ({ ask, service, slowMs }) => {
    service.reply = () => ({ text: 'The answer is 42.', readMs: slowMs });
    const asked = await ask('What is the answer?', { limitMs: 3 * slowMs + 120_000 });
    const prompts = service.seen.map(({ request }) => JSON.stringify(request.messages));
    if (new Set(prompts).size < prompts.length) return 'it asked the same again';
    return unless(asked, 'The answer is 42.');
  },
  abort: async ({ ask, service }) => {
    service.reply = () => ({ text: 'The answer is 42.', readMs: 60_000 });
    const before = service.aborted;
    const { ms } = await ask('What is the answer?', { interruptsAt: () => service.running > 0 });
    if (service.running > 0 || service.aborted === before) return 'the request went on';
    return ms < 30_000 ? '' : `it took ${Math.round(ms / 1000)} s to end`;
  },
};

function unless({ code, text }, expected) {
  return code === 0 && text.includes(expected) ? '' : `exit code ${code}: ${text.slice(-300)}`;
}

function textOf(messages) {
  return messages.map(({ content }) => contentOf(content)).join('\n');
}

function contentOf(content) {
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n');
}

/** The results of calls after the last message of the user that has this text. Returns null if there is no such message. */
function resultsSince(messages, text) {
  const at = messages.findLastIndex(
    ({ role, content }) => role === 'user' && contentOf(content).includes(text),
  );
  if (at < 0) return null;
  return messages.slice(at).flatMap(({ role, content }) => (role === 'tool' ? [contentOf(content)] : []));
}

/** Returns true if an agent asks for a summary of the conversation. */
function isSummary({ messages }) {
  const [first, last] = [messages[0], messages.at(-1)].map((message) => contentOf(message?.content));
  return /summar|handoff/i.test(last) || /summari[sz]/i.test(first.slice(0, 300));
}
