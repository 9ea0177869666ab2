/** The header of a decision file -> its own prompts of questions, and the tokens and temperatures that they are answered with. */
import type { Tokenizer } from '../../engine/tokenizer/index.ts';
import { errorAt } from '../../errors.ts';
import {
  DECISION_TEMPLATE,
  type DecisionHeader,
  decisionHeader,
  isLabelType,
  type LabelType,
  type RunningModel,
} from '../../models/index.ts';
import { dataOf, type ValidDecisionRequest, type ValidQuestion } from '../../protocol/index.ts';
import { type ChatTemplate, compileChatTemplate } from '../../template/index.ts';
import { contentText } from '../template-message.ts';
import { type FoundLabels, type LabelFinder, labelFinder, NO, withSpace, YES } from './labels.ts';
import { rotation } from './numbers.ts';
import { withoutControls } from './plain-text.ts';
import { LETTERS, PAIRS } from './question-text.ts';

/** The differences between a type of decision files and the others. */
type Traits = {
  /** `letters`: A to Z and a to z. `codes`: A to Z and AA to ZZ. `groups`: labels with several forms, of which the likeliest counts. */
  readonly labels: 'letters' | 'codes' | 'groups';
  readonly isTrueFirst?: boolean;
  /** Predicates are rated from 0 to 8 at the first nine labels. */
  readonly isRating?: boolean;
  /** A choice is asked twice, the second time in reverse order. */
  readonly reverses?: boolean;
  /** The keys of all objects of the template's input are sorted. */
  readonly sortsKeys?: boolean;
  /** The template shows all questions of a request in each prompt. */
  readonly showsAll?: boolean;
};

const TYPES: Readonly<Record<LabelType, Traits>> = {
  openjev: { labels: 'letters', isTrueFirst: true },
  lev: { labels: 'codes', isRating: true, reverses: true, sortsKeys: true },
  nimble: { labels: 'codes', showsAll: true },
  'pplx-decider': { labels: 'codes' },
  'lfm2-d1': { labels: 'groups', isTrueFirst: true },
};
/** Types that are not read from the logits of labels. */
const TYPES_WITH_HEADS: readonly string[] = ['kev', 'laya', 'clef', 'lfm2-d1-omni'];

const RATINGS = 9;
const SMALL_LETTERS = LETTERS.map((letter) => letter.toLowerCase());
const CODES = [...LETTERS, ...PAIRS];
/** Labels of groups that stand in for those that are not one token. */
const SPARE_LABELS = [
  ...LETTERS,
  ...Array.from({ length: 100 }, (_, i) => twoDigits(i)),
  ...SMALL_LETTERS,
  ...Array.from({ length: 200 }, (_, i) => `#${i}`),
  ...PAIRS,
];
/** Ranges of the number of options that have temperatures of their own: the largest number of a range, and its name. */
const RANGES: readonly (readonly [number, string])[] = [
  [2, '2'],
  [5, '3_5'],
  [10, '6_10'],
  [Number.POSITIVE_INFINITY, '11'],
];
const RANGES_OF_LEV: typeof RANGES = [
  [8, 'small'],
  [26, 'mid'],
  [Number.POSITIVE_INFINITY, 'large'],
];
/** Kinds of questions in the header and in templates. */
export const KINDS = { predicate: 'noul', choice: 'choice', score: 'score' } as const;

type Option = { readonly key: string; readonly description: string | null };

/** The prompts of a question. */
export type FileQuestion = {
  readonly prompts: readonly {
    readonly text: string;
    /** Token ids of the label at each place. */
    readonly ids: readonly (readonly number[])[];
    /** Index of the option at each place. */
    readonly order: readonly number[];
  }[];
  readonly temperature: number;
  /** True if the labels are those of ratings, from certainly not to certainly. */
  readonly isRated: boolean;
};

/** A model that was trained for decisions, and says so in its header. */
export class DecisionFile {
  readonly #traits: Traits;
  readonly #type: string;
  readonly #template: ChatTemplate;
  readonly #tokenizer: Tokenizer;
  readonly #temperatures = new Map<string, number>();
  readonly #state: unknown;
  readonly #questions: readonly ValidQuestion[];
  readonly #finder: LabelFinder;
  #all: Promise<{ readonly questions: readonly object[] }> | null = null;

