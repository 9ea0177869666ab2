/** Validation of text completion requests: any input -> valid prompts and the chat request that says how they are continued. */
import type { ErrorDetail } from '../errors.ts';
import { admitChatRequest, type ChatRequestOptions, fieldFaults, withRuleFaults } from './chat-completion.ts';
import type { Checked } from './checked.ts';
import { fault, throwFaults } from './faults.ts';
import type { ChatCompletionRequest, TextCompletionRequest } from './generated/request-types.ts';
import { PathTranslation } from './path-translation.ts';
import { isGiven } from './rules/rule.ts';
import { TEXT_FIELDS } from './schemas/text-completion.ts';
import type { ValidChatRequest } from './valid-chat-request.ts';
import { readingInput } from './validate.ts';

/** A prompt, and the caller's path of it. */
export type GivenPrompt = { readonly path: string; readonly content: string | readonly number[] };

export type ValidTextCompletionRequest = {
  /** How each prompt is continued. Its messages are empty; `n` is `best_of`. */
  readonly chat: ValidChatRequest;
  /** The prompts, at least one. */
  readonly prompts: readonly GivenPrompt[];
  readonly suffix: string | null;
  readonly echo: boolean;
  /** Number of most probable tokens to report. -1 means the whole vocabulary, null no log-probabilities. */
  readonly logprobs: number | null;
  /** As `logprobs`, but for the tokens of the prompt. */
  readonly promptLogprobs: number | null;
  /** Choices per prompt. */
  readonly n: number;
  /** True if no tokens are generated. */
  readonly isEmpty: boolean;
  readonly addSpecial: boolean;
  readonly returnTokenIds: boolean;
  /** The caller's names of the fields of `chat`. */
  readonly paths: PathTranslation;
};

const DEFAULT_MAX_TOKENS = 16;

/** Checks a request. Throws `INVALID_REQUEST` with all faults. */
export function checkTextCompletionRequest(
  input: unknown,
  options: ChatRequestOptions = {},
): Checked<TextCompletionRequest> {
  return readingInput(input, () => {
    throwFaults(fieldFaults('TextCompletionRequest', input, options));
    const request = input as Checked<TextCompletionRequest>;
    throwFaults([...promptFaults(request.prompt), ...ruleFaults(request)]);
    pathsOf(request).runNow(() => throwFaults(withRuleFaults(toChat(request), [], options)));
    return request;
  });
}

/** Normalizes a checked request. Throws `INVALID_REQUEST` for what this runtime does not allow. */
export function admitTextCompletionRequest(
  request: Checked<TextCompletionRequest>,
  limits: ChatRequestOptions,
): ValidTextCompletionRequest {
  const asChat = toChat(request) as Checked<ChatCompletionRequest>;
  const paths = pathsOf(request);
  const chat = paths.runNow(() => admitChatRequest(asChat, limits));
  const { suffix, echo, logprobs, n, max_tokens } = request;
  const ofPrompt = echo && (logprobs ?? null) !== null ? logprobs! : null;
  return {
    chat: {
      ...chat,
      prompt_logprobs: morePrompt(chat.prompt_logprobs, ofPrompt),
      return_token_ids: true,
    },
    prompts: toPrompts('prompt', request.prompt),
    suffix: suffix ?? null,
    echo: echo ?? false,
    logprobs: logprobs ?? null,
    promptLogprobs: chat.prompt_logprobs,
    n: n ?? 1,
    isEmpty: max_tokens === 0,
    addSpecial: chat.add_special_tokens,
    returnTokenIds: chat.return_token_ids,
    paths,
  };
}

function pathsOf({ best_of, prompt_logprobs }: TextCompletionRequest): PathTranslation {
  return new PathTranslation({
    max_completion_tokens: 'max_tokens',
    top_logprobs: 'logprobs',
    ...((best_of ?? null) === null ? {} : { n: 'best_of' }),
    ...((prompt_logprobs ?? null) === null ? { prompt_logprobs: 'logprobs' } : {}),
  });
}

