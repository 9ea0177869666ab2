/**
 * An element and where answers come from -> a conversation in that element: questions, answers as they come, tools as they run. The page of
 * `onpolicy serve` and the window of the Electron template show it.
 */
import type { ChatCompletionChunk } from '../../protocol/index.ts';
import { AnswerReader } from './answer.ts';
import { AnswerView } from './answer-view.ts';
import { Composer } from './composer.ts';
import { iconButton, make } from './elements.ts';
import { type AssistantTurn, newAnswer, type ShownCall, type Turn, type UserTurn } from './turns.ts';
import { UserView } from './user-view.ts';

export { toMessages } from './turns.ts';

/** A tool that the page runs itself. */
export type PageTool = {
  readonly name: string;
  /** Takes the arguments as the model wrote them, which may be no JSON. An error that it throws is the result. */
  readonly run: (text: string, signal: AbortSignal) => string | Promise<string>;
};

/** The parts of the page that a conversation uses. */
export type ChatOptions = {
  /** Answers the turns. The last one is a question, or an answer whose calls have their results. */
  readonly answer: (turns: readonly Turn[], signal: AbortSignal) => AsyncIterable<ChatCompletionChunk>;
  /** Called with all turns after each question and each answer. Their objects stay the same. */
  readonly changed?: (turns: readonly Turn[]) => void;
  /** Returns the tools that the page runs. The user gives the results of others. */
  readonly tools?: () => readonly PageTool[];
  /** Returns further buttons below an answer. */
  readonly buttons?: (turn: AssistantTurn) => readonly Node[];
  /** Says what the user can do about an answer that reached its limit of tokens. */
  readonly limitHelp?: string;
  /** The text of an empty conversation. */
  readonly greeting?: string;
};

/** Most answers after each other without a word of the user, so that tools cannot run for ever. */
const MOST_ROUNDS = 20;

/** Pixels from the end at which a reader still follows the text. */
const AT_END = 60;

export class Chat {
  readonly #options: ChatOptions;
  readonly #scroller = make('div', { className: 'chat-scroller', tabIndex: -1 });
  readonly #list = make('ol', { className: 'chat-turns', role: 'log', ariaLabel: 'Conversation' });
  readonly #greeting = make('p', { className: 'chat-greeting' });
  readonly #toEnd = iconButton('down', 'To the end', () => this.#follow(true));
  readonly #composer: Composer;
  #turns: Turn[] = [];
  #views: (UserView | AnswerView)[] = [];
  #running: AbortController | null = null;
  #isAtEnd = true;

  constructor(root: HTMLElement, options: ChatOptions) {
    this.#options = options;
    this.#composer = new Composer({
      ask: (text, images) => this.ask(text, images),
      stop: () => this.stop(),
      editLast: () =>
        (this.#views.findLast((view) => view instanceof UserView) as UserView | undefined)?.edit(),
    });
    this.#greeting.textContent = options.greeting ?? 'Ask something.';
    this.#toEnd.classList.add('chat-to-end');
    this.#toEnd.hidden = true;
    this.#scroller.append(this.#greeting, this.#list);
    this.#scroller.addEventListener('scroll', () => this.#onScroll());
    root.classList.add('chat');
    root.append(this.#scroller, make('div', { className: 'chat-foot' }, this.#toEnd, this.#composer.element));
    root.addEventListener('keydown', ({ key }) => key === 'Escape' && this.stop());
  }

  /** True while an answer comes or a tool runs. */
  get isBusy(): boolean {
    return this.#running !== null;
  }

  /** Shows another conversation. A running answer stops. */
  setTurns(turns: readonly Turn[]): void {
    this.stop();
    this.#turns = [...turns];
    this.#views = turns.map((turn) => this.#viewOf(turn));
    this.#list.replaceChildren(...this.#views.map(({ element }) => element));
    this.refresh();
    this.#greeting.hidden = turns.length > 0;
    this.#follow(true);
  }

  /** Asks, unless an answer is running. Returns true if it does. */
  ask(text: string, images: readonly string[] = []): boolean {
    if (this.isBusy) return false;
    this.#add({ role: 'user', text, images });
    void this.#answer();
    return true;
  }

  /** Stops the running answer. What has come of it stays. */
  stop(): void {
    this.#running?.abort();
    this.#running = null;
  }

  /** Offers images below the conversation, or not. */
  setImages(takesImages: boolean): void {
    this.#composer.setImages(takesImages);
  }

