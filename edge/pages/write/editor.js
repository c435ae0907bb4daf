// Page that edits a post next to its preview.

import { call } from '../parts/api.js'
import { confirmAction } from '../parts/dialog.js'
import { h, panel, setText } from '../parts/dom.js'
import { form } from '../parts/form.js'
import { formatCount, formatDateTime, formatTime } from '../parts/format.js'
import { articleOf } from './article.js'
import { publishingBar } from './publishing.js'
import { revisionList } from './revisions.js'
import { knownTags, readTags, tagInput } from './tag-input.js'

const NEW = { id: null, title: '', slug: '', excerpt: null, content: '', status: 'draft', published_at: null, hero_image_url: null, seo_title: null, seo_description: null, tags: [] }
const CLEARABLE = ['excerpt', 'seo_title', 'seo_description', 'hero_image_url']
const PREVIEW_MS = 120

export async function page({ params, setTitle }) {
  // Thousands of tags take a while, so the editor does not wait for them.
  const reading = readTags()
  reading.catch(() => {})
  const post = params.post === 'new' ? NEW : await call('GET', `/api/v1/blog/admin/posts/${encodeURIComponent(params.post)}`)
  const editor = makeEditor(post, knownTags(post.tags, reading), setTitle)
  return [{ node: editor.node, load: editor.load }]
}

function makeEditor(given, tags, setTitle) {
  const state = { post: given, stored: '', isLeaving: false }
  const article = articleOf()
  const bar = publishingBar({ saved: () => saved(), show: (post) => update(post), hide: (isHidden) => hide(isHidden) })
  const status = h('span', { class: 'soft', role: 'status' })
  const words = h('span', { class: 'soft words' })
  const below = h('div', {})
  const fields = form({
    operation: 'PUT /api/v1/blog/posts/{post}',
    fields: ['title', 'content'],
    more: ['slug', 'excerpt', 'tag_slugs', 'hero_image_url', 'seo_title', 'seo_description'],
    set: {
      title: { isRequired: true },
      content: { label: 'Text', rows: 24, isPlain: true, help: 'Markdown' },
      slug: { help: 'Part of the address; made from the title if empty' },
      excerpt: { isLong: true, rows: 3 },
      tag_slugs: { label: 'Tags', input: tagInput(tags, () => changed()) },
      hero_image_url: { label: 'Address of the picture', help: 'A web address, or a path of this site that begins with a slash' },
      seo_title: { label: 'Title for search engines' },
      seo_description: { label: 'Description for search engines', isLong: true, rows: 2 },
    },
    values: valuesOf(given),
    busy: 'Saving…',
    prepare: toJson,
    send: (json) => store(json),
    done: (post) => {
      const isNew = state.post.id === null
      update(post)
      return isNew ? 'Created the draft' : 'Saved'
    },
    buttons: [status, words],
  })
  const switcher = viewSwitch()
  const preview = panel('Preview', { class: 'panel preview' }, article.node)
  const writing = panel('Post', { class: 'panel writing' }, fields.node)
  writing.querySelector('h2').classList.add('hidden')
  const node = h('div', { class: 'editor' }, bar.node, switcher.node, h('div', { class: 'halves' }, writing, preview), below)
  switcher.attach(node)

  const isChanged = () => JSON.stringify(fields.read()) !== state.stored
  let timer = null
  const changed = () => {
    setText(status, isChanged() ? 'Unsaved changes' : '')
    clearTimeout(timer)
    timer = setTimeout(drawPreview, PREVIEW_MS)
  }
  const drawPreview = () => {
    const { tag_slugs: slugs = [], ...values } = fields.read()
    article.update({ ...values, tags: slugs.map((slug) => ({ name: tags.nameOf(slug) })) })
    const count = (values.content ?? '').split(/\s+/).filter(Boolean).length
    setText(words, `${formatCount(count)} word${count === 1 ? '' : 's'}`)
  }
  const store = async (json) => {
    const sent = JSON.stringify(fields.read())
    const post = await send(json)
    state.stored = sent
    return post
  }
  /** Saves the post, unless someone else has changed it and the person keeps that version. @throws ApiError */
  const send = async (json) => {
    const { id, updated_at } = state.post
    if (id === null) return call('POST', '/api/v1/blog/posts', { json })
    const current = await call('GET', `/api/v1/blog/admin/posts/${id}`)
    if (current.updated_at !== updated_at && !(await confirmOverwrite(current))) throw new Error('Not saved. Copy your text, then reload the page to see the other version.')
    return call('PUT', `/api/v1/blog/posts/${id}`, { json })
  }
  const saved = async () => {
    if (!isChanged() && state.post.id !== null) return state.post
    if (!fields.node.reportValidity()) throw new Error('Complete the form first')
    try {
      const post = await store(toJson(fields.read()))
      update(post)
      return post
    } catch (error) {
      fields.showProblem(error)
      throw error
    }
  }
  /** Shows a stored post in the form. */
  const show = (post) => {
    fields.write(valuesOf(post))
    state.stored = JSON.stringify(fields.read())
    update(post)
  }
  /** Shows the state of a stored post and its revisions, and its fields unless the person has typed meanwhile. */
  const update = (post) => {
    const isNew = state.post.id === null && post.id !== null
    state.post = post
    if (!isChanged()) {
      fields.write(valuesOf(post))
      state.stored = JSON.stringify(fields.read())
    }
    setTitle(post.title === '' ? 'New post' : post.title)
    if (post.id === null) bar.node.replaceChildren(h('span', { class: 'soft' }, 'Save the draft to publish or share it.'))
    else bar.update(post)
    setText(status, isChanged() ? 'Unsaved changes' : post.id === null ? '' : `Saved ${formatTime(post.updated_at)}`)
    drawPreview()
    if (isNew) history.replaceState(null, '', `/write/${post.id}`)
    if (post.id !== null) showRevisions(post.id)
  }
  const showRevisions = (id) => {
    const list = revisionList(id, { current: () => state.post, isChanged, restored: show })
    list.load().then(() => below.replaceChildren(list.node))
  }
  const hide = (isHidden) => {
    state.isLeaving = isHidden
    node.hidden = isHidden
  }

  fields.node.addEventListener('input', changed)
  addEventListener('beforeunload', (event) => !state.isLeaving && isChanged() && event.preventDefault())
  addEventListener('keydown', (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's') return
    event.preventDefault()
    if (document.querySelector('dialog[open]') === null) fields.node.requestSubmit()
  })
  const load = async () => {
    await fields.load()
    fields.node.querySelector('details > summary')?.replaceChildren('Address, tags and picture')
    show(given)
  }
  return { node, load }
}

