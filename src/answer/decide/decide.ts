/** Questions about an input on a loaded model -> the probabilities of their options, read where the answer would begin. */
import { atField } from '../../common/index.ts';
import { errorAt } from '../../errors.ts';
import { type ModelLease, readDecisions } from '../../models/index.ts';
import {
  type ChatCompletion,
  type ChatMessage,
  type Decision,
  type DecisionAnswer,
  type DecisionKind,
  type DecisionUsage,
  sumUsage,
  type ValidChatRequest,
  type ValidDecisionRequest,
  type ValidQuestion,
} from '../../protocol/index.ts';
import type { AnswerContext } from '../answer.ts';
import { type Ask, answerAll } from '../answer-prompts.ts';
import type { PlacedPart } from '../arrange-messages.ts';
import { savesAtPlaces } from '../open-request.ts';
import { commonLength, fitPrompt } from '../prompt.ts';
import { contentText } from '../template-message.ts';
import { DecisionFile } from './decision-file.ts';
import { labelFinder } from './labels.ts';
import {
  type Calibration,
  choiceConfidence,
  formLogits,
  labelMass,
  largest,
  meanLevel,
  probabilitiesOf,
  rotation,
  scoreConfidence,
} from './numbers.ts';
import { optionLogits, optionTrie, tokensBehind } from './option-trie.ts';
import { plainParts } from './plain-text.ts';
import {
  cutPrompts,
  FramedPrompts,
  frameOf,
  joinTokens,
  plainMessages,
  promptLimit,
  wholePrompt,
  withQuestion,
} from './prompts.ts';
import { askOpenly, askQuestion, lastLineOf } from './question-text.ts';

/** Number of characters at the end of a question that determine how the text behind it is tokenized. */
const TAIL = 32;

type Leased = Omit<ModelLease, typeof Symbol.dispose>;

/** Prompts of a question, and how their answers become one number for each option: the logarithm of its probability. */
type Turn = {
  readonly asks: readonly Ask[];
  readonly logits: (rows: readonly (readonly number[])[]) => number[];
};
type PlannedQuestion = {
  readonly question: ValidQuestion;
  readonly turns: readonly Turn[];
  /** The tokens of each option, or of each rating. Null if labels have several tokens. */
  readonly ids: readonly (readonly number[])[] | null;
  /** The temperature in the header of a decision file. Absent for other models. */
  readonly temperature?: number;
  /** True if a predicate is answered by ratings, from certainly not to certainly. */
  readonly isRated?: boolean;
};

/** Answers all questions. Their prompts share the prefix computed for the input. */
export async function decide(
  leased: Leased,
  request: ValidDecisionRequest,
  chat: ValidChatRequest,
  context: AnswerContext,
): Promise<Decision> {
  const planned = await new Planner(leased, request, chat, context.signal).plan();
  const asks = planned.flatMap(({ turns }) => turns.flatMap((turn) => turn.asks));
  const answers = (await answerAll(leased, asks, {
    ...context,
    processedLogprobs: false,
  })) as ChatCompletion[];
  const fitted = leased.checkpoint === null ? null : await readDecisions(leased.checkpoint);
  const calibrationOf = (kind: DecisionKind, ofFile = 1): Calibration => {
    const asked = request.temperatures[kind];
    if (asked !== null) return { temperature: asked, noise: 0 };
    return fitted?.with_noise?.[kind] ?? { temperature: fitted?.temperatures[kind] ?? ofFile, noise: 0 };
  };
  let at = 0;
  const entries = planned.map((plan) => {
    const prompt_token_ids = answers[at]!.prompt_token_ids ?? [];
    const rows = plan.turns.map(({ asks: own, logits }) => {
      const found = answers.slice(at, at + own.length).map(logprobsOf);
      at += own.length;
      return logits(found);
    });
    const calibration = calibrationOf(plan.question.type, plan.temperature);
    return toAnswer(plan, rows, calibration, request.returnTokenIds ? prompt_token_ids : null);
  });
  const named = request.isMap ? Object.fromEntries(entries.map((entry) => [entry.name, entry])) : entries;
  return {
    model: answers[0]!.model,
    answers: named as unknown as Decision['answers'],
    usage: usageOf(answers),
  };
}

/** Returns the log-probabilities of the tokens that a prompt was asked for. */
function logprobsOf({ choices }: ChatCompletion): number[] {
  return choices[0]!.logprobs!.content![0]!.top_logprobs.map(({ logprob }) => logprob);
}

/** Writes the prompts of all questions. */
class Planner {
  readonly #leased: Leased;
  readonly #request: ValidDecisionRequest;
  readonly #chat: ValidChatRequest;
  readonly #signal: AbortSignal | undefined;
  readonly #messages: readonly ChatMessage[];
  readonly #hasMedia: boolean;
  #behind = ''; // the text behind a question
  #prompts: FramedPrompts | null = null;
  /** Most tokens of a prompt, by `truncate_prompt_tokens`. Null if a longer one is an error. */
  readonly #limit: number | null;