  /** Shows all answers that have ended again. */
  refresh(): void {
    for (const view of this.#views)
      if (view instanceof AnswerView && view.element.ariaBusy !== 'true') view.show(null);
  }

  focus(): void {
    this.#composer.focus();
  }

  #add(turn: Turn): void {
    const view = this.#viewOf(turn);
    this.#turns.push(turn);
    this.#views.push(view);
    this.#list.append(view.element);
    this.#greeting.hidden = true;
    this.#follow(true);
  }

  #viewOf(turn: Turn): UserView | AnswerView {
    if (turn.role === 'user') return new UserView(turn, { change: (text) => this.#change(turn, text) });
    return new AnswerView(turn, {
      retry: () => this.#retry(turn),
      answerCall: (call, result) => this.#answerCall(turn, call, result),
      buttons: (shown) => this.#options.buttons?.(shown) ?? [],
      limitHelp: this.#options.limitHelp ?? '',
    });
  }

  /** Removes a turn and all later ones. */
  #cut(turn: Turn): void {
    const at = this.#turns.indexOf(turn);
    this.stop();
    this.#turns.length = at;
    for (const { element } of this.#views.splice(at)) element.remove();
  }

  #change(turn: UserTurn, text: string): void {
    this.#cut(turn);
    this.ask(text, turn.images);
    this.focus();
  }

  #retry(turn: AssistantTurn): void {
    this.#cut(turn);
    void this.#answer();
    this.focus();
  }

  #answerCall(turn: AssistantTurn, call: ShownCall, result: string): void {
    if (this.isBusy) return;
    call.result = result;
    this.refresh();
    this.#options.changed?.(this.#turns);
    if (turn === this.#turns.at(-1) && turn.calls.every((one) => one.result !== null)) void this.#answer();
    this.focus();
  }

  /** Answers the turns, and goes on while tools of the page give all the results that the model asks for. */
  async #answer(): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running = controller;
    this.#composer.setBusy(true);
    this.#options.changed?.(this.#turns);
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const turn = newAnswer();
      const wantsMore = await this.#round(turn, signal);
      this.#options.changed?.(this.#turns);
      if (!wantsMore || signal.aborted) break;
    }
    if (this.#running !== controller && this.#running !== null) return; // another answer has begun
    this.#running = null;
    this.#composer.setBusy(false);
  }

  /** Reads one answer and runs its tools. Returns true if all calls have results, so that the model is to go on. */
  async #round(turn: AssistantTurn, signal: AbortSignal): Promise<boolean> {
    const asked = [...this.#turns];
    this.#add(turn);
    const view = this.#views.at(-1) as AnswerView;
    const reader = new AnswerReader(turn);
    const stopDrawing = this.#draw(() => view.show(reader.ms, reader.progress));
    try {
      for await (const chunk of this.#options.answer(asked, signal)) reader.add(chunk);
    } catch (error) {
      turn.problem = signal.aborted ? null : (error as Error).message;
    }
    if (signal.aborted) turn.problem = 'Stopped.';
    reader.end();
    const runs = turn.problem === null ? this.#startTools(turn, view, signal) : [];
    stopDrawing();
    view.show(null);
    this.#follow();
    await Promise.all(runs);
    this.#follow();
    return (
      turn.problem === null && turn.calls.length > 0 && turn.calls.every(({ result }) => result !== null)
    );
  }

  /** Starts the tools of the page that an answer calls. */
  #startTools(turn: AssistantTurn, view: AnswerView, signal: AbortSignal): Promise<void>[] {
    const tools = this.#options.tools?.() ?? [];
    return turn.calls.flatMap((call) => {
      const tool = tools.find(({ name }) => name === call.name);
      if (!tool) return [];
      call.isRunning = true;
      const run = async (): Promise<string> => await tool.run(call.arguments, signal);
      const ended = run().catch((error: Error) => `error: ${error.message}`);
      return ended.then((result) => {
        call.isRunning = false;
        if (!signal.aborted) call.result = result;
        view.show(null);
      });
    });
  }

  /** Draws with each frame until the returned function is called. */
  #draw(show: () => void): () => void {
    let isEnded = false;
    const frame = (): void => {
      if (isEnded) return;
      show();
      this.#follow();
      requestAnimationFrame(frame);
    };
    frame();
    return () => {
      isEnded = true;
    };
  }

  /** Scrolls to the end if the reader is there, or in any case. */
  #follow(always = false): void {
    if (always) this.#isAtEnd = true;
    if (this.#isAtEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #onScroll(): void {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
    this.#isAtEnd = scrollTop + clientHeight > scrollHeight - AT_END;
    this.#toEnd.hidden = this.#isAtEnd;
  }
}
