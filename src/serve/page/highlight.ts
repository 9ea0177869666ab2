/** Code and its language -> coloured pieces. */
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import markdown from 'highlight.js/lib/languages/markdown';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';
import { make } from './elements.ts';

const lowlight = createLowlight({
  ...{ bash, c, cpp, csharp, css, diff, go, java, javascript, json, markdown, python, rust, sql, typescript },
  ...{ xml, yaml },
});
lowlight.registerAlias({ bash: ['shell', 'console'], json: ['json5'] });

/** Longer code stays plain, because it is coloured again with each new line. */
const LONGEST = 50_000;

type Piece = ReturnType<typeof lowlight.highlight>['children'][number];

/** Returns coloured pieces of code, or the code as it is if its language is not known here. */
export function highlight(code: string, language: string): (Node | string)[] {
  const name = language.toLowerCase();
  if (!lowlight.registered(name) || code.length > LONGEST) return [code];
  return lowlight.highlight(name, code).children.flatMap(nodeOf);
}

function nodeOf(piece: Piece): (Node | string)[] {
  if (piece.type === 'text') return [piece.value];
  if (piece.type !== 'element') return [];
  const names = piece.properties['className'];
  return [make('span', { className: [names].flat().join(' ') }, ...piece.children.flatMap(nodeOf))];
}
