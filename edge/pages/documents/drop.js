// Takes files that a person drops anywhere on the page, or chooses by a button.

import { h } from '../parts/dom.js'

/** Makes a button that chooses files, and takes files dropped on the page. `take` receives them. */
export function fileChooser(take, { text = 'Upload files', kind = '', multiple = true } = {}) {
  const input = h('input', { class: 'hidden', type: 'file', multiple, tabindex: '-1', 'aria-label': text })
  input.addEventListener('change', () => {
    const files = [...input.files]
    // Choosing the same file again must be a change.
    input.value = ''
    if (files.length > 0) take(files)
  })
  return h('span', {}, h('button', { class: kind, type: 'button', onclick: () => input.click() }, text), input)
}

/** Shows a hint over the page while files are dragged over it, and passes dropped files to `take`. */
export function takeDrops(take) {
  const hint = h('div', { class: 'drop', hidden: true, 'aria-hidden': 'true' }, h('p', {}, 'Drop files to upload them'))
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes('Files') === true
  // Entering an inner element leaves the outer one.
  let depth = 0
  const show = (change) => (event) => {
    if (!hasFiles(event)) return
    event.preventDefault()
    depth = Math.max(0, depth + change)
    hint.hidden = depth === 0
  }
  addEventListener('dragenter', show(1))
  addEventListener('dragleave', show(-1))
  addEventListener('dragover', show(0))
  addEventListener('drop', async (event) => {
    if (!hasFiles(event)) return
    event.preventDefault()
    depth = 0
    hint.hidden = true
    const files = await readDropped(event.dataTransfer)
    if (files.length > 0) take(files)
  })
  return hint
}

/** Returns the dropped files, also those inside of folders. */
async function readDropped({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined)
  if (!entries.some(({ isDirectory }) => isDirectory)) return [...files]
  return (await Promise.all(entries.map(readEntry))).flat()
}

async function readEntry(entry) {
  if (entry.isFile) return [await new Promise((resolve, reject) => entry.file(resolve, reject))]
  const reader = entry.createReader()
  const found = []
  // Each call returns a part of the folder.
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))
    if (part.length === 0) break
    found.push(...part)
  }
  // Files that a system hides, such as .DS_Store, are no documents.
  return (await Promise.all(found.filter(({ name }) => !name.startsWith('.')).map(readEntry))).flat()
}