const confirmOverwrite = ({ updated_at }) =>
  confirmAction('This post has changed elsewhere', `It was saved in another tab or by another person on ${formatDateTime(updated_at)}. If you save, that version moves to the revisions.`, 'Save anyway')

const valuesOf = (post) => ({ ...post, tag_slugs: post.tags.map(({ slug }) => slug) })

/** Adds the fields that the person has emptied, because absent ones would not change. */
function toJson(values) {
  const empty = Object.fromEntries(CLEARABLE.filter((name) => values[name] === undefined).map((name) => [name, null]))
  return { ...empty, content: '', ...values }
}

/** Makes the buttons that show the text or the preview on narrow screens. */
function viewSwitch() {
  const make = (text, isPreview) => h('button', { class: 'plain', type: 'button', 'aria-pressed': String(!isPreview), onclick: () => show(isPreview) }, text)
  const buttons = [make('Text', false), make('Preview', true)]
  let editor = null
  const show = (isPreview) => {
    editor.classList.toggle('previewing', isPreview)
    buttons[0].setAttribute('aria-pressed', String(!isPreview))
    buttons[1].setAttribute('aria-pressed', String(isPreview))
  }
  return { node: h('div', { class: 'switch', role: 'group', 'aria-label': 'View' }, ...buttons), attach: (node) => (editor = node) }
}
