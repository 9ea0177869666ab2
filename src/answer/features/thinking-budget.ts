/** `reasoning.max_tokens` of a request, or the caller of a stream -> the end of each choice's reasoning: its tokens are forced. */
import { errorAt } from '../../errors.ts';
import { reasoningEnd } from '../../template/reasoning/index.ts';
import type { Feature } from '../feature.ts';
import type { OpenedRequest } from '../open-request.ts';

/** Limits the reasoning of each choice, which may be ended at any time in a stream. A few more tokens may come to complete a character. */
export async function thinkingBudget(opened: OpenedRequest): Promise<Feature | null> {
  const { request, model, message, coversReasoning } = opened;
  const { thinking_token_budget: maxTokens, reasoning_budget_message: reason } = request;
  if (message.reasoning === null || request.use_beam_search) return null;
  if (maxTokens === null && !request.stream) return null;
  const { format } = message.reasoning;
  if (reason.includes(format.end.trim()))
    throw errorAt(
      'reasoning_budget_message',
      'INVALID_REQUEST',
      `expected a text without ${JSON.stringify(format.end)}, which ends the reasoning of this model`,
    );
  const text = coversReasoning ? format.end : reasoningEnd(format); // the grammar itself requires the text after the end marker
  const encode = (part: string, parseSpecial: boolean): Promise<Int32Array> =>
    model.tokenizer.encode(part, { addSpecial: false, parseSpecial });
  const end = Int32Array.of(...(await encode(reason, false)), ...(await encode(text, true)));
  return {
    part: (choice) => {
      let limit = maxTokens ?? Number.POSITIVE_INFINITY;
      let isEndForced = false; // the end of the reasoning
      return {
        /**
         * Limits drafts to the tokens left in the budget. If reasoning begins again after the answer, a draft of its beginning may exceed
         * the budget by a few tokens.
         */
        beforeNext(sequence) {
          if (limit === Number.POSITIVE_INFINITY) return false;
          const { message, reasoningTokens, canEndReasoning, tokenIds } = choice;
          if (!message.isReasoning) isEndForced = false;
          const left = limit - reasoningTokens;
          if (left <= 0 && !isEndForced && canEndReasoning) {
            isEndForced = true;
            sequence.sampler.force(end);
          }
          const isBounded = message.isReasoning || tokenIds.length === 0;
          sequence.outputsBeforeForced = isBounded ? Math.max(0, left) : Infinity;
          return true;
        },
        endReasoning() {
          limit = 0;
        },
      };
    },
  };
}
