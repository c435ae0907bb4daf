// Page of the blog's posts.

import { actionButton, actWithUndo, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { list } from '../parts/list.js'
import { shortTime } from '../parts/table.js'
import { publicSince, stateChip, stateOf } from './states.js'
import { readTags } from './tag-input.js'

export const page = () => [
  list({
    title: 'Posts',
    path: '/api/v1/blog/admin/posts',
    empty: 'No posts yet. Write the first one, or import those of another blog.',
    emptyMore: () => [h('a', { href: '/write/import' }, 'Import posts')],
    filters: [
      { name: 'search', label: 'Search' },
      { name: 'status', label: 'State', options: ['draft', 'published', 'archived'] },
      { name: 'tag', label: 'Tag', options: readTagOptions },
    ],
    columns: [
      { name: 'Title', kind: 'name', show: titleOf },
      { name: 'State', show: stateChip },
      { name: 'Tags', show: ({ tags }) => (tags.length === 0 ? null : h('span', { class: 'chips post-tags' }, ...tags.slice(0, 3).map(tagLink), tags.length > 3 ? h('span', { class: 'soft' }, `+${tags.length - 3}`) : null)) },
      { name: 'Author', show: ({ author_name }) => author_name && h('span', { class: 'author', title: author_name }, author_name) },
      { name: 'Changed', kind: 'number', show: ({ updated_at }) => shortTime(updated_at) },
      { name: 'Public since', kind: 'number', show: publicSince },
    ],
    buttons: () => [h('a', { class: 'button', href: '/write/new' }, 'New post')],
    actions: (post, posts) => [stateButton(post, posts), button('Delete', () => remove(post, posts), { label: `Delete ${post.title}` })],
  }),
]

const readTagOptions = async () => (await readTags()).map(({ slug, name }) => [slug, name])

const tagLink = ({ slug, name }) => h('a', { class: 'chip', href: `/write?tag=${encodeURIComponent(slug)}` }, name)

function titleOf({ id, title, snippet, excerpt }) {
  const text = snippet ?? excerpt
  return h('span', { class: 'post-title' }, h('a', { class: 'job', href: `/write/${id}` }, title), text ? h('span', { class: 'soft' }, text) : null)
}

function stateButton(post, posts) {
  const path = `/api/v1/blog/posts/${post.id}`
  const change = async (action) => posts.replace(await call('POST', `${path}/${action}`))
  if (post.status === 'published')
    return actionButton('Archive', 'Archiving…', `Archive ${post.title}`, async () => {
      const wasScheduled = stateOf(post) === 'scheduled'
      await change('archive')
      const json = wasScheduled ? { published_at: post.published_at } : undefined
      offerUndo(`Archived ${post.title.slice(0, 60)}`, async () => posts.replace(await call('POST', `${path}/publish`, { json })))
      return null
    })
  return actionButton('Publish', 'Publishing…', `Publish ${post.title}`, async () => {
    await change('publish')
    offerUndo(`Published ${post.title.slice(0, 60)}`, () => change('archive'))
    return null
  })
}

function remove(post, posts) {
  actWithUndo(`Deleted ${post.title.slice(0, 60)}`, {
    hide: () => posts.remove(post),
    show: posts.reload,
    run: () => call('DELETE', `/api/v1/blog/posts/${post.id}`),
  })
}