/** Returns the faults of a prompt. The items of a list must be all texts, all ids, or all lists of ids. */
function promptFaults(prompt: TextCompletionRequest['prompt']): ErrorDetail[] {
  if (typeof prompt === 'string') return [];
  const kind = kindOf(prompt[0]);
  const odd = (prompt as readonly unknown[]).findIndex((item) => kindOf(item) !== kind);
  return odd < 0 ? [] : [fault(['prompt', String(odd)], 'conflict', `${kind} like the others`, prompt[odd])];
}

function kindOf(item: unknown): string {
  return typeof item === 'string' ? 'a text' : Array.isArray(item) ? 'a list of ids' : 'a token id';
}

/** Fields about the times of one prompt and its answer. */
const ONE_PROMPT = ['return_timings', 'timings_per_token', 'return_progress'] as const;

function ruleFaults(request: TextCompletionRequest): ErrorDetail[] {
  const { prompt, suffix, echo, n, best_of, stream, use_beam_search, min_tokens, max_tokens, logprobs } =
    request;
  const { logprob_token_ids } = request;
  const faults: ErrorDetail[] = [];
  const refuse = (field: string, expected: string, input: unknown): void => {
    faults.push(fault([field], 'conflict', expected, input));
  };
  const hasSuffix = (suffix ?? null) !== null;
  if (hasSuffix && echo) refuse('echo', 'false with suffix', echo);
  if (hasSuffix && typeof prompt !== 'string' && typeof prompt[0] !== 'string')
    refuse('suffix', 'no value with prompts of token ids', suffix);
  const choices = n ?? 1;
  if (best_of != null && best_of < choices) refuse('best_of', `at least the ${choices} of n`, best_of);
  if (best_of != null && best_of > choices && (stream || use_beam_search))
    refuse('best_of', `n with ${stream ? 'stream' : 'use_beam_search'}: true`, best_of);
  if (echo && use_beam_search && (logprobs ?? null) !== null)
    refuse('echo', 'false with logprobs and use_beam_search: true', echo);
  const isMany = typeof prompt !== 'string' && typeof prompt[0] !== 'number' && prompt.length > 1;
  for (const field of ONE_PROMPT) {
    if (request[field] && isMany) refuse(field, 'false with several prompts', request[field]);
    else if (request[field] && max_tokens === 0) refuse(field, 'false with max_tokens: 0', request[field]);
  }
  if (max_tokens === 0 && (min_tokens ?? 0) > 0) refuse('min_tokens', '0 with max_tokens: 0', min_tokens);
  if (max_tokens === 0 && isGiven(logprob_token_ids))
    refuse('logprob_token_ids', 'no value with max_tokens: 0, which generates no token', logprob_token_ids);
  return faults;
}

/** Returns an equivalent chat completion request, without the prompt. */
function toChat(request: TextCompletionRequest): ChatCompletionRequest {
  const { max_tokens, logprobs, best_of, n, add_special_tokens } = request;
  const isRanked = (best_of ?? 1) > (n ?? 1);
  const given = TEXT_FIELDS.filter((field) => request[field as 'seed'] !== undefined);
  const own = Object.fromEntries(given.map((field) => [field, request[field as 'seed']]));
  return {
    ...own,
    messages: [],
    n: best_of ?? n,
    max_completion_tokens: max_tokens === undefined ? DEFAULT_MAX_TOKENS : max_tokens === 0 ? 1 : max_tokens,
    add_special_tokens: add_special_tokens ?? true,
    ...((logprobs ?? null) === null ? { logprobs: isRanked } : { logprobs: true, top_logprobs: logprobs }),
  };
}

/** Returns the larger of two numbers of most probable tokens. -1 is the largest, null the smallest. */
function morePrompt(one: number | null, other: number | null): number | null {
  if (one === -1 || other === -1) return -1;
  return one === null ? other : other === null ? one : Math.max(one, other);
}

/** Returns the texts and lists of ids in a field. Lists are copied, because callers may change theirs later. */
export function toPrompts(field: string, given: TextCompletionRequest['prompt']): GivenPrompt[] {
  if (typeof given === 'string' || typeof given[0] === 'number')
    return [{ path: field, content: given as string | readonly number[] }];
  return (given as readonly (string | readonly number[])[]).map((content, i) => ({
    path: `${field}.${i}`,
    content: typeof content === 'string' ? content : [...content],
  }));
}
