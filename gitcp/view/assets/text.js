// Lays out what an agent wrote: paragraphs, lists, code. A few marks of Markdown are
// recognised; none of them can make a link or an image.

const FENCE = /^\s{0,3}(`{3,}|~{3,})/;

function prose(text) {
  const made = [];
  let lines = [], fence = null;
  const flush = () => {
    if (lines.length) made.push(...(fence === null ? paragraphs(lines) : [el('pre', '', ...long(lines.join('\n')))]));
    lines = [];
  };
  for (const line of text.split('\n')) {
    const mark = FENCE.exec(line);
    if (mark && (fence === null || mark[1].startsWith(fence))) {
      flush();
      fence = fence === null ? mark[1] : null;
    } else {
      lines.push(line);
    }
  }
  flush();
  return made;
}

function paragraphs(lines) {
  const made = [];
  let block = [];
  const flush = () => {
    if (block.length) made.push(el('p', '', ...inline(block.join('\n'))));
    block = [];
  };
  for (const line of lines) {
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const item = /^(\s*)(?:[-*•]|\d{1,3}[.)])\s+(.*)$/.exec(line);
    if (!line.trim()) {
      flush();
    } else if (heading) {
      flush();
      made.push(el('p', 'heading', ...inline(heading[1])));
    } else if (item) {
      flush();
      const mark = line.trim().split(/\s/, 1)[0];
      const deep = item[1].length > 1 ? 'item deep' : 'item';
      made.push(el('p', deep, el('span', 'mark', /\d/.test(mark) ? mark : '–'), el('span', '', ...inline(item[2]))));
    } else {
      block.push(line);
    }
  }
  flush();
  return made;
}

// Texts with `code` and **strong** parts.
function inline(text) {
  if (text.length > LONG) return long(text);
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).filter(Boolean).map((part) => {
    if (part.length > 2 && part.startsWith('`') && part.endsWith('`')) return el('code', '', part.slice(1, -1));
    if (part.length > 4 && part.startsWith('**') && part.endsWith('**')) return el('strong', '', part.slice(2, -2));
    return part;
  });
}
