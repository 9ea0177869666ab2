// @ts-check
/** An answer that fits a schema of zod (npm install zod): the model can write nothing else, and `parsed` has its type. */
import { createCompletion, schema } from 'onpolicy';
import { z } from 'zod';

const Person = z.object({ name: z.string(), age: z.int().min(0).max(150), city: z.string() });

const { parsed } = await createCompletion({
  messages: [
    {
      role: 'user',
      content: 'Extract the name, age and city as JSON: Omar is 26 years old and lives in Delhi.',
    },
  ],
  response_format: schema(Person),
  temperature: 0,
});

console.log(`${parsed.name}, ${parsed.age}, from ${parsed.city}`);
