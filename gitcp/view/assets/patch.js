// Shows a patch: unified or side by side, with what differs inside of changed lines.

const MOST = 600;

// Returns the lines of a patch: [sign, old number, new number, text].
function linesIn(patch) {
  const made = [];
  let old = 0, now = 0;
  for (const line of patch.split('\n')) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/.exec(line);
    if (head) {
      [old, now] = [Number(head[1]), Number(head[2])];
      if (made.length || old > 1 || head[3]) made.push(['@', null, null, head[3]]);
    } else if (/^(new|deleted) file mode 100644$/.test(line)) {
      // That is what a file has if nothing is said.
    } else if (line[0] === '+') made.push(['+', null, now++, line.slice(1)]);
    else if (line[0] === '-') made.push(['-', old++, null, line.slice(1)]);
    else if (line[0] === ' ') made.push([' ', old++, now++, line.slice(1)]);
    else if (line[0] === '\\') made.push(['\\', null, null, line.slice(2)]);
    else if (line) made.push(['m', null, null, line]);
  }
  return made;
}

// Groups lines: a block of changes has both its sides, all else stands alone.
function blocksOf(lines) {
  const made = [];
  let block = null;
  for (const line of lines) {
    const side = line[0] === '-' ? 0 : line[0] === '+' ? 1 : null;
    if (side === null) {
      block = null;
      made.push({ line });
    } else {
      if (!block || (side === 0 && block.sides[1].length)) made.push(block = { sides: [[], []] });
      block.sides[side].push(line);
    }
  }
  return made;
}

// Returns where two lines differ: the ends of what they begin and end with alike.
function differing(one, other) {
  const most = Math.min(one.length, other.length);
  let start = 0, end = 0;
  while (start < most && one[start] === other[start]) start++;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return [start, end];
}

function code(line, partner) {
  const text = line[3];
  const made = el('span', 'code');
  if (!partner || text.length > 2000 || partner[3].length > 2000) return put(made, ...long(text, 2000));
  const [start, end] = differing(text, partner[3]);
  const alike = start + end;
  // Where hardly anything is alike, marks would only be noise.
  if (alike * 3 < text.length || alike === text.length) return put(made, text);
  put(made, text.slice(0, start), el('mark', '', text.slice(start, text.length - end)), text.slice(text.length - end));
  return made;
}

const KINDS = { '+': 'add', '-': 'sub', ' ': 'same', '@': 'hunk', '\\': 'meta', m: 'meta' };

function lineRow(line, partner) {
  const number = (value) => el('span', 'no', value === null ? '' : String(value));
  return el('div', `l ${KINDS[line[0]]}`, number(line[1]), number(line[2]), code(line, partner));
}

function unified(blocks) {
  return blocks.flatMap((block) => {
    if (block.line) return [lineRow(block.line)];
    const [old, now] = block.sides;
    return [...old.map((line, at) => lineRow(line, now[at])), ...now.map((line, at) => lineRow(line, old[at]))];
  });
}

function halves(left, right) {
  const half = (line, partner, side) => {
    if (!line) return [el('span', 'no'), el('span', 'code empty')];
    const made = code(line, partner);
    made.classList.add(KINDS[line[0]]);
    return [el('span', `no ${KINDS[line[0]]}`, String(line[side])), made];
  };
  return el('div', 'l pair', ...half(left, right, 1), ...half(right, left, 2));
}

function split(blocks) {
  return blocks.flatMap((block) => {
    if (block.line) {
      const line = block.line;
      if (line[0] !== ' ') return [lineRow(line)];
      return [el('div', 'l pair', el('span', 'no', String(line[1])), code(line), el('span', 'no', String(line[2])), code(line))];
    }
    const [old, now] = block.sides;
    const most = Math.max(old.length, now.length);
    return Array.from({ length: most }, (_, at) => halves(old[at], now[at]));
  });
}

function patchView(patch, sides) {
  const lines = linesIn(patch);
  const show = (some) => (sides === 'split' ? split : unified)(blocksOf(some));
  const made = el('div', `patch ${sides}`, ...show(lines.slice(0, MOST)));
  if (lines.length > MOST) {
    const rest = button('more', '', () => {
      rest.remove();
      put(made, ...show(lines.slice(MOST)));
    }, `… show ${(lines.length - MOST).toLocaleString('en')} more lines`);
    made.append(rest);
  }
  return made;
}
