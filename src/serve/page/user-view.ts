/** A turn of the user -> its text and images, and a field to change the text. */
import { copyButton, fitHeight, iconButton, make } from './elements.ts';
import type { UserTurn } from './turns.ts';

/** Actions of the user on a turn of their own. */
export type UserActions = {
  /** Asks again with another text. All later turns go. */
  readonly change: (text: string) => void;
};

export class UserView {
  readonly element = make('li', { className: 'chat-turn chat-user' });
  readonly #turn: UserTurn;
  readonly #actions: UserActions;

  constructor(turn: UserTurn, actions: UserActions) {
    this.#turn = turn;
    this.#actions = actions;
    this.#show();
  }

  /** Opens the field with the text. */
  edit(): void {
    const area = make('textarea', { value: this.#turn.text, ariaLabel: 'Change the question' });
    const ask = (): void => {
      if (area.value.trim() !== '') this.#actions.change(area.value);
    };
    area.addEventListener('input', () => fitHeight(area));
    area.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        this.#show();
      }
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      ask();
    });
    const cancel = make('button', { type: 'button', onclick: () => this.#show() }, 'Cancel');
    const send = make('button', { type: 'button', className: 'chat-main', onclick: ask }, 'Ask again');
    this.element.classList.add('chat-editing');
    this.element.replaceChildren(area, make('div', { className: 'chat-actions' }, cancel, send));
    fitHeight(area);
    area.focus();
  }

  #show(): void {
    const { text, images } = this.#turn;
    const pictures = images.map((src) => make('img', { src, alt: 'An image of the question' }));
    const actions = [
      ...copyButton('Copy the question', () => text),
      iconButton('edit', 'Change the question', () => this.edit()),
    ];
    this.element.classList.remove('chat-editing');
    this.element.replaceChildren(
      ...(pictures.length > 0 ? [make('div', { className: 'chat-images' }, ...pictures)] : []),
      make('div', { className: 'chat-text' }, text),
      make('div', { className: 'chat-actions' }, ...actions),
    );
  }
}
