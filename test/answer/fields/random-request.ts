/** Random numbers -> a request over most fields at once. */
import type { ChatCompletionRequest } from '../../../src/protocol/index.ts';
import type { Fields } from './model.ts';

const QUESTIONS = [
  'What is the capital of France?',
  'Tell me a story.',
  'Count from 1 to 9.',
  'What is the weather in Paris?',
];

/** Some requests contradict themselves, or leave no token to sample: they are refused. */
export function randomRequest(next: () => number): ChatCompletionRequest {
  const one = <T>(...choices: readonly T[]): T => choices[Math.floor(next() * choices.length)]!;
  const often = (share: number, fields: () => Fields): Fields => (next() < share ? fields() : {});
  const id = (): number => Math.floor(next() * 300);
  const beams = next() < 0.12;
  const temperature = one(0, 0, 0.7, 1.3);
  const question = { role: 'user' as const, content: one(...QUESTIONS) };
  const continued = next() < 0.2;
  const steering: Fields = beams
    ? { use_beam_search: true, length_penalty: one(0.5, 1, 2) }
    : {
        temperature,
        seed: Math.floor(next() * 1000),
        ...often(0.2, () => ({ top_p: 0.8 })),
        ...often(0.2, () => ({ top_k: 5 })),
        ...often(0.2, () => ({ min_p: 0.02 })),
        ...often(0.2, () => ({ frequency_penalty: one(-0.5, 1) })),
        ...often(0.2, () => ({ presence_penalty: 0.7 })),
        ...often(0.2, () => ({ repetition_penalty: 1.2 })),
        ...often(0.2, () => ({ min_tokens: one(1, 4) })),
        ...often(0.2, () => ({ logits_processors: [() => {}] })),
        ...often(0.2, () => ({
          structured_outputs: one(
            { regex: '[a-z ]{3,9}' },
            { choice: ['Paris', 'Rome!'] },
            { json_object: true },
          ),
        })),
      };
  return {
    messages: continued ? [question, { role: 'assistant', content: 'Well, the' }] : [question],
    continue_final_message: continued,
    n: beams || temperature > 0 ? one(1, 2, 3) : 1,
    max_tokens: one(4, 9, 24),
    return_token_ids: true,
    ...steering,
    ...often(0.3, () => ({ stop: one(['a'], [' c', 'e '], ['the'], ['2, 3', '7']) })),
    ...often(0.2, () => ({ stop_token_ids: [id(), id(), id()] })),
    ...often(0.3, () => ({ include_stop_str_in_output: true })),
    ...often(0.2, () => ({ ignore_eos: true })),
    ...often(0.2, () => ({ skip_special_tokens: false, spaces_between_special_tokens: one(true, false) })),
    ...often(0.2, () => ({ logit_bias: { [id()]: 3, [id()]: -3 } })),
    ...often(0.2, () => ({ bad_words: [one('Paris', 'the', ','), 'story'] })),
    ...often(0.4, () => ({
      logprobs: true,
      top_logprobs: one(0, 2, 5),
      return_tokens_as_token_ids: one(true, false),
    })),
    ...often(0.3, () => ({ echo: true })),
    ...often(0.2, () => ({ truncate_prompt_tokens: one(5, 12, -1) })),
    ...often(0.2, () => ({ cache_salt: one('a', 'b') })),
    ...often(0.25, () => ({
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
      parallel_tool_calls: one(true, false),
    })),
  };
}
