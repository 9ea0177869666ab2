/** Tag, properties and content -> an element. The page builds all that it shows with these functions, and never from HTML. */

/** Creates an element with these properties and this content. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Partial<HTMLElementTagNameMap[Tag]> = {},
  ...content: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

/** Drawings of 24 by 24 units, as paths of an SVG. */
const ICONS = {
  send: 'M12 19V5M5 12l7-7 7 7',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  done: 'M5 13l4 4L19 7',
  retry: 'M20 11a8 8 0 1 0-2.3 6.3M20 4v7h-7',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  image: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01',
  close: 'M6 6l12 12M18 6L6 18',
  down: 'M12 5v14M5 12l7 7 7-7',
} as const;

/** Creates a drawing in the colour of the text around it. */
function icon(name: keyof typeof ICONS): SVGSVGElement {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** Creates a button with a drawing. `title` names it for everybody. */
export function iconButton(name: keyof typeof ICONS, title: string, onclick: () => void): HTMLButtonElement {
  const button = make('button', { type: 'button', className: 'chat-icon', title, onclick }, icon(name));
  button.ariaLabel = title;
  return button;
}

/** Milliseconds for which a button says that its text was copied. */
const COPIED_MS = 1500;

/** Creates a button that copies a text, or nothing where the browser allows no copying: pages without TLS from other machines. */
export function copyButton(title: string, text: () => string): readonly HTMLButtonElement[] {
  if (!('clipboard' in navigator)) return [];
  const button = iconButton('copy', title, () => {
    void navigator.clipboard.writeText(text()).then(() => {
      button.replaceChildren(icon('done'));
      setTimeout(() => button.replaceChildren(icon('copy')), COPIED_MS);
    });
  });
  return [button];
}

/** Grows with its text up to the height that the style allows. */
export function fitHeight(area: HTMLTextAreaElement): void {
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight + 2}px`;
}
