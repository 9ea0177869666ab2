/** A trajectory -> a card with its messages and its sampled tokens in colour. */
import { make, short } from './elements.js';

/** Probability below which a token has the full colour: e^-4, about 2 %. */
const RAREST = -4;
/** Advantage with the full colour. */
const STRONGEST = 1.5;

/**
 * @param {any} trajectory
 * @param {{ coloring: string, from: number, title: string }} options `from`: index of the first entry to show
 */
export function conversationCard(trajectory, { coloring, from, title }) {
  const { reward, advantage, metrics, entries, tools, version, more } = trajectory;
  const card = make(
    'article',
    { className: 'card', tabIndex: 0, 'aria-label': `${title}, reward ${short(reward)}` },
    make(
      'header',
      {},
      make('strong', {}, `reward ${short(reward)}`),
      make(
        'span',
        { className: 'quiet' },
        `${title} · advantage ${advantage > 0 ? '+' : ''}${short(advantage)}` +
          (version === null ? '' : ` · sampled by step ${version}`),
      ),
    ),
  );
  const own = Object.entries(metrics);
  if (own.length > 0)
    card.append(
      make('p', { className: 'quiet' }, own.map(([name, value]) => `${name} ${show(value)}`).join(' · ')),
    );
  if (tools.length > 0) card.append(make('p', { className: 'quiet' }, `tools: ${tools.join(', ')}`));
  for (const entry of entries.slice(from)) card.append(...entryParts(entry, advantage, coloring));
  for (const [i, history] of more.entries()) {
    const further = make('details', {}, make('summary', {}, `Further conversation ${i + 1}`));
    for (const entry of history) further.append(...entryParts(entry, advantage, coloring));
    card.append(further);
  }
  return card;
}

/** An attempt that failed. @param {{ type: string, message: string }} failure */
export function failureCard({ type, message }) {
  return make(
    'article',
    { className: 'card failure', tabIndex: 0, 'aria-label': `failed: ${type}` },
    make('header', {}, make('strong', {}, 'failed'), make('span', { className: 'quiet' }, type)),
    make('p', { className: 'text' }, message),
  );
}

/** @param {any} entry @param {number} advantage @param {string} coloring */
export function entryParts({ role, text, tokens, logprobs }, advantage, coloring) {
  const body = make('p', { className: 'text' });
  if (tokens)
    body.append(
      ...tokens.map((/** @type {string} */ token, /** @type {number} */ i) =>
        tokenSpan(token, logprobs[i], advantage, coloring),
      ),
    );
  else body.append(text);
  return [make('p', { className: 'role' }, role), body];
}

/** @param {string} token @param {number | null | undefined} thousandths @param {number} advantage @param {string} coloring */
function tokenSpan(token, thousandths, advantage, coloring) {
  const span = make('span', {}, token);
  const logprob = typeof thousandths === 'number' ? thousandths / 1000 : null;
  if (logprob !== null)
    span.title = `log-probability ${logprob.toFixed(3)} (${(100 * Math.exp(logprob)).toFixed(1)} %)`;
  if (coloring === 'advantage' && advantage !== 0) {
    const strength = Math.min(1, Math.abs(advantage) / STRONGEST);
    span.style.background = `rgba(var(${advantage > 0 ? '--good' : '--bad'}), ${(0.08 + 0.4 * strength).toFixed(2)})`;
  }
  if (coloring === 'logprob' && logprob !== null)
    span.style.background = `rgba(var(--rare), ${(0.6 * Math.min(1, logprob / RAREST)).toFixed(2)})`;
  return span;
}

/** @param {unknown} value */
function show(value) {
  return typeof value === 'object' ? JSON.stringify(value) : short(value);
}
