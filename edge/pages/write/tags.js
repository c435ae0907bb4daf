// Page of the blog's tags.

import { actWithUndo, button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'

export const page = () => [
  list({
    title: 'Tags',
    path: '/api/v1/blog/tags',
    note: 'A renamed or deleted tag changes in all its posts. With many posts, this takes a moment.',
    columns: [
      { name: 'Name', kind: 'name', show: ({ name }) => name },
      { name: 'Slug', show: ({ slug }) => h('code', {}, slug) },
      { name: 'Created', kind: 'number', show: ({ created_at }) => shortTime(created_at) },
    ],
    buttons: (tags) => [button('New tag', () => openTag(tags), { kind: '' })],
    actions: (tag, tags) => [
      h('a', { class: 'button plain', href: `/write?tag=${encodeURIComponent(tag.slug)}`, 'aria-label': `Posts with ${tag.name}` }, 'Posts'),
      button('Rename', () => openTag(tags, tag), { label: `Rename ${tag.name}` }),
      button('Delete', () => remove(tag, tags), { label: `Delete ${tag.name}` }),
    ],
  }),
]

const openTag = (tags, tag) =>
  openForm(tag === undefined ? 'New tag' : `Rename ${tag.name}`, {
    operation: tag === undefined ? 'POST /api/v1/blog/tags' : 'PUT /api/v1/blog/tags/{tag_id}',
    params: { tag_id: tag?.id },
    fields: ['name', 'slug'],
    set: { name: { isRequired: true }, slug: { help: tag === undefined ? 'Part of addresses; made from the name if empty' : 'Part of addresses' } },
    values: tag,
    submit: tag === undefined ? 'Create tag' : 'Save',
    done: (saved) => {
      if (tag === undefined) tags.insert(saved)
      else tags.replace(saved)
      return tag === undefined ? `Created ${saved.name}` : 'Renamed'
    },
  })

function remove(tag, tags) {
  actWithUndo(`Deleted the tag ${tag.name}`, {
    hide: () => tags.remove(tag),
    show: tags.reload,
    run: () => call('DELETE', `/api/v1/blog/tags/${tag.id}`),
  })
}
