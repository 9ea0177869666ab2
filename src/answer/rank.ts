/** Pairs of texts on a loaded model -> one score each: by the model's head, by the angle of two embeddings, or by the answer yes or no. */
import { randomUUID } from 'node:crypto';
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt } from '../errors.ts';
import type { EmbeddingModel, ModelLease } from '../models/index.ts';
import {
  type ChatCompletion,
  type ClassifyResponse,
  checkAndAdmitChat,
  type GivenText,
  type RankUsage,
  type RerankResponse,
  type ScoreResponse,
  type ValidChatRequest,
  type ValidClassifyRequest,
  type ValidPairs,
  type ValidRerankRequest,
} from '../protocol/index.ts';
import type { AnswerContext } from './answer.ts';
import { answerAll } from './answer-prompts.ts';
import { toTokens } from './embed.ts';
import { encodeWithin, JUDGE_TEMPLATE, pairEncoder, templateEncoder } from './pair-prompt.ts';

/** One score per pair, with the token count and the model's name. */
export type PairScores = {
  readonly scores: readonly number[];
  readonly tokens: number;
  readonly model: string;
};

/** Caller of a ranking. The trace id, if present, is used in the id of the answer. */
type Asker = { readonly traceId?: string | undefined };

const NONE = new Int32Array(0);

/** Scores pairs by a model's head, or by its embeddings. */
export async function scorePairs(
  model: EmbeddingModel,
  request: ValidPairs,
  signal: AbortSignal | undefined,
): Promise<PairScores> {
  return model.head === null
    ? await compareVectors(model, request, signal)
    : await scoreByHead(model, request, signal);
}

async function scoreByHead(
  model: EmbeddingModel,
  { pairs, instruction, use_activation, truncate_prompt_tokens }: ValidPairs,
  signal: AbortSignal | undefined,
): Promise<PairScores> {
  const { name, head, contextSize, embeddings } = model;
  const { labels, hasSoftmax } = head!;
  if (labels.length > 1 && !hasSoftmax)
    throw errorAt(
      'model',
      'UNSUPPORTED',
      `${name} has ${labels.length} labels and no score: it is for classify`,
    );
  const encode = pairEncoder(model, instruction);
  const limits = { contextSize, truncate: truncate_prompt_tokens };
  const sequences: Int32Array[] = [];
  for (const pair of pairs) sequences.push(await encodeWithin(encode, pair, limits));
  const rows = await embeddings.embed(sequences, signal);
  const isRaw = hasSoftmax || !use_activation;
  const scores = rows.map(([first]) => (isRaw ? first! : sigmoid(first!)));
  return { scores, tokens: countTokens(sequences), model: name };
}

/** Scores pairs by the cosine of the angle between the vectors of their texts. Each text is computed once. */
async function compareVectors(
  model: EmbeddingModel,
  { pairs, instruction, truncate_prompt_tokens }: ValidPairs,
  signal: AbortSignal | undefined,
): Promise<PairScores> {
  if (instruction !== null)
    throw errorAt('instruction', 'UNSUPPORTED', `${model.name} returns embeddings: it takes no instruction`);
  const texts = new Map<string, GivenText>();
  for (const { query, document } of pairs)
    for (const text of [query, document]) texts.set(text.content, texts.get(text.content) ?? text);
  const form = { add_special_tokens: true, truncate_prompt_tokens };
  const sequences = await toTokens(model, form, texts.values());
  const rows = await model.embeddings.embed(sequences, signal);
  const vectors = new Map([...texts.keys()].map((text, i) => [text, rows[i]!]));
  const scores = pairs.map(({ query, document }) =>
    cosine(vectors.get(query.content)!, vectors.get(document.content)!),
  );
  return { scores, tokens: countTokens(sequences), model: model.name };
}

/**
 * Returns the request with which a generating model is asked: for one token. The prompts and label tokens are added when the model is
 * loaded.
 */
export function toJudgeRequest({ model, timeout_ms, keep_alive }: ValidPairs): ValidChatRequest {
  return checkAndAdmitChat({
    model,
    timeout_ms,
    keep_alive,
    messages: [],
    max_completion_tokens: 1,
    logprobs: true,
    temperature: 0,
  });
}

