// Actions on documents that the list, the trash and the page of a document share.

import { offerUndo } from '../parts/actions.js'
import { ApiError, call, renewSession, send } from '../parts/api.js'
import { openForm } from '../parts/dialog.js'
import { announce, h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { callAndWait } from '../parts/jobs.js'

export const DOCUMENTS = '/api/v1/documents'
export const pathOf = (id) => `${DOCUMENTS}/${encodeURIComponent(id)}`

/** Returns `1 document` or `3 documents`. */
export const countOf = (n, noun = 'document') => `${formatCount(n)} ${noun}${n === 1 ? '' : 's'}`

/** Makes a link that downloads the file of a document. */
export const downloadLink = ({ id, title }) => h('a', { class: 'button plain', href: `${pathOf(id)}/content`, download: title, 'aria-label': `Download ${title}` }, 'Download')

const EDITED = {
  fields: ['title', 'kind', 'document_date', 'note'],
  more: ['channel', 'protected'],
  set: {
    title: { isRequired: true },
    kind: { help: 'Such as invoice, contract or letter.' },
    document_date: { label: 'Date', format: 'date', help: 'The date that the document itself bears.' },
    note: { isLong: true, rows: 3 },
    channel: { help: 'The way by which it arrived, such as post or email.' },
    protected: { label: 'Protect from deletion', type: 'boolean' },
  },
}

/** Opens the form for the properties of a document. `done` receives the changed document. */
export const editDocument = (record, done) =>
  openForm(`Edit ${record.title}`, {
    ...EDITED,
    operation: 'PATCH /api/v1/documents/{id}',
    params: { id: record.id },
    values: record,
    done: (changed) => {
      done(changed)
      return 'Saved'
    },
  })

/** Reads a text, such as Markdown. @throws ApiError */
export async function readText(path) {
  const first = await send('GET', path)
  const response = first.status === 401 && (await renewSession()) ? await send('GET', path) : first
  if (response.ok) return response.text()
  throw new ApiError(response.status, { ...(await response.json().catch(() => null)), requestId: response.headers.get('x-request-id') })
}

export const restore = (id) => call('POST', `${pathOf(id)}/restore`)

/** Runs an action for each item, a few concurrently. Returns the errors. */
export async function forEach(items, run) {
  const waiting = [...items]
  const errors = []
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await run(item).catch((error) => errors.push(error))
  }
  await Promise.all(Array.from({ length: 4 }, work))
  return errors
}

/** Runs a bulk action on documents. Returns the ids of those that it changed, and announces those that it refused. */
export async function runBulk(action, documents, more = {}) {
  const ids = documents.map(({ id }) => id)
  const { refused } = await callAndWait('POST', `${DOCUMENTS}/bulk`, { json: { action, ids, ...more } })
  const names = new Map(documents.map(({ id, title }) => [id, title]))
  const [first] = refused
  if (first !== undefined) announce(`${countOf(refused.length)} unchanged. ${names.get(first.id)}: ${first.detail}`, { isBad: true })
  const without = new Set(refused.map(({ id }) => id))
  return ids.filter((id) => !without.has(id))
}

/** Moves documents to the trash, with an undo. `hide` and `show` change the page. */
export async function deleteDocuments(documents, { hide, show }) {
  const [only] = documents
  const isOne = documents.length === 1
  if (isOne) await call('DELETE', pathOf(only.id))
  const gone = new Set(isOne ? [only.id] : await runBulk('delete', documents))
  const deleted = documents.filter(({ id }) => gone.has(id))
  if (deleted.length === 0) return
  hide(deleted)
  offerUndo(isOne ? `${only.title} is in the trash` : `${countOf(deleted.length)} moved to the trash`, async () => {
    const errors = await forEach(deleted, ({ id }) => restore(id))
    show(deleted)
    if (errors.length > 0) throw errors[0]
  })
}

/** Reads the tags of the account as `[label, text]` pairs, most used first. */
export async function readTags() {
  const tags = await call('GET', `${DOCUMENTS}/tags`)
  return tags.map(({ label, count }) => [label, `${label} (${formatCount(count)})`])
}

const readLabels = async () => (await readTags()).map(([label]) => label)

/** Opens the form that adds a tag to documents or removes one. `done` runs afterwards. */
export async function tagDocuments(action, documents, done) {
  const isAdding = action === 'tag'
  const known = isAdding ? await readLabels().catch(() => []) : [...new Set(documents.flatMap(({ tags }) => tags))].toSorted()
  if (known.length === 0 && !isAdding) return announce('The selected documents have no tags', { isBad: true })
  const title = documents.length === 1 ? documents[0].title : countOf(documents.length)
  return openForm(isAdding ? `Tag ${title}` : `Remove a tag from ${title}`, {
    operation: 'POST /api/v1/documents/{id}/tags',
    submit: isAdding ? 'Add tag' : 'Remove tag',
    set: { label: isAdding ? { label: 'Tag', suggestions: known } : { label: 'Tag', type: 'enum', options: known } },
    send: ({ label }) => runBulk(action, documents, { label }),
    done: (ids, { label }) => {
      done()
      const changed = documents.filter(({ id, tags }) => ids.includes(id) && tags.includes(label) !== isAdding)
      if (changed.length === 0) return null
      offerUndo(isAdding ? `Tagged ${countOf(changed.length)} with ${label}` : `Removed ${label} from ${countOf(changed.length)}`, async () => {
        await runBulk(isAdding ? 'untag' : 'tag', changed, { label })
        done()
      })
      return null
    },
  })
}
