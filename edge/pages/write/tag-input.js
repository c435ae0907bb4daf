// The input of a post's tags: those of the blog, or new ones.

import { call, readList } from '../parts/api.js'
import { announce, h } from '../parts/dom.js'

/** Reads all tags of the blog. */
export async function readTags() {
  const tags = []
  for (let path = '/api/v1/blog/tags?limit=1000'; path !== null; ) {
    const { items, next } = await readList(path)
    tags.push(...items)
    path = next
  }
  return tags
}

/** Keeps the tags of the blog: `own`, those of the post, until `reading` has read all. */
export function knownTags(own, reading) {
  let tags = [...own]
  const all = reading.then((read) => (tags = [...read, ...tags.filter(({ slug }) => !read.some((one) => one.slug === slug))]))
  all.catch(() => {})
  return {
    all,
    nameOf: (slug) => tags.find((tag) => tag.slug === slug)?.name ?? slug,
    add: (tag) => tags.push(tag),
    /** Finds a tag by its name or slug. */
    find: async (name) => {
      await all
      return tags.find((one) => one.name.toLowerCase() === name.toLowerCase() || one.slug === name)
    },
  }
}

/** Returns a function that makes the input for `form()`. `known` are the tags of the blog, `onChange` runs after a change. */
export const tagInput = (known, onChange) => (field) => {
  let slugs = []
  const id = `tags-of-${field.name}`
  const control = h('input', { name: field.name, autocomplete: 'off', list: id, placeholder: 'Add a tag', maxlength: 80 })
  const options = h('datalist', { id })
  known.all.then((tags) => options.append(...tags.map(({ name }) => h('option', { value: name }))), () => {})
  const chips = h('span', { class: 'chips', role: 'group', 'aria-label': 'Tags of the post' })
  const write = (given) => {
    slugs = given ?? []
    chips.replaceChildren(...slugs.map((slug) => h('span', { class: 'chip' }, known.nameOf(slug), dropButton(slug))))
  }
  const set = (given) => {
    write(given)
    onChange()
  }
  const dropButton = (slug) =>
    h('button', { type: 'button', class: 'drop', 'aria-label': `Remove ${known.nameOf(slug)}`, onclick: () => {
      set(slugs.filter((other) => other !== slug))
      control.focus()
    } }, '×')
  const add = async () => {
    const name = control.value.trim()
    if (name === '') return
    control.value = ''
    try {
      const tag = (await known.find(name)) ?? (await create(name))
      if (!slugs.includes(tag.slug)) set([...slugs, tag.slug])
    } catch (error) {
      control.value = name
      announce(`${name}: ${error.message}`, { isBad: true })
    }
  }
  const create = async (name) => {
    const tag = await call('POST', '/api/v1/blog/tags', { json: { name } })
    known.add(tag)
    options.append(h('option', { value: tag.name }))
    announce(`Created the tag ${tag.name}`)
    return tag
  }
  control.addEventListener('change', add)
  control.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing) return
    event.preventDefault()
    add()
  })
  return { node: h('span', { class: 'tag-input' }, chips, control, options), control, read: () => slugs, write }
}
