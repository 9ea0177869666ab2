/** Results of the reasoning parser -> events. */
export type ReasoningEvent =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'content'; readonly text: string };

/** The state of an answer: undecided, in its reasoning, or in its content. */
export type ReasoningPhase = 'start' | 'reasoning' | 'content';

/** Collects the events of one answer. */
export class ReasoningSink {
  phase: ReasoningPhase = 'start';
  #events: ReasoningEvent[] = [];

  emit(kind: ReasoningEvent['kind'], text: string): void {
    if (text === '') return;
    this.phase = kind;
    this.#events.push({ kind, text });
  }

  takeEvents(): ReasoningEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
