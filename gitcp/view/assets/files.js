// The second column: which files the selected turn changed, as a tree, and how.

class Files {
  constructor(place) {
    this.place = place;
    this.sides = 'unified';
    this.marked = new Set();
  }

  draw(page) {
    this.page = page;
  }

  select(at) {
    this.at = at;
    this.focus = -1;
    this.marked = new Set();
    this.show();
    this.place.scrollTop = 0;
  }

  setSides(sides) {
    this.sides = sides;
    if (this.at !== undefined) {
      const top = this.place.scrollTop;
      this.show();
      this.place.scrollTop = top;
    }
  }

  show() {
    const row = this.page.rows[this.at];
    const files = row.files || [];
    this.parts = files.map((file) => this.part(file));
    refill(this.place, this.head(row), this.what(row, files), ...this.parts);
  }

  head(row) {
    const name = argumentOf(row);
    const now = clock(row.at);
    const title = el('h2', '', el('span', 'number', nameOf(row)), ' ', titleOf(row));
    title.dir = 'auto';
    const about = el('p', 'quiet', `${now.day} ${now.time} · ${row.id}`,
      (row.inside || []).length ? ` · inside ${row.inside.map((number) => `#${number}`).join(' ')}` : null,
      row.skipped ? ` · ${row.skipped} not captured` : null);
    const commands = el('div', 'commands', command(`gitcp show ${name}`, 'Shows this turn in the terminal'),
      command(`gitcp restore ${name}`, 'Goes back to it, after showing what would change'));
    return el('div', 'head', title, about, commands);
  }

  // One line on what changed, and the tree of it.
  what(row, files) {
    const [added, modified, deleted] = changedIn(row);
    const total = added + modified + deleted;
    if (!this.page.files) {
      const text = total ? `${total} ${total === 1 ? 'file' : 'files'} changed; this page was made without them.` : 'No file changed.';
      return el('p', 'quiet only', text);
    }
    if (!files.length) return el('p', 'quiet only', total ? `${total} files changed.` : 'No file changed.');
    return el('nav', 'tree', ...this.tree(files));
  }

  tree(files) {
    const made = [];
    let folder = null;
    const order = files.map((file, at) => [file, at]);
    order.sort((one, other) => (folderOf(one[0].path) === folderOf(other[0].path) ? 0 : folderOf(one[0].path) < folderOf(other[0].path) ? -1 : 1));
    for (const [file, at] of order) {
      const inside = folderOf(file.path);
      if (inside !== folder) {
        folder = inside;
        if (folder) made.push(el('div', 'folder', el('bdi', '', folder)));
      }
      made.push(this.leaf(file, at, folder));
    }
    return made;
  }

  leaf(file, at, folder) {
    const made = button(`leaf ${file.whose || 'own'}`, file.path, () => this.jump(at),
      el('span', `status ${file.status}`, file.status), el('bdi', 'name', oneLine(file.path.slice(folder.length))), lineCounts(file));
    if (folder) made.classList.add('deep');
    if (this.marked.has(file.path)) made.classList.add('marked');
    return made;
  }

  part(file) {
    const head = el('summary', '', el('span', `status ${file.status}`, file.status), el('bdi', 'path', oneLine(file.path)),
      file.old ? el('span', 'quiet', 'from ', el('bdi', '', oneLine(file.old))) : null, lineCounts(file));
    if (file.whose) head.append(el('span', 'badge warn', whoseText(file)));
    const made = el('details', 'file', head);
    const fill = () => {
      if (!made.open || made.childElementCount > 1) return;
      made.append(file.patch ? patchView(file.patch, this.sides) : el('p', 'quiet', reasonFor(file)));
    };
    made.addEventListener('toggle', fill);
    // What is another turn's, and what is very long, stays closed.
    made.open = file.whose !== 'others' && (file.patch || '').length < 60000;
    fill();
    return made;
  }

  jump(at) {
    const part = this.parts[at];
    if (!part) return;
    this.focus = at;
    part.open = true;
    part.scrollIntoView({ block: 'start' });
    this.parts.forEach((other, place) => other.classList.toggle('focus', place === at));
  }

  move(by) {
    if (this.parts.length) this.jump(Math.max(0, Math.min(this.parts.length - 1, this.focus + by)));
  }

  // Marks the files that a reason names, and shows the first of them.
  point(paths) {
    const files = this.page.rows[this.at].files || [];
    const named = (file) => paths.some((path) => file.path === path || file.path.startsWith(`${path}/`));
    this.marked = new Set(files.filter(named).map((file) => file.path));
    this.show();
    const first = files.findIndex(named);
    if (first >= 0) this.jump(first);
  }
}

function folderOf(path) {
  return path.slice(0, path.lastIndexOf('/') + 1);
}

function oneLine(path) {
  return path.replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

function lineCounts(file) {
  const made = el('span', 'counts');
  if (file.add) made.append(el('span', 'add', `+${file.add}`));
  if (file.sub) made.append(el('span', 'sub', `−${file.sub}`));
  return made;
}

function whoseText(file) {
  const numbers = (file.turns || []).map((number) => `#${number}`).join(' or ') || 'a restore';
  if (file.whose === 'others') return `changed meanwhile by ${numbers}`;
  if (file.whose === 'unsure') return `may be ${numbers}'s as well`;
  return `changed by ${numbers}, too`;
}

function reasonFor(file) {
  if (file.why) return file.why[0].toUpperCase() + file.why.slice(1);
  return file.add === undefined ? 'No text' : 'No line differs';
}

// A command to be copied: the page itself changes nothing.
function command(text, title) {
  const made = button('command', `${title}. Click to copy`, async () => {
    made.classList.toggle('done', await copied(text, made));
    setTimeout(() => made.classList.remove('done'), 1200);
  }, el('code', '', text));
  return made;
}

async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(shown);
    return false;
  }
}
