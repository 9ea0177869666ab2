/** A call of a tool -> its name, arguments and result, or a field for the result where the page has no such tool. */
import { fitHeight, make } from './elements.ts';
import { highlight } from './highlight.ts';
import type { ShownCall } from './turns.ts';

export class CallView {
  readonly element = make('details', { className: 'chat-call' });
  readonly #call: ShownCall;
  readonly #answer: (result: string) => void;
  readonly #name = make('code');
  readonly #state = make('span', { className: 'chat-state' });
  readonly #arguments = make('pre', { tabIndex: 0 });
  readonly #result = make('div', { className: 'chat-result' });
  #shown = '';

  constructor(call: ShownCall, answer: (result: string) => void) {
    this.#call = call;
    this.#answer = answer;
    this.element.append(make('summary', {}, this.#name, this.#state), this.#arguments, this.#result);
  }

  /** Shows the call as it is now. `isComplete`: its arguments are all there. */
  show(isComplete: boolean): void {
    const { name, arguments: text, result, isRunning = false } = this.#call;
    const state = JSON.stringify([isComplete, name, text, result, isRunning]);
    if (state === this.#shown) return; // a field that somebody types in stays
    this.#shown = state;
    this.#name.textContent = name;
    this.#arguments.replaceChildren(...highlight(indented(text), 'json'));
    this.#state.textContent = stateOf(this.#call, isComplete);
    this.element.classList.toggle('chat-running', !isComplete || isRunning);
    const isAsked = isComplete && result === null && !isRunning;
    if (isAsked) this.element.open = true;
    this.#result.replaceChildren(
      ...(isAsked ? this.#field() : result === null ? [] : [make('pre', { tabIndex: 0 }, result)]),
    );
  }

  #field(): Node[] {
    const area = make('textarea', {
      rows: 2,
      placeholder: 'Its result',
      ariaLabel: `The result of ${this.#call.name}`,
    });
    area.addEventListener('input', () => fitHeight(area));
    const send = (): void => this.#answer(area.value);
    area.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    return [
      area,
      make('button', { type: 'button', className: 'chat-main', onclick: send }, 'Send the result'),
    ];
  }
}

function stateOf({ result, isRunning = false }: ShownCall, isComplete: boolean): string {
  if (result !== null) return 'done';
  if (!isComplete) return 'is being called';
  return isRunning ? 'runs' : 'waits for its result';
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
