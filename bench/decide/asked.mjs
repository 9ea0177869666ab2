// The questions of a decision and states to ask them about, and the time that an answer takes.

/** Texts of yes/no questions. */
export const askedTexts = (count) =>
  Array.from({ length: count }, (_, i) => `Is item ${i + 100} greater than ${i + 50}?`);

/** Returns a text of about so many tokens that no text of another seed begins with. `count`: the tokens of a text. */
export async function newState(seed, tokens, count) {
  let text = `Report ${seed}.`;
  for (let i = 0; (await count(text)) < tokens - 40; i++)
    text += ` Item ${(seed * 7919 + i * 104729) % 99991} was counted by the team in room ${i % 17}.`.repeat(
      8,
    );
  return text;
}

/** Runs some work. Returns the milliseconds that it took, and those of processors that this process spent. */
export async function time(work) {
  const start = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return { ms: performance.now() - start, cpuMs: (user + system) / 1000 };
}
