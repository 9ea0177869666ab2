/** Names, properties and children -> elements. Text of a run is never parsed as markup. */

/**
 * Makes an element.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  /** @type {any} */
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name.includes('-') || name === 'role') element.setAttribute(name, String(value));
    /** @type {any} */ else element[name] = value;
  element.append(...children);
  return element;
}

/** @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/** A number in few digits. @param {unknown} value */
export function short(value) {
  if (typeof value !== 'number') return value === null || value === undefined ? '' : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6)
    ? value.toExponential(2)
    : String(Number(value.toPrecision(4)));
}

/** A colour of the theme. @param {string} name */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
