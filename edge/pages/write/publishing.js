// Buttons that publish, schedule, archive, share and delete a post.

import { actionButton, actWithUndo, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openDialog, openForm } from '../parts/dialog.js'
import { announce, copyButton, h } from '../parts/dom.js'
import { formatMinute } from '../parts/format.js'
import { stateChip, stateOf } from './states.js'

const LIFETIMES = [
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
  [7_776_000, '90 days'],
]

/**
 * Makes the bar. `editor` has `saved()`, which saves changes and resolves to the post, `show(post)`, and `hide(isHidden)`.
 */
export function publishingBar(editor) {
  const node = h('div', { class: 'post-bar' })
  const update = (post) => {
    const when = post.published_at === null ? null : h('span', { class: 'soft' }, `${stateOf(post) === 'scheduled' ? 'Public from' : 'Public since'} ${formatMinute(post.published_at)}`)
    node.replaceChildren(h('span', { class: 'state' }, stateChip(post), when), h('div', { class: 'actions' }, ...buttonsOf(post, editor)))
  }
  return { node, update }
}

function buttonsOf(post, editor) {
  const state = stateOf(post)
  const isPublic = state === 'published'
  // The time of a post that has been public never changes.
  const canSchedule = state === 'scheduled' || post.published_at === null
  return [
    isPublic ? null : publishButton(editor, state === 'archived' && post.published_at !== null ? 'Publish again' : 'Publish now'),
    !isPublic && canSchedule ? button(state === 'scheduled' ? 'Reschedule' : 'Schedule', () => schedule(editor)) : null,
    isPublic || state === 'scheduled' ? archiveButton(post, editor) : null,
    button('Preview link', () => share(editor)),
    button('Delete', () => remove(post, editor), { label: 'Delete this post' }),
  ].filter(Boolean)
}

const pathOf = ({ id }) => `/api/v1/blog/posts/${id}`

function publishButton(editor, text) {
  const made = actionButton(text, 'Publishing…', text, async () => {
    const post = await editor.saved()
    editor.show(await call('POST', `${pathOf(post)}/publish`))
    offerUndo('Published', async () => editor.show(await call('POST', `${pathOf(post)}/archive`)))
    return null
  })
  made.classList.remove('plain')
  return made
}

const archiveButton = (post, editor) =>
  actionButton('Archive', 'Archiving…', 'Archive this post', async () => {
    const json = stateOf(post) === 'scheduled' ? { published_at: post.published_at } : undefined
    editor.show(await call('POST', `${pathOf(post)}/archive`))
    offerUndo('Archived', async () => editor.show(await call('POST', `${pathOf(post)}/publish`, { json })))
    return null
  })

async function schedule(editor) {
  const post = await editor.saved().catch((error) => announce(error.message, { isBad: true }))
  if (!post) return
  const isPast = (at) => Date.parse(at) <= Date.now()
  openForm('Schedule the post', {
    operation: 'POST /api/v1/blog/posts/{post}/publish',
    params: { post: post.id },
    fields: ['published_at'],
    set: { published_at: { label: 'Public from', help: 'In the time zone of this device', isRequired: true } },
    values: stateOf(post) === 'scheduled' ? post : {},
    submit: 'Schedule',
    prepare: (values) => {
      if (isPast(values.published_at)) throw new Error('Choose a time to come, or use "Publish now".')
      return values
    },
    done: (answer) => {
      editor.show(answer)
      return `Public from ${formatMinute(answer.published_at)}`
    },
  })
}

/** Creates a preview link, and shows it. Its token is behind the hash, so that no log contains it. */
async function share(editor) {
  const post = await editor.saved().catch((error) => announce(error.message, { isBad: true }))
  if (!post) return
  const made = await openForm('New preview link', {
    operation: 'POST /api/v1/blog/posts/{post}/preview',
    params: { post: post.id },
    fields: ['expires_in_seconds'],
    set: { expires_in_seconds: { label: 'Valid for', type: 'enum', options: LIFETIMES, isRequired: true, initial: LIFETIMES[1][0], help: 'Anybody with the link sees the saved post, whatever its state' } },
    submit: 'Create link',
    buttons: [button('Revoke all links', () => revoke(post))],
  })
  if (made === null) return
  const address = `${location.origin}/write/preview#token=${made.token}`
  openDialog('Preview link', [
    h('p', {}, `The link works until ${formatMinute(made.expires_at)}.`),
    h('p', {}, h('a', { href: address, target: '_blank' }, address)),
    h('div', { class: 'actions' }, copyButton(address, 'preview link')),
  ])
}

async function revoke(post) {
  if (!(await confirmAction('Revoke all preview links?', 'People who have a link of this post lose access immediately.', 'Revoke links'))) return
  await call('DELETE', `${pathOf(post)}/preview`).then(
    () => announce('All preview links are revoked'),
    (error) => announce(error.message, { isBad: true }),
  )
}

function remove(post, editor) {
  actWithUndo(`Deleted ${post.title.slice(0, 60)}`, {
    hide: () => editor.hide(true),
    show: () => editor.hide(false),
    run: async () => {
      await call('DELETE', pathOf(post))
      location.assign('/write')
    },
  })
}
