/** `reasoning_effort: 'none'`: a model that would reason cannot. */
import { describe, expect, it } from 'vitest';
import { openRuntime, request } from './asking.ts';
import { forced, PLAIN } from './fields/model.ts';

const { runtime } = openRuntime();
const THINKS = `${PLAIN}{% if false %}<think></think>{% endif %}`;

describe('reasoning_effort', () => {
  it('none lets no reasoning begin', async () => {
    const asked = await forced(runtime(), '<think>why</think>so', { chat_template: THINKS });
    const reasoned = await runtime().createCompletion({ ...asked, stream: false });
    expect(reasoned.choices[0]!.message).toMatchObject({ reasoning: 'why', content: 'so' });
    await expect(
      runtime().createCompletion({ ...asked, reasoning_effort: 'none', stream: false }),
    ).rejects.toMatchObject({ code: 'NO_ALLOWED_TOKEN' });
  });

  it('none closes what the prompt has opened', async () => {
    const asked = await forced(runtime(), 'so', { chat_template: `${PLAIN}<think>\n` });
    const open = await runtime().createCompletion({ ...asked, stream: false });
    expect(open.choices[0]!.message).toMatchObject({ reasoning: 'so', content: null });
    const none = { ...asked, reasoning_effort: 'none' as const, return_token_ids: true };
    const { choices, prompt_token_ids } = await runtime().createCompletion({ ...none, stream: false });
    expect(choices[0]!.message).toMatchObject({ reasoning: null, content: 'so' });
    expect(await runtime().detokenize(prompt_token_ids!)).toBe('Say it.<think>\n</think>\n\n');
  });

  it.each(['minimal', 'low', 'medium', 'high'] as const)('%s answers', async (reasoning_effort) => {
    const asked = request('What is the capital of France?', { reasoning_effort, max_tokens: 5 });
    expect((await runtime().createCompletion({ ...asked, stream: false })).usage.completion_tokens).toBe(5);
  });
});
