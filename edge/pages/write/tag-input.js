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

/** Returns a function that makes the input for `form()`. `known` are the tags of the blog, `onChange` runs after a change. */
export const tagInput = (known, onChange) => (field) => {
  let slugs = []
  const id = `tags-of-${field.name}`
  const control = h('input', { name: field.name, autocomplete: 'off', list: id, placeholder: 'Add a tag', maxlength: 80 })
  const options = h('datalist', { id }, ...known.map(({ name }) => h('option', { value: name })))
  const chips = h('span', { class: 'chips', role: 'group', 'aria-label': 'Tags of the post' })
  const nameOf = (slug) => known.find((tag) => tag.slug === slug)?.name ?? slug
  const write = (given) => {
    slugs = given ?? []
    chips.replaceChildren(...slugs.map((slug) => h('span', { class: 'chip' }, nameOf(slug), dropButton(slug))))
  }
  const set = (given) => {
    write(given)
    onChange()
  }
  const dropButton = (slug) =>
    h('button', { type: 'button', class: 'drop', 'aria-label': `Remove ${nameOf(slug)}`, onclick: () => {
      set(slugs.filter((other) => other !== slug))
      control.focus()
    } }, '×')
  const add = async () => {
    const name = control.value.trim()
    if (name === '') return
    control.value = ''
    try {
      const tag = known.find((one) => one.name.toLowerCase() === name.toLowerCase() || one.slug === name) ?? (await create(name))
      if (!slugs.includes(tag.slug)) set([...slugs, tag.slug])
    } catch (error) {
      control.value = name
      announce(`${name}: ${error.message}`, { isBad: true })
    }
  }
  const create = async (name) => {
    const tag = await call('POST', '/api/v1/blog/tags', { json: { name } })
    known.push(tag)
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
