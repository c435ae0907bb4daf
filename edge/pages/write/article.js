// A post as its readers see it.

import { h, setText } from '../parts/dom.js'
import { chip } from '../parts/table.js'
import { markdownView, safeAddress } from '../parts/markdown.js'

/** Makes the article, with its title unless the page has it. `update(post)` redraws the parts that have changed. */
export function articleOf({ hasTitle = true } = {}) {
  const title = h('h3', { class: 'headline' })
  const excerpt = h('p', { class: 'soft excerpt' })
  const tags = h('p', { class: 'chips' })
  const picture = h('p', {})
  const content = markdownView('', { base: hasTitle ? 4 : 3 })
  const node = h('article', { class: 'article' }, hasTitle ? title : null, excerpt, picture, tags, content.node)
  const update = (post) => {
    setText(title, post.title || 'Untitled')
    setText(excerpt, post.excerpt ?? '')
    tags.replaceChildren(...post.tags.map(({ name }) => chip(name)))
    tags.hidden = post.tags.length === 0
    const address = post.hero_image_url ?? ''
    const href = safeAddress(address.startsWith('/') ? `${location.origin}${address}` : address)
    picture.replaceChildren(...(href === null ? [] : [h('a', { href, target: '_blank', rel: 'noopener noreferrer' }, 'Picture of the post')]))
    picture.hidden = href === null
    content.update(post.content ?? '')
  }
  return { node, update }
}
