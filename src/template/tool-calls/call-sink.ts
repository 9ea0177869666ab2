/** Results of a parser -> events: numbers the calls, assigns ids, and drops white space around calls. */
import type { ToolCallEvent } from './events.ts';

/** Input of the id factory. `written` is the id that the model wrote, in formats with ids. */
export type ToolCallIdInput = {
  readonly name: string;
  readonly index: number;
  readonly written: string | null;
};

/** Makes the id of a call. */
export type ToolCallIdFactory = (input: ToolCallIdInput) => string;

/** Thrown by parsers: the text is not a call, or the rest of an announced call is invalid. */
export const NOT_A_CALL = new Error('not a tool call');

/** Collects the events of one answer. */
export class CallSink {
  readonly #createId: ToolCallIdFactory;
  readonly #refused: Pick<ReadonlySet<string>, 'has'>;
  #events: ToolCallEvent[] = [];
  #count = 0;
  #isOpen = false;
  #hasArguments = false;
  #space = ''; // white space since the start or the last call; content only if more content follows
  #isBlank = true; // only white space since the start or the last call
  #isLineBlank = true;

  /** @param refused names of tools that must not be called */
  constructor(createId: ToolCallIdFactory, refused: Pick<ReadonlySet<string>, 'has'> = new Set()) {
    this.#createId = createId;
    this.#refused = refused;
  }

  /** Number of started calls. */
  get count(): number {
    return this.#count;
  }

  /** True between `start` and `end`. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** True if the line so far is white space only. */
  get isLineBlank(): boolean {
    return this.#isLineBlank;
  }

  content(text: string): void {
    if (text === '') return;
    const line = text.slice(text.lastIndexOf('\n') + 1);
    this.#isLineBlank = line.trim() === '' && (line.length < text.length || this.#isLineBlank);
    if (this.#isBlank && text.trim() === '') {
      this.#space += text;
      return;
    }
    this.#emitContent(this.#space + text);
    this.#space = '';
    this.#isBlank = false;
  }

  /** Starts a call. Throws `NOT_A_CALL` for a name that is refused. */
  start(name: string, written: string | null = null): void {
    if (this.#refused.has(name)) throw NOT_A_CALL;
    const index = this.#count++;
    this.#events.push({
      kind: 'call_start',
      index,
      id: this.#createId({ name, index, written }),
      name,
    });
    this.#isOpen = true;
    this.#hasArguments = false;
  }

  arguments(delta: string): void {
    if (delta === '') return;
    const index = this.#count - 1;
    const last = this.#events.at(-1);
    if (last?.kind === 'call_arguments' && last.index === index)
      this.#events[this.#events.length - 1] = { kind: 'call_arguments', index, delta: last.delta + delta };
    else this.#events.push({ kind: 'call_arguments', index, delta });
    this.#hasArguments = true;
  }

  end(): void {
    if (!this.#hasArguments) this.arguments('{}');
    this.#events.push({ kind: 'call_end', index: this.#count - 1 });
    this.#isOpen = false;
    this.#space = '';
    this.#isBlank = true;
    this.#isLineBlank = true;
  }

  /** Ends the open call, which is incomplete. `text` becomes content. */
  broken(text: string): void {
    const content = text === '' ? '' : this.#space + text;
    this.#events.push({ kind: 'call_broken', index: this.#count - 1, text: content });
    this.#isOpen = false;
    this.#space = '';
    this.#isBlank = false;
    this.#isLineBlank = false;
  }

  /** Ends the answer. Trailing white space is content only if no call precedes it. */
  finish(): void {
    if (this.#count === 0 && this.#space !== '') this.#emitContent(this.#space);
    this.#space = '';
  }

  takeEvents(): ToolCallEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #emitContent(text: string): void {
    const last = this.#events.at(-1);
    if (last?.kind === 'content')
      this.#events[this.#events.length - 1] = { kind: 'content', text: last.text + text };
    else this.#events.push({ kind: 'content', text });
  }
}
