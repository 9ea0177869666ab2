/** Keys, pasted and dropped files -> questions: a field for text, images beside it, and buttons to send and to stop. */
import { fitHeight, iconButton, make } from './elements.ts';

/** Functions that the field calls. */
export type ComposerActions = {
  /** Asks. Returns false if it cannot now; the field then keeps its text. */
  readonly ask: (text: string, images: readonly string[]) => boolean;
  readonly stop: () => void;
  /** Changes the last question: the arrow up in an empty field. */
  readonly editLast: () => void;
};

/** Forms of images that browsers show and models read. */
const IMAGES = 'image/png,image/jpeg,image/webp,image/gif,image/bmp';

export class Composer {
  readonly element = make('form', { className: 'chat-composer' });
  readonly #actions: ComposerActions;
  readonly #area = make('textarea', { rows: 1, placeholder: 'Ask something', ariaLabel: 'Question' });
  readonly #pictures = make('div', { className: 'chat-images', hidden: true });
  readonly #file = make('input', { type: 'file', accept: IMAGES, multiple: true, hidden: true });
  readonly #attach = iconButton('image', 'Add images', () => this.#file.click());
  readonly #send = iconButton('send', 'Send', () => this.#ask());
  readonly #stop = iconButton('stop', 'Stop', () => this.#actions.stop());
  #images: string[] = [];
  #takesImages = false;

  constructor(actions: ComposerActions) {
    this.#actions = actions;
    for (const button of [this.#send, this.#stop]) button.classList.add('chat-main');
    this.#stop.hidden = true;
    this.#attach.hidden = true;
    const row = make('div', { className: 'chat-row' }, this.#attach, this.#area, this.#send, this.#stop);
    this.element.append(this.#pictures, row, this.#file);
    this.#area.addEventListener('input', () => fitHeight(this.#area));
    this.#area.addEventListener('keydown', (event) => this.#onKey(event));
    this.element.addEventListener('submit', (event) => event.preventDefault());
    this.#file.addEventListener('change', () => {
      this.#add(this.#file.files);
      this.#file.value = '';
    });
    this.element.addEventListener('paste', (event) => this.#take(event, event.clipboardData));
    this.element.addEventListener('dragover', (event) => event.preventDefault());
    this.element.addEventListener('drop', (event) => this.#take(event, event.dataTransfer));
  }

  focus(): void {
    this.#area.focus();
  }

  /** Shows the button that stops in place of the one that sends, or the other way round. */
  setBusy(isBusy: boolean): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.#send.hidden = isBusy;
    this.#stop.hidden = !isBusy;
    if (hadFocus) this.#area.focus();
  }

  /** Offers images, or not. */
  setImages(takesImages: boolean): void {
    this.#takesImages = takesImages;
    this.#attach.hidden = !takesImages;
    if (!takesImages) this.#setImages([]);
  }

  #onKey(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      this.#ask();
    }
    if (event.key === 'ArrowUp' && this.#area.value === '') {
      event.preventDefault();
      this.#actions.editLast();
    }
  }

  #ask(): void {
    const text = this.#area.value;
    if (text.trim() === '' && this.#images.length === 0) return;
    if (!this.#actions.ask(text, this.#images)) return;
    this.#area.value = '';
    fitHeight(this.#area);
    this.#setImages([]);
  }

  #take(event: Event, data: DataTransfer | null): void {
    if (!data || data.files.length === 0) return;
    event.preventDefault();
    this.#add(data.files);
  }

  #add(files: FileList | null): void {
    if (!this.#takesImages) return;
    for (const file of files ?? []) {
      if (!IMAGES.split(',').includes(file.type)) continue;
      const reader = new FileReader();
      reader.addEventListener('load', () => this.#setImages([...this.#images, reader.result as string]));
      reader.readAsDataURL(file);
    }
  }

  #setImages(images: string[]): void {
    this.#images = images;
    this.#pictures.hidden = images.length === 0;
    this.#pictures.replaceChildren(
      ...images.map((src) => {
        const remove = iconButton('close', 'Remove the image', () =>
          this.#setImages(this.#images.filter((one) => one !== src)),
        );
        return make('span', {}, make('img', { src, alt: 'An image to send' }), remove);
      }),
    );
  }
}
