// @ts-check
/** Questions about a picture, to the small model that sees and ships with the package. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createRuntime } from 'onpolicy';

const folder = new URL('../models/seeing/', import.meta.url);
const runtime = await createRuntime({ model: fileURLToPath(new URL('onpolicy-seeing.gguf', folder)) });
const picture = await readFile(new URL('pictures/three.png', folder));
const url = `data:image/png;base64,${picture.toString('base64')}`;

for (const text of ['What is in the picture?', 'How many shapes are there?', 'Where are the shapes?']) {
  const answer = await runtime.createCompletion({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url } },
          { type: 'text', text },
        ],
      },
    ],
    temperature: 0,
  });
  console.log(`${text} ${answer.choices[0]?.message.content}`);
}
await runtime.close();
