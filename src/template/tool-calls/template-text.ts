/** Chat template -> the template without comments. */

/** Removes `{# ... #}`. */
export function withoutComments(template: string): string {
  let text = '';
  let at = 0;
  for (;;) {
    const begin = template.indexOf('{#', at);
    const end = begin < 0 ? -1 : template.indexOf('#}', begin + 2);
    if (end < 0) return text + template.slice(at);
    text += template.slice(at, begin);
    at = end + 2;
  }
}
