/** A turn of the model -> its reasoning, text, calls of tools and times, shown while they come. */
import type { PromptProgress } from '../../protocol/index.ts';
import { CallView } from './call-view.ts';
import { copyButton, iconButton, make } from './elements.ts';
import { Markdown } from './markdown.ts';
import type { AssistantTurn, ShownCall } from './turns.ts';

/** Actions of the user on an answer. */
export type AnswerActions = {
  /** Asks the same question again. */
  readonly retry: () => void;
  /** Gives the result of a call that no tool of the page answers. */
  readonly answerCall: (call: ShownCall, result: string) => void;
  /** Returns further buttons below the answer. */
  readonly buttons: (turn: AssistantTurn) => readonly Node[];
  /** Says what the user can do about an answer that reached its limit of tokens. May be empty. */
  readonly limitHelp: string;
};

export class AnswerView {
  readonly element = make('li', { className: 'chat-turn chat-answer' });
  readonly #turn: AssistantTurn;
  readonly #actions: AnswerActions;
  readonly #summary = make('summary');
  readonly #reasoning = make('div', { className: 'chat-reasoning-text' });
  readonly #thinking = make(
    'details',
    { className: 'chat-reasoning', hidden: true },
    this.#summary,
    this.#reasoning,
  );
  readonly #waitingText = make('span');
  readonly #bar = make('progress', { ariaLabel: 'The part of the prompt that is read', hidden: true });
  readonly #waiting = make('div', { className: 'chat-waiting', hidden: true }, this.#waitingText, this.#bar);
  readonly #text = new Markdown();
  readonly #calls = make('div', { className: 'chat-calls' });
  readonly #note = make('p', { className: 'chat-note', hidden: true });
  readonly #footer = make('div', { className: 'chat-footer', hidden: true });
  readonly #callViews: CallView[] = [];

  constructor(turn: AssistantTurn, actions: AnswerActions) {
    this.#turn = turn;
    this.#actions = actions;
    this.element.append(
      this.#thinking,
      this.#waiting,
      this.#text.element,
      this.#calls,
      this.#note,
      this.#footer,
    );
  }

  /** Shows the turn as it is now. `ms` is the time since the request, or null once the answer has ended. */
  show(ms: number | null, progress: PromptProgress | null = null): void {
    const { text, reasoning } = this.#turn;
    this.element.ariaBusy = String(ms !== null);
    this.#showReasoning(ms);
    this.#showWaiting(
      ms !== null && text === '' && reasoning === '' && this.#turn.calls.length === 0 ? ms : null,
      progress,
    );
    this.#text.show(text);
    this.#turn.calls.forEach((call, i) => {
      this.#callViews[i] ??= this.#addCall(call);
      this.#callViews[i].show(ms === null);
    });
    const note = ms === null ? noteOf(this.#turn, this.#actions.limitHelp) : null;
    this.#note.hidden = note === null;
    this.#note.textContent = note;
    this.#footer.hidden = ms !== null;
    if (ms === null) this.#showFooter();
  }

  #addCall(call: ShownCall): CallView {
    const view = new CallView(call, (result) => this.#actions.answerCall(call, result));
    this.#calls.append(view.element);
    return view;
  }

  #showReasoning(ms: number | null): void {
    const { reasoning, reasoningMs, timings } = this.#turn;
    this.#thinking.hidden = reasoning === '';
    if (reasoning === '') return;
    const isRunning = reasoningMs === null && ms !== null;
    const soFar = isRunning ? ms - (timings?.firstMs ?? ms) : reasoningMs!;
    this.#summary.textContent = `${isRunning ? 'Thinking' : 'Thought for'} ${seconds(soFar)}`;
    this.#thinking.classList.toggle('chat-running', isRunning);
    if (this.#reasoning.textContent !== reasoning) this.#reasoning.textContent = reasoning;
  }

  #showWaiting(ms: number | null, progress: PromptProgress | null): void {
    this.#waiting.hidden = ms === null;
    if (ms === null) return;
    const tokens = progress ? ` ${count(progress.processed)} of ${count(progress.total)} tokens` : '';
    this.#waitingText.textContent = `Reading${tokens}${ms < 1000 ? '' : `, ${seconds(ms)}`}`;
    this.#bar.hidden = progress === null;
    if (progress) Object.assign(this.#bar, { max: progress.total, value: progress.processed });
  }

  #showFooter(): void {
    const { text } = this.#turn;
    this.#footer.replaceChildren(
      ...(text === '' ? [] : copyButton('Copy the answer', () => text)),
      iconButton('retry', 'Answer again', this.#actions.retry),
      ...this.#actions.buttons(this.#turn),
      make('span', { className: 'chat-timings' }, timingsOf(this.#turn)),
    );
  }
}

/** Returns what is to be said about the end of an answer, or null. */
function noteOf(
  { finish, problem, text, reasoning, calls }: AssistantTurn,
  limitHelp: string,
): string | null {
  if (problem !== null) return problem;
  if (finish !== 'length')
    return finish !== null && text === '' && reasoning === '' && calls.length === 0
      ? 'The answer is empty.'
      : null;
  return text === '' && reasoning !== ''
    ? `The answer ended while thinking: it reached the limit of tokens. ${limitHelp}`.trimEnd()
    : 'The answer was cut off at the limit of tokens.';
}

/** Returns the facts about an answer in a line. */
function timingsOf({ model, timings }: AssistantTurn): string {
  if (!timings) return model ?? '';
  const { firstMs, totalMs, promptTokens, cachedTokens, tokens, tokensPerSecond } = timings;
  const cached = cachedTokens ? `, ${count(cachedTokens)} of them cached` : '';
  const seen =
    tokens !== null && firstMs !== null && tokens > 1 ? ((tokens - 1) * 1000) / (totalMs - firstMs) : 0;
  const rate = tokensPerSecond ?? seen;
  return [
    model,
    promptTokens === null ? null : `prompt ${count(promptTokens)} tokens${cached}`,
    firstMs === null ? null : `first after ${seconds(firstMs)}`,
    tokens === null ? null : `${count(tokens)} ${tokens === 1 ? 'token' : 'tokens'}`,
    rate > 0 && Number.isFinite(rate) ? `${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s` : null,
  ]
    .filter((part) => part !== null)
    .join(' · ');
}

function count(value: number): string {
  return value.toLocaleString('en');
}

function seconds(ms: number): string {
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}
