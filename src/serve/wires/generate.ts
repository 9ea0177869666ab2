/** Token ids -> a text completion request, and its answer in token ids: vLLM's `/inference/v1/generate`, and what is before and behind it. */
import {
  fault,
  type GenerateBody,
  type GeneratedTokens,
  PathTranslation,
  type TextCompletion,
  type TextCompletionChunk,
  type TextCompletionRequest,
  type TextLogprobs,
  throwFaults,
} from '../../protocol/index.ts';

/** Fields of a text completion request that a body has itself, or that an answer in tokens has no place for. */
const OWN_FIELDS = [
  ...['prompt', 'suffix', 'echo', 'best_of', 'model', 'request_id', 'stream', 'stream_options'],
  ...['cache_salt', 'priority', 'kv_transfer_params', 'return_token_ids', 'return_tokens_as_token_ids'],
] as const;

/** A text completion request, not checked, and the caller's names of its fields. */
type Translated = { readonly request: TextCompletionRequest; readonly paths: PathTranslation };

/** Translates a checked body. Throws `INVALID_REQUEST` for sampling parameters that are fields of the body. */
export function toTextRequest(body: GenerateBody): Translated {
  const { token_ids, sampling_params, output_mode: _, return_token_ids: __, ...rest } = body;
  const params = sampling_params ?? {};
  const misplaced = OWN_FIELDS.filter((field) => field in params);
  throwFaults(
    misplaced.map((field) => fault(['sampling_params', field], 'value', 'no such key', params[field])),
  );
  const names = Object.keys(params).map((field): [string, string] => [field, `sampling_params.${field}`]);
  const paths = new PathTranslation({ ...Object.fromEntries(names), prompt: 'token_ids' });
  const asked = { return_token_ids: true, return_tokens_as_token_ids: true };
  return { request: { max_tokens: null, ...params, ...rest, ...asked, prompt: token_ids }, paths };
}

/** Returns the sampling parameters of a text completion request. Throws `INVALID_REQUEST` for fields that tokens have no place for. */
export function samplingParamsOf(request: TextCompletionRequest): Record<string, unknown> {
  const refused = (['suffix', 'echo', 'best_of'] as const).filter((field) => request[field]);
  throwFaults(
    refused.map((field) => fault([field], 'value', 'no value for a prompt of tokens', request[field])),
  );
  return Object.fromEntries(
    Object.entries(request).filter(([field]) => !(OWN_FIELDS as readonly string[]).includes(field)),
  );
}

/** Log-probabilities with token ids in place of texts. */
type TokenScores = { readonly content: readonly TokenScore[] };
type TokenScore = {
  readonly token: string;
  readonly token_id: number;
  readonly logprob: number;
  readonly top_logprobs: readonly Omit<TokenScore, 'top_logprobs'>[];
};

const scoreOf = ([token, logprob]: readonly [string, number]): Omit<TokenScore, 'top_logprobs'> => ({
  token,
  token_id: Number(token.slice('token_id:'.length)),
  logprob,
});

function scoresOf(logprobs: TextLogprobs | null): TokenScores | null {
  if (!logprobs) return null;
  const { tokens, token_logprobs, top_logprobs } = logprobs;
  const content = tokens.map((token, i) => ({
    ...scoreOf([token, token_logprobs[i] as number]),
    top_logprobs: Object.entries(top_logprobs[i] as Record<string, number>).map(scoreOf),
  }));
  return { content };
}

type Choice = TextCompletion['choices'][number] | TextCompletionChunk['choices'][number];

function toChoice(choice: Choice, { output_mode }: GenerateBody): object {
  const { index, token_ids, finish_reason, stop_reason = null, logprobs, text } = choice;
  const own = { index, token_ids: token_ids ?? [], finish_reason, stop_reason, logprobs: scoresOf(logprobs) };
  return output_mode === 'text' ? { ...own, text } : own;
}

const idOf = (id: string): string => id.slice('cmpl-'.length);

/** Converts an answer. */
export function toGenerated(answer: TextCompletion, body: GenerateBody): object {
  const [first] = answer.choices;
  return {
    request_id: idOf(answer.id),
    model: answer.model,
    created: answer.created,
    output_mode: body.output_mode ?? 'tokens',
    choices: answer.choices.map((choice) => toChoice(choice, body)),
    usage: answer.usage,
    prompt_logprobs: first?.prompt_logprobs ?? null,
    prompt_token_ids: body.return_token_ids ? (first?.prompt_token_ids ?? null) : null,
    kv_transfer_params: answer.kv_transfer_params,
  };
}

/** Converts a chunk of a stream. */
export function toGeneratedChunk({ id, choices, usage }: TextCompletionChunk, body: GenerateBody) {
  const prompt = choices[0]?.prompt_token_ids;
  return {
    request_id: idOf(id),
    choices: choices.map((choice) => toChoice(choice, body)),
    ...(body.return_token_ids && prompt ? { prompt_token_ids: prompt } : {}),
    ...(usage ? { usage } : {}),
  };
}

/** Shows answers in tokens as a text completion. `textOf`: the text of tokens. */
export async function toTextCompletion(
  answers: readonly GeneratedTokens[],
  promptTokens: readonly number[],
  header: Pick<TextCompletion, 'created' | 'model'>,
  textOf: (ids: readonly number[]) => Promise<string>,
): Promise<object> {
  const choices: object[] = [];
  let completion_tokens = 0;
  for (const { choices: given } of answers)
    for (const { token_ids, finish_reason, logprobs } of given) {
      completion_tokens += token_ids.length;
      choices.push({
        index: choices.length,
        text: await textOf(token_ids),
        logprobs: logprobs ? await textScores(logprobs.content, textOf) : null,
        finish_reason: finish_reason ?? 'stop',
        token_ids,
      });
    }
  const prompt_tokens = promptTokens.reduce((sum, count) => sum + count, 0);
  return {
    id: `cmpl-${answers[0]?.request_id ?? ''}`,
    object: 'text_completion',
    ...header,
    choices,
    usage: { prompt_tokens, total_tokens: prompt_tokens + completion_tokens, completion_tokens },
  };
}

type GivenScores = NonNullable<GeneratedTokens['choices'][number]['logprobs']>['content'];

async function textScores(
  content: GivenScores,
  textOf: (ids: readonly number[]) => Promise<string>,
): Promise<TextLogprobs> {
  const scores: TextLogprobs = { text_offset: [], token_logprobs: [], tokens: [], top_logprobs: [] };
  let offset = 0;
  for (const { token_id, logprob, top_logprobs = [] } of content) {
    const token = await textOf([token_id]);
    scores.text_offset.push(offset);
    scores.tokens.push(token);
    scores.token_logprobs.push(logprob);
    const top: Record<string, number> = {};
    for (const best of top_logprobs) top[await textOf([best.token_id])] ??= best.logprob;
    scores.top_logprobs.push(top);
    offset += [...token].length;
  }
  return scores;
}
