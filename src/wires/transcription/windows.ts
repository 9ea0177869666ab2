/** Windows of a long sound -> what is said in them, joined to one transcript as they are heard. */
import type { ChatCompletion } from '../../protocol/index.ts';
import { joint } from './join-texts.ts';

/** A part of a transcript, and what the window cost that told it. */
export type Heard = { readonly delta: string; readonly answer: ChatCompletion };

/** Asks for one window after the other. The end of a text is told when the next one has shown where it was cut. */
export async function* hearWindows(
  windows: readonly Uint8Array[],
  ask: (window: Uint8Array) => Promise<ChatCompletion>,
): AsyncGenerator<Heard> {
  let open = '';
  for (const [i, window] of windows.entries()) {
    const answer = await ask(window);
    const text = answer.choices[0]?.message.content?.trim() ?? '';
    const { end, start } = joint(open, text);
    const told = open.slice(0, end);
    const rest = text.slice(start);
    open = told === '' || start > 0 || rest === '' ? rest : ` ${rest}`;
    const isLast = i === windows.length - 1;
    yield { delta: isLast ? told + open : told, answer };
  }
}
