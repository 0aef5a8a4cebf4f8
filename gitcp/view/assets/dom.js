// Makes elements. All text of a session enters the page here, as text: nothing is parsed.

const SVG = 'http://www.w3.org/2000/svg';

function find(id) {
  return document.getElementById(id);
}

// el('p', 'class', child, …): a child is an element, a text, or null for none.
function el(name, kind, ...children) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  put(made, ...children);
  return made;
}

function put(parent, ...children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) {
      parent.append(typeof child === 'string' ? visible(child) : child);
    }
  }
  return parent;
}

function refill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, ...children);
}

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function button(kind, title, act, ...children) {
  const made = el('button', kind, ...children);
  made.type = 'button';
  if (title) made.title = title;
  made.addEventListener('click', act);
  return made;
}

// Characters that would turn lines around, or that no reader can see.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

// Returns a text as it is, but for characters that cannot be seen: these are named.
function visible(text) {
  if (text.search(UNSEEN) < 0) return document.createTextNode(text);
  const made = document.createDocumentFragment();
  let at = 0;
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > at) made.append(text.slice(at, match.index));
    const mark = document.createElement('span');
    mark.className = 'unseen';
    mark.textContent = named(match[0].codePointAt(0));
    made.append(mark);
    at = match.index + match[0].length;
  }
  made.append(text.slice(at));
  return made;
}

function named(code) {
  if (code === 13) return '␍';
  if (code === 27) return '␛';
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

const LONG = 20000;

// Returns a text, of a very long one the beginning and a button for the rest.
function long(text, limit = LONG) {
  if (text.length <= limit) return [text];
  const rest = button('more', '', () => rest.replaceWith(visible(text.slice(limit))),
    `… show ${(text.length - limit).toLocaleString('en')} more characters`);
  return [text.slice(0, limit), rest];
}
