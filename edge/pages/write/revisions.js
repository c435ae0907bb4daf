// The former versions of a post.

import { actionButton, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openDialog } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'
import { diffView } from './diff.js'

const REASONS = { update: 'Edited', restore: 'Restored', import: 'Imported' }

/**
 * Makes the list. `current()` returns the stored post, `isChanged()` returns true if the form has unsaved changes, and
 * `restored(post)` shows a version that was restored.
 */
export function revisionList(id, { current, isChanged, restored }) {
  const path = `/api/v1/blog/posts/${id}/revisions`
  const restore = async (revision) => {
    if (isChanged()) throw new Error('Save your changes first, or reload the page to drop them')
    restored(await call('POST', `${path}/${revision}/restore`))
  }
  const undo = async () => {
    const { revisions } = await call('GET', `${path}?limit=1`)
    await restore(revisions[0].id)
  }
  const made = list({
    title: 'Revisions',
    name: 'revisions',
    path,
    pageSize: 20,
    empty: 'No revisions yet. Each save keeps the version before it.',
    columns: [
      { name: 'Written', kind: 'name', show: ({ updated_at }) => h('span', { class: 'figure' }, formatDateTime(updated_at)) },
      { name: 'Title', kind: 'wide', show: ({ title }) => title },
      { name: 'Replaced', kind: 'number', show: ({ replaced_at }) => shortTime(replaced_at) },
      { name: 'By', show: ({ replaced_by, editor_name }) => byOf([REASONS[replaced_by], editor_name].filter(Boolean).join(' by ')) },
    ],
    actions: (revision) => {
      const name = `the version of ${formatDateTime(revision.updated_at)}`
      return [
        button('Compare', () => compare(`${path}/${revision.id}`, name, current()), { label: `Compare ${name} with the saved one` }),
        actionButton('Restore', 'Restoring…', `Restore ${name}`, async () => {
          await restore(revision.id)
          offerUndo(`Restored ${name}`, undo)
          return null
        }),
      ]
    },
  })
  return made
}

const byOf = (text) => h('span', { class: 'author', title: text }, text)

async function compare(path, name, post) {
  const revision = await call('GET', path)
  openDialog('Changes since this version', [h('p', { class: 'soft' }, `Red lines are in ${name}, green lines are in the saved post.`), diffView(textOf(revision), textOf(post))], { isWide: true })
}

/** Returns a post as one text, whose lines can be compared. */
function textOf({ title, slug, excerpt, tags, hero_image_url: picture, seo_title, seo_description, content }) {
  const fields = [
    ['Title', title],
    ['Slug', slug],
    ['Excerpt', excerpt],
    ['Tags', tags.map(({ name }) => name).join(', ')],
    ['Picture', picture],
    ['Search title', seo_title],
    ['Search description', seo_description],
  ]
  return `${fields.filter(([, value]) => value).map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${content}`
}
