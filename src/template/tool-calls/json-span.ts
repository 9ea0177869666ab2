/** Text, piece by piece -> the end of a JSON value, by a strict incremental parser whose state is its stack. */

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WORDS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };
const SPACE = ' \t\n\r';

type State =
  | 'value'
  | 'value_or_end' // after `[`
  | 'key'
  | 'key_or_end' // after `{`
  | 'colon'
  | 'after_value'
  | 'string'
  | 'escape'
  | 'hex'
  | 'word'
  | 'number';

/** Follows one JSON value through pieces of text. */
export class JsonSpan {
  /** True if the value has ended. A number ends only at the next character. */
  isComplete = false;
  /** True if the text is not JSON. */
  isBroken = false;
  /** The text that the last `scan` consumed, with raw control characters in strings escaped, as JSON requires. */
  output = '';

  #state: State = 'value';
  readonly #stack: ('{' | '[')[] = [];
  #isKey = false;
  #token = ''; // the characters of a number, or the rest of a word
  #hexLeft = 0;

  /** Consumes the characters of the value up to the first invalid one, and returns their number. */
  scan(text: string): number {
    this.output = '';
    let from = 0; // start of the text that is not in `output` yet
    let at = 0;
    while (at < text.length && !this.isComplete && !this.isBroken) {
      const char = text[at]!;
      if (this.#state === 'string') {
        if (char < ' ') {
          this.output += text.slice(from, at) + JSON.stringify(char).slice(1, -1);
          from = at + 1;
        } else if (char === '"') this.#endString();
        else if (char === '\\') this.#state = 'escape';
        at++;
      } else if (this.#state === 'number' && !/[\d.eE+-]/.test(char)) {
        this.#endNumber(); // the next state handles `char`
      } else {
        this.#step(char);
        if (!this.isBroken) at++; // an invalid character is not part of the value
      }
    }
    this.output += text.slice(from, at);
    return at;
  }

  #step(char: string): void {
    switch (this.#state) {
      case 'escape':
        if (char === 'u') this.#hexLeft = 4;
        else if (!'"\\/bfnrt'.includes(char)) this.isBroken = true;
        this.#state = char === 'u' ? 'hex' : 'string';
        return;
      case 'hex':
        if (!/[\da-fA-F]/.test(char)) this.isBroken = true;
        if (--this.#hexLeft === 0) this.#state = 'string';
        return;
      case 'word':
        if (char !== this.#token[0]) this.isBroken = true;
        else if (this.#token.length === 1) this.#endValue();
        this.#token = this.#token.slice(1);
        return;
      case 'number':
        this.#token += char;
        return;
      default:
        if (!SPACE.includes(char)) this.#stepStructure(char);
    }
  }

  #stepStructure(char: string): void {
    const state = this.#state;
    const top = this.#stack.at(-1);
    if (state === 'colon') {
      if (char === ':') this.#state = 'value';
      else this.isBroken = true;
    } else if (state === 'key' || state === 'key_or_end') {
      if (char === '"') this.#beginString(true);
      else if (char === '}' && state === 'key_or_end') this.#endContainer();
      else this.isBroken = true;
    } else if (state === 'after_value') {
      if (char === ',') this.#state = top === '{' ? 'key' : 'value';
      else if (char === (top === '{' ? '}' : ']')) this.#endContainer();
      else this.isBroken = true;
    } else if (char === ']' && state === 'value_or_end') this.#endContainer();
    else this.#beginValue(char);
  }

  #beginValue(char: string): void {
    if (char === '{' || char === '[') {
      this.#stack.push(char);
      this.#state = char === '{' ? 'key_or_end' : 'value_or_end';
    } else if (char === '"') this.#beginString(false);
    else if (/[-\d]/.test(char)) {
      this.#state = 'number';
      this.#token = char;
    } else if (WORDS[char] !== undefined) {
      this.#state = 'word';
      this.#token = WORDS[char].slice(1);
    } else this.isBroken = true;
  }

  #beginString(isKey: boolean): void {
    this.#state = 'string';
    this.#isKey = isKey;
  }

  #endString(): void {
    if (this.#isKey) this.#state = 'colon';
    else this.#endValue();
  }

  #endNumber(): void {
    if (NUMBER.test(this.#token)) this.#endValue();
    else this.isBroken = true;
  }

  #endContainer(): void {
    this.#stack.pop();
    this.#endValue();
  }

  #endValue(): void {
    this.#state = 'after_value';
    if (this.#stack.length === 0) this.isComplete = true;
  }
}