/** Scores pairs by the probability of `yes` against `no` as the answer to Qwen3-Reranker's prompt. */
export async function judgePairs(
  leased: Pick<ModelLease, 'model' | 'adapter'>,
  { pairs, instruction, truncate_prompt_tokens }: ValidPairs,
  chat: ValidChatRequest,
  context: AnswerContext,
): Promise<PairScores> {
  const { tokenizer, contextSize, name } = leased.model;
  const [yes, no] = await judgeTokens(tokenizer, name);
  const encode = templateEncoder(JUDGE_TEMPLATE, tokenizer, instruction);
  const limits = { contextSize: contextSize - 1, truncate: truncate_prompt_tokens };
  const sequences: Int32Array[] = [];
  for (const pair of pairs) sequences.push(await encodeWithin(encode, pair, limits));
  const asked = { ...chat, logprob_token_ids: [yes, no] };
  const asks = sequences.map((ids, i) => ({
    chat: asked,
    prompt: { field: pairs[i]!.document.path, ids, added: NONE },
  }));
  const answers = await answerAll(leased, asks, { ...context, processedLogprobs: false });
  const scores = answers.map((answer) => {
    const { choices } = answer as ChatCompletion;
    const [forYes, forNo] = choices[0]!.logprobs!.content![0]!.top_logprobs;
    return sigmoid(forYes!.logprob - forNo!.logprob);
  });
  return { scores, tokens: countTokens(sequences), model: name };
}

/** Returns the tokens `yes` and `no`. Fails with `UNSUPPORTED` if the model lacks a token of the prompt. */
async function judgeTokens(tokenizer: Tokenizer, name: string): Promise<[yes: number, no: number]> {
  const ids: number[] = [];
  for (const text of ['yes', 'no', '<|im_start|>', '<|im_end|>']) {
    const [id, ...others] = await tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
    if (id === undefined || others.length > 0)
      throw errorAt(
        'model',
        'UNSUPPORTED',
        'expected a model with a ranking head (pooling rank), an embedding model, or one like Qwen3-Reranker: ' +
          `${name} has no token ${text}`,
      );
    ids.push(id);
  }
  return [ids[0]!, ids[1]!];
}

export async function classify(
  model: EmbeddingModel,
  { inputs, use_activation, truncate_prompt_tokens, model: asked }: ValidClassifyRequest,
  signal: AbortSignal | undefined,
  { traceId }: Asker,
): Promise<ClassifyResponse> {
  const { labels = [], hasSoftmax = false } = model.head ?? {};
  if (labels.length === 0)
    throw errorAt('model', 'UNSUPPORTED', `expected a model with labels in its file, got ${model.name}`);
  const form = { add_special_tokens: true, truncate_prompt_tokens };
  const sequences = await toTokens(model, form, inputs);
  const rows = await model.embeddings.embed(sequences, signal);
  const data = rows.map((row, index) => {
    const probs = hasSoftmax || !use_activation ? Array.from(row) : probabilities(row);
    const label = labels[row.indexOf(maximum(row))]!;
    return { index, label, probs, num_classes: labels.length };
  });
  return {
    ...listOf('classify', traceId, asked ?? model.name),
    data,
    usage: usageOf(countTokens(sequences)),
  };
}

/** Sorts documents by score, best first. Documents with equal scores keep their order. */
export function toRerankResponse(
  { model: asked, pairs, top, returnsDocuments }: ValidRerankRequest,
  { scores, tokens, model }: PairScores,
  { traceId }: Asker,
): RerankResponse {
  const results = scores.map((relevance_score, index) => ({
    index,
    ...(returnsDocuments ? { document: { text: pairs[index]!.document.content } } : {}),
    relevance_score,
  }));
  const best = results.sort((a, b) => b.relevance_score - a.relevance_score).slice(0, top);
  return {
    id: `rerank-${traceId ?? randomUUID()}`,
    model: asked ?? model,
    usage: usageOf(tokens),
    results: best,
  };
}

/** Returns one score per pair, in order. */
export function toScoreResponse(
  { model: asked }: ValidPairs,
  { scores, tokens, model }: PairScores,
  { traceId }: Asker,
): ScoreResponse {
  const data = scores.map((score, index) => ({ index, object: 'score' as const, score }));
  return { ...listOf('score', traceId, asked ?? model), data, usage: usageOf(tokens) };
}

function listOf(kind: string, traceId: string | undefined, model: string) {
  const created = Math.floor(Date.now() / 1000);
  return { id: `${kind}-${traceId ?? randomUUID()}`, object: 'list' as const, created, model };
}

function usageOf(tokens: number): RankUsage {
  return { prompt_tokens: tokens, total_tokens: tokens };
}

function countTokens(sequences: readonly Int32Array[]): number {
  return sequences.reduce((sum, { length }) => sum + length, 0);
}

function probabilities(row: Float32Array): number[] {
  if (row.length === 1) return [sigmoid(row[0]!)];
  const most = maximum(row);
  const exps = Array.from(row, (value) => Math.exp(value - most));
  const total = exps.reduce((sum, value) => sum + value, 0);
  return exps.map((value) => value / total);
}

function maximum(row: Float32Array): number {
  return row.reduce((most, value) => Math.max(most, value));
}

function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

function cosine(one: Float32Array, other: Float32Array): number {
  const dot = (a: Float32Array, b: Float32Array): number =>
    a.reduce((sum, value, i) => sum + value * b[i]!, 0);
  return dot(one, other) / (Math.sqrt(dot(one, one) * dot(other, other)) || 1);
}