  /** Returns null for other models. Fails with `UNSUPPORTED` for a type that is not known, `MODEL_INVALID` for a file that lacks something. */
  static of(model: RunningModel, request: ValidDecisionRequest): DecisionFile | null {
    const header = decisionHeader(model.loaded.metadata ?? {});
    return header.type === null ? null : new DecisionFile(model, request, header, header.type);
  }

  private constructor(
    { tokenizer, loaded: { metadata = {} } }: RunningModel,
    { state, questions }: ValidDecisionRequest,
    { prefix }: DecisionHeader,
    type: string,
  ) {
    if (!isLabelType(type)) {
      const isKnown = TYPES_WITH_HEADS.includes(type);
      const why = isKnown
        ? 'answers by heads on its hidden states, which the engine does not compute'
        : 'is not known here';
      throw errorAt('model', 'UNSUPPORTED', `a decision file of the type ${type} ${why}`);
    }
    const source = metadata[DECISION_TEMPLATE];
    if (!source) throw errorAt('model', 'MODEL_INVALID', `this decision file has no ${DECISION_TEMPLATE}`);
    const start = `${prefix}temperature.`;
    for (const [key, text] of Object.entries(metadata)) {
      if (!key.startsWith(start)) continue;
      const value = Number(text);
      if (!(value > 0 && Number.isFinite(value)))
        throw errorAt('model', 'MODEL_INVALID', `${key}: expected a number above 0, got ${text}`);
      this.#temperatures.set(key.slice(start.length), value);
    }
    this.#traits = TYPES[type];
    this.#type = type;
    this.#template = compileChatTemplate(source);
    this.#tokenizer = tokenizer;
    this.#finder = labelFinder(tokenizer, '');
    this.#state = this.#plain(state);
    this.#questions = questions;
  }

  /** Makes one value of the log-probabilities of the forms of an option. If it is undefined, they are added up. */
  get join(): ((...values: number[]) => number) | undefined {
    return this.#traits.labels === 'groups' ? Math.max : undefined;
  }

  /** Writes the prompts of a question. Fails with `UNSUPPORTED` for more options than the type has labels for. */
  async ask(question: ValidQuestion, orders: number): Promise<FileQuestion> {
    const options = optionsOf(question);
    const isRated = question.type === 'predicate' && this.#traits.isRating === true;
    const ratings = isRated ? await this.#codes(RATINGS, question.path) : null;
    if (this.#traits.showsAll) this.#all ??= this.#describeAll();
    const all = await this.#all;
    const prompts: FileQuestion['prompts'][number][] = [];
    for (const order of this.#ordersOf(question, options.length, orders)) {
      const { shown, ids } = await this.#show(question, order);
      const kwargs = { ...this.#describe(question, shown), state: this.#state, images: [], ...all };
      const text = this.#template.render({ messages: [], kwargs });
      prompts.push({
        text,
        ...(ratings ? { ids: ratings.ids, order: [...ratings.ids.keys()] } : { ids, order }),
      });
    }
    return { prompts, temperature: this.#temperatureOf(question, options.length), isRated };
  }

  #ordersOf({ type }: ValidQuestion, count: number, orders: number): number[][] {
    const forward = rotation(count, 0, 1);
    if (type === 'predicate') return [this.#traits.isTrueFirst ? forward : forward.toReversed()];
    if (type === 'score') return [forward];
    if (orders === 1 && this.#traits.reverses) return [forward, forward.toReversed()];
    return Array.from({ length: orders }, (_, turn) => rotation(count, turn, orders));
  }

  /** Returns the options in an order as the template gets them, and the tokens of their labels. */
  async #show(
    question: ValidQuestion,
    order: readonly number[],
  ): Promise<{ shown: object[]; ids: FoundLabels['ids'] }> {
    const options = optionsOf(question);
    const placed = order.map((k) => options[k]!);
    const { labels, ids } = await this.#labelsOf(question, placed);
    const isLabelled = this.#traits.labels !== 'letters';
    const shown = placed.map((one, place) => ({ ...one, ...(isLabelled ? { label: labels[place]! } : {}) }));
    return { shown, ids };
  }

  /** Describes all questions, as each prompt shows them. */
  async #describeAll(): Promise<{ readonly questions: readonly object[] }> {
    const questions: object[] = [];
    for (const one of this.#questions) {
      const [order] = this.#ordersOf(one, optionsOf(one).length, 1);
      questions.push(this.#describe(one, (await this.#show(one, order!)).shown));
    }
    return { questions };
  }

  #describe(question: ValidQuestion, options: readonly object[]): object {
    const { type, name, path, instructions, asks } = question;
    return this.#plain({
      id: name ?? path.slice(path.lastIndexOf('.') + 1),
      type: KINDS[type],
      instructions: dataOf(instructions) ?? contentText({ content: asks }),
      options,
    });
  }

