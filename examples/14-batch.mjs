// @ts-check
/** Many texts -> JSON of each, in a file. Run it again after it was ended: it continues where it stopped, and does nothing twice. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createRuntime } from 'onpolicy';
import { z } from 'zod';

const Person = z.object({ name: z.string(), age: z.int().min(0).max(150), city: z.string() });
const schema = z.toJSONSchema(Person);

/** Texts from anywhere: a folder, a database, a CSV file. They are never all in memory at once. */
async function* texts() {
  for (const [i, name] of ['Omar', 'Nina', 'Olga', 'Hugo', 'Lena', 'Ivan'].entries())
    for (const city of ['Delhi', 'Paris', 'Cairo', 'Lima'])
      yield { id: `${name}-${city}`, text: `${name} is ${20 + i} years old and lives in ${city}.` };
}

/** @param {{ id: string, text: string }} row */
const toRequest = ({ id, text }) => ({
  custom_id: id,
  body: {
    messages: [{ role: 'user', content: `Extract the name, age and city as JSON: ${text}` }],
    response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
    temperature: 0,
  },
});

const runtime = await createRuntime();

// The first run is ended after half of the rows, as by a crash or Ctrl+C.
const output = 'people.jsonl';
let rows = 0;
for await (const row of runtime.batch(texts(), { output, toRequest, resume: true })) {
  rows += row.response ? 1 : 0;
  if (rows === 12) break;
}
console.log(`ended after ${rows} rows`);

const { completed, failed } = await runtime.batch(texts(), { output, toRequest, resume: true }).done;
console.log(`${completed} answered, ${failed} failed`);

let right = 0;
for await (const line of createInterface({ input: createReadStream(output) })) {
  const { custom_id, response } = JSON.parse(line);
  const person = Person.parse(JSON.parse(response.body.choices[0].message.content));
  if (custom_id === `${person.name}-${person.city}`) right += 1;
}
console.log(`${right} right`);
await runtime.close();
