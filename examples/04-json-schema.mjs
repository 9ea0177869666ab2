// @ts-check
/** An answer constrained to a JSON Schema that zod writes: the model can write nothing else, so it always parses. */
import { createCompletion } from 'onpolicy';
import { z } from 'zod';

const Person = z.object({ name: z.string(), age: z.int().min(0).max(150), city: z.string() });

const { choices } = await createCompletion({
  messages: [
    {
      role: 'user',
      content: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
    },
  ],
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'person', schema: z.toJSONSchema(Person) },
  },
  temperature: 0,
});

const person = Person.parse(JSON.parse(choices[0]?.message.content ?? ''));
console.log(`${person.name}, ${person.age}, from ${person.city}`);