  #plain<Data>(data: Data): Data {
    return plainData(data, this.#tokenizer, this.#traits.sortsKeys ?? false) as Data;
  }

  async #labelsOf(question: ValidQuestion, options: readonly Option[]): Promise<FoundLabels> {
    if (this.#traits.labels === 'groups') return await this.#groups(question, options);
    return await this.#codes(options.length, question.path);
  }

  /** Returns the first letters or codes that are one token. */
  async #codes(count: number, path: string): Promise<FoundLabels> {
    const texts = this.#traits.labels === 'letters' ? [...LETTERS, ...SMALL_LETTERS] : CODES;
    const found = await this.#finder.first(count, texts);
    if (found.labels.length < count) throw this.#tooMany(path, count, found.labels.length);
    return found;
  }

  /** Returns labels with all their forms. Choices have letters, the options' own if all are one letter, or above 26 options numbers. */
  async #groups({ type, path }: ValidQuestion, options: readonly Option[]): Promise<FoundLabels> {
    const labels: string[] = [];
    const ids: number[][] = [];
    if (type !== 'choice') {
      for (const { key } of options) {
        const group = await this.#finder.idsOf(type === 'score' ? [key] : key === 'true' ? YES : NO);
        if (group.length === 0)
          throw errorAt(path, 'UNSUPPORTED', `the label ${key} is not one token of this model`);
        labels.push(key);
        ids.push(group);
      }
      return { labels, ids };
    }
    const areLetters = options.every(({ key }) => /^[A-Za-z]$/.test(key));
    const used = new Set<number>();
    for (const [place, { key }] of options.entries()) {
      const own = areLetters ? key : options.length <= LETTERS.length ? LETTERS[place]! : twoDigits(place);
      for (const label of [own, ...SPARE_LABELS]) {
        const id = await this.#finder.idOf(label);
        if (id === null || used.has(id)) continue;
        used.add(id);
        labels.push(label);
        ids.push(await this.#finder.idsOf(withSpace(label)));
        break;
      }
      if (labels.length === place) throw this.#tooMany(path, options.length, place);
    }
    return { labels, ids };
  }

  #tooMany(path: string, count: number, most: number): Error {
    const why = `a decision file of the type ${this.#type} has labels for ${most} options here, not for ${count}`;
    return errorAt(path, 'UNSUPPORTED', why);
  }

  #temperatureOf({ type }: ValidQuestion, count: number): number {
    const ranges = this.#traits.reverses ? RANGES_OF_LEV : RANGES;
    const [, range] = ranges.find(([most]) => count <= most)!;
    return this.#temperatures.get(`${KINDS[type]}.${range}`) ?? this.#temperatures.get(KINDS[type]) ?? 1;
  }
}

/** Returns the options of a question, those of a predicate as true and false. */
function optionsOf(question: ValidQuestion): readonly Option[] {
  switch (question.type) {
    case 'predicate': {
      const { true: yes = null, false: no = null } = question.criteria ?? {};
      return [
        { key: 'true', description: yes },
        { key: 'false', description: no },
      ];
    }
    case 'choice':
      return question.choices.map(({ value, description = null }) => ({ key: String(value), description }));
    case 'score':
      return question.levels.map(({ label, description }, level) => ({
        key: String(level),
        description: description ? `${label} - ${description}` : label,
      }));
  }
}

/** Returns data without the texts of control tokens. `sorts`: with the keys of objects in their order. */
function plainData(data: unknown, tokenizer: Tokenizer, sorts: boolean): unknown {
  if (typeof data === 'string') return withoutControls(data, tokenizer);
  if (typeof data !== 'object' || data === null) return data;
  if (Array.isArray(data)) return data.map((one) => plainData(one, tokenizer, sorts));
  const entries = Object.entries(data);
  if (sorts) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    entries.map(([key, value]) => [withoutControls(key, tokenizer), plainData(value, tokenizer, sorts)]),
  );
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
