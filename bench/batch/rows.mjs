// A number of rows -> rows with shared prefixes and uneven answers; and rows asked for in their order, so many at a time.
import { wordPrompt } from '../lib/prompts.mjs';

export const IN_FLIGHT = 64;
export const PREFIXES = 20;
/** Words of a prefix of 500 tokens, in the vocabularies of large models and in that of the embedded one. */
const PREFIX_WORDS = { large: 470, embedded: 190 };

/** Answers of 5 to 200 tokens, most of them short. */
const answerTokens = (i) => 5 + Math.round(195 * ((i * 0.61803) % 1) ** 3);

/** `model`: a GGUF file; default the embedded model. `prefixes`: how many there are among the rows, in turn. */
export function* rowsOf(count, { model, prefixes = PREFIXES }) {
  const words = model ? PREFIX_WORDS.large : PREFIX_WORDS.embedded;
  for (let i = 0; i < count; i++)
    yield {
      custom_id: `row ${i}`,
      body: {
        messages: [
          { role: 'system', content: wordPrompt(words, i % prefixes) },
          { role: 'user', content: `What about number ${i}?` },
        ],
        max_tokens: answerTokens(i),
        ignore_eos: true,
        seed: i,
      },
    };
}

/** Asks for rows as they come. */
export async function inFlight(rows, ask, count = IN_FLIGHT) {
  const work = async () => {
    for (const row of rows) await ask(row);
  };
  await Promise.all(Array.from({ length: count }, work));
}
