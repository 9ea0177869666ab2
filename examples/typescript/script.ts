/** A story as the model writes it, then an answer as a typed object. */
import { createRuntime, schema } from 'onpolicy';

interface Person {
  name: string;
  age: number;
  city: string;
}

const Person = schema<Person>({
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0 }, city: { type: 'string' } },
  required: ['name', 'age', 'city'],
});

// The embedded model answers. A larger one: createRuntime({ model: 'hf:Qwen/Qwen3-4B-GGUF:Q4_K_M' })
const runtime = await createRuntime();

const stream = await runtime.createCompletion({
  messages: [{ role: 'user', content: 'Tell me a story.' }],
  stream: true,
});
for await (const text of stream.text) process.stdout.write(text);

const { parsed } = await runtime.createCompletion({
  messages: [
    {
      role: 'user',
      content: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
    },
  ],
  response_format: Person, // the model can write nothing else
  temperature: 0,
});
console.log(`\n\n${parsed.name} is ${parsed.age} and lives in ${parsed.city}.`);

await runtime.close();
