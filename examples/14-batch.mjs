// @ts-check
/**
 * Many texts -> what zod (npm install zod) reads in the answer of each. Run it again after it was ended: it continues where it stopped, and
 * does nothing twice.
 */
import { createRuntime, schema } from 'onpolicy';
import { z } from 'zod';

const Person = z.object({ name: z.string(), age: z.int().min(0).max(150), city: z.string() });

/** Texts from anywhere: a folder, a database, a CSV file. They are never all in memory at once. */
async function* texts() {
  for (const [i, name] of ['Omar', 'Nina', 'Olga', 'Hugo', 'Lena', 'Ivan'].entries())
    for (const city of ['Delhi', 'Paris', 'Cairo', 'Lima'])
      yield { id: `${name}-${city}`, text: `${name} is ${20 + i} years old and lives in ${city}.` };
}

const runtime = await createRuntime();
const people = () =>
  runtime.batch(texts(), {
    output: 'people.jsonl',
    resume: true,
    results: 'all', // a resumed run yields the rows of earlier ones, too
    response_format: schema(Person),
    toRequest: ({ id, text }) => ({
      custom_id: id,
      body: {
        messages: [{ role: 'user', content: `Extract the name, age and city as JSON: ${text}` }],
        temperature: 0,
      },
    }),
  });

// The first run is ended after half of the rows, as by a crash or Ctrl+C.
let rows = 0;
for await (const row of people()) {
  rows += row.response ? 1 : 0;
  if (rows === 12) break;
}
console.log(`ended after ${rows} rows`);

const run = people();
let right = 0;
for await (const { custom_id, parsed } of run)
  if (parsed && custom_id === `${parsed.name}-${parsed.city}`) right += 1;
const { completed, failed } = await run.done;
console.log(`${completed} answered, ${failed} failed`);
console.log(`${right} right`);
await runtime.close();