  constructor(
    leased: Leased,
    request: ValidDecisionRequest,
    chat: ValidChatRequest,
    signal: AbortSignal | undefined,
  ) {
    this.#leased = leased;
    this.#request = request;
    this.#chat = { ...chat, return_token_ids: request.returnTokenIds };
    this.#limit = promptLimit(chat, leased.model.contextSize);
    this.#signal = signal;
    this.#messages = plainMessages(leased.model, chat);
    const given = [
      ...this.#messages.map(({ content }) => content),
      ...request.questions.map(({ asks }) => asks),
    ];
    this.#hasMedia = given.some((parts) => parts.some(({ type }) => type === 'media'));
  }

  async plan(): Promise<PlannedQuestion[]> {
    const { model } = this.#leased;
    const file = DecisionFile.of(model, this.#request);
    if (file) return await this.#ofFile(file);
    const messages = this.#hasMedia ? textOnly(this.#messages) : this.#messages;
    if (this.#hasMedia && this.#limit !== null)
      throw errorAt('truncate_prompt_tokens', 'UNSUPPORTED', 'an input with pictures is not cut');
    const frame = await frameOf(model, this.#chat, messages, this.#signal);
    this.#behind = frame?.behind ?? '';
    const needsPlaces = this.#limit !== null || savesAtPlaces(model);
    this.#prompts = frame && !this.#hasMedia ? new FramedPrompts(model, frame, needsPlaces) : null;
    const planned = await this.#planAll();
    if (this.#limit === null) return planned;
    const prompts = planned.flatMap(({ turns }) =>
      turns.flatMap(({ asks }) => asks.map(({ prompt }) => prompt)),
    );
    const longest = Math.max(...prompts.map((prompt) => prompt?.ids.length ?? 0));
    if (longest <= this.#limit) return planned;
    const behindInput = longest - (prompts[0]!.places?.[0] ?? 0);
    this.#prompts = await cutPrompts(model, frame, this.#messages, this.#limit - behindInput);
    return await this.#planAll();
  }

  async #planAll(): Promise<PlannedQuestion[]> {
    const planned: PlannedQuestion[] = [];
    for (const question of this.#request.questions)
      planned.push(this.#request.readsText ? await this.#ofTexts(question) : await this.#ofLabels(question));
    return planned;
  }

  /** Writes the prompts of a decision file. Their common beginning is where a recurrent model saves its state. */
  async #ofFile(file: DecisionFile): Promise<PlannedQuestion[]> {
    const { model } = this.#leased;
    const { readsText, orders, questions } = this.#request;
    const refused = readsText
      ? 'read'
      : this.#hasMedia
        ? 'input'
        : this.#limit === null
          ? null
          : 'truncate_prompt_tokens';
    if (refused)
      throw errorAt(
        refused,
        'UNSUPPORTED',
        'a decision file reads labels, behind a whole input without pictures',
      );
    const planned: PlannedQuestion[] = [];
    const places: number[] = [];
    let shared: Int32Array | null = null;
    for (const question of questions) {
      const { prompts, ...more } = await file.ask(question, orders);
      const turns: Turn[] = [];
      for (const { text, ids: labels, order } of prompts) {
        const special = { addSpecial: false, parseSpecial: true };
        const ids = await atField('messages', () => model.tokenizer.encode(text, special));
        shared = (shared ?? ids).subarray(0, Math.min(commonLength(shared ?? ids, ids), ids.length - 1));
        const prompt = { field: 'messages', ids, added: new Int32Array(0), places };
        const chat = { ...this.#chat, logprob_token_ids: labels.flat() };
        fitPrompt(chat, prompt, model.contextSize); // fails before prompts of more questions are made
        const logits: Turn['logits'] = ([row]) => inOrder(formLogits(row!, labels, file.join), order);
        turns.push({ asks: [{ chat, prompt }], logits });
      }
      const { ids, order } = prompts[0]!;
      planned.push({ question, turns, ids: inOrder(ids, order), ...more });
    }
    if (shared && shared.length > 0) places.push(shared.length);
    return planned;
  }

  /** Writes a prompt for each order of the options. The labels of the options are the candidates for its next token. */
  async #ofLabels(question: ValidQuestion): Promise<PlannedQuestion> {
    const orders = question.type === 'choice' ? this.#request.orders : 1;
    const finder = labelFinder(this.#leased.model.tokenizer, lastLineOf(question) + this.#behind);
    const { labels, ids } = await finder.of(question);
    const kind = `${question.type} ${labels[0]!.length}`;
    const turns: Turn[] = [];
    for (let turn = 0; turn < orders; turn++) {
      const order = rotation(labels.length, turn, orders);
      const parts = askQuestion(question, labels, order);
      if (ids) {
        const ask = await this.#ask(kind, parts, ids.flat());
        turns.push({ asks: [ask], logits: ([row]) => inOrder(formLogits(row!, ids), order) });
      } else {
        const { asks, logits } = await this.#spell(kind, parts, labels, question.path);
        turns.push({ asks, logits: (rows) => inOrder(logits(rows), order) });
      }
    }
    return { question, turns, ids };
  }

  /** Asks a question whose options are not listed, for their texts. */
  async #ofTexts(question: ValidQuestion): Promise<PlannedQuestion> {
    const { parts, texts } = askOpenly(question);
    const { options, ...turn } = await this.#spell(`${question.type} text`, parts, texts, question.path);
    return { question, turns: [turn], ids: options };
  }

  /** Writes a prompt for each beginning of some texts behind a question. */
  async #spell(
    kind: string,
    parts: readonly PlacedPart[],
    texts: readonly string[],
    path: string,
  ): Promise<Turn & { readonly options: readonly (readonly number[])[] }> {
    const { tokenizer } = this.#leased.model;
    if (this.#hasMedia)
      throw errorAt(path, 'UNSUPPORTED', 'texts and labels of several tokens are not read behind pictures');
    const words = contentText({ content: plainParts(parts, tokenizer) });
    const tail = words.slice(-TAIL) + this.#behind;
    const options = await tokensBehind(tail, texts, tokenizer, path);
    const ends = [...tokenizer.endIds];
    const trie = optionTrie(options, ends, path);
    const { chat, prompt } = await this.#ask(kind, parts, []);
    const asks = trie.nodes.map(({ path: tokens, next }): Ask => {
      const ids = joinTokens(prompt!.ids, tokens);
      return { chat: { ...chat, logprob_token_ids: [...next.keys()] }, prompt: { ...prompt!, ids } };
    });
    return { asks, logits: (rows) => optionLogits(trie, rows, ends), options };
  }

  /** Returns the request for the log-probabilities of tokens behind a question. */
  async #ask(kind: string, given: readonly PlacedPart[], logprob_token_ids: number[]): Promise<Ask> {
    const { model } = this.#leased;
    const parts = plainParts(given, model.tokenizer);
    const chat = { ...this.#chat, truncate_prompt_tokens: null, logprob_token_ids };
    const messages = (): ChatMessage[] => withQuestion(this.#messages, parts);
    if (this.#hasMedia) return { chat: { ...chat, messages: messages() } };
    const prompt = this.#prompts
      ? await this.#prompts.of(kind, contentText({ content: parts }))
      : await wholePrompt(model, chat, messages(), this.#signal);
    if (this.#limit === null) fitPrompt(chat, prompt, model.contextSize); // fails before prompts of more questions are made
    return { chat, prompt };
  }
}

/** Returns the value of each option. `values`: those of the options at each place. */
function inOrder<Value>(values: readonly Value[], order: readonly number[]): Value[] {
  const found: Value[] = [];
  for (const [place, option] of order.entries()) found[option] = values[place]!;
  return found;
}

/** Returns the messages without media, used to find the text that the template puts behind a question. */
function textOnly(messages: ValidChatRequest['messages']): ValidChatRequest['messages'] {
  return messages.map((message) => ({
    ...message,
    content: message.content.filter(({ type }) => type === 'text'),
  }));
}

function toAnswer(
  { question, ids, isRated }: PlannedQuestion,
  rows: readonly (readonly number[])[],
  calibration: Calibration,
  prompt_token_ids: readonly number[] | null,
): DecisionAnswer {
  const each = rows.map((logits) => probabilitiesOf(logits, calibration));
  const p = each[0]!.map((_, option) => mean(each.map((row) => row[option]!)));
  const shared = {
    name: question.name,
    label_mass: mean(rows.map(labelMass)),
    temperature: calibration.temperature,
    ...(calibration.noise > 0 ? { noise: calibration.noise } : {}),
    ...(prompt_token_ids ? { prompt_token_ids, ...(ids ? { label_token_ids: ids } : {}) } : {}),
  };
  switch (question.type) {
    case 'predicate':
      return { type: 'predicate', ...shared, probability: isRated ? meanLevel(p) / (p.length - 1) : p[0]! };
    case 'choice': {
      const probabilities = question.choices.map(({ value }, i) => ({ value, probability: p[i]! }));
      return {
        type: 'choice',
        ...shared,
        choice: probabilities[largest(p)]!.value,
        confidence: choiceConfidence(p),
        probabilities,
      };
    }
    case 'score': {
      const probabilities = question.levels.map(({ label }, value) => ({
        value,
        label,
        probability: p[value]!,
      }));
      return { type: 'score', ...shared, score: meanLevel(p), confidence: scoreConfidence(p), probabilities };
    }
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function usageOf(answers: readonly ChatCompletion[]): DecisionUsage {
  const { prompt_tokens: input_tokens, prompt_tokens_details } = sumUsage(answers.map(({ usage }) => usage));
  const cached_tokens = prompt_tokens_details?.cached_tokens ?? 0;
  return {
    input_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens: input_tokens - cached_tokens },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input_tokens,
  };
}
