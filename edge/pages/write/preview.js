// Page that shows the post of a preview link to people without an account.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { section } from '../parts/states.js'
import { articleOf } from './article.js'

export const page = ({ setTitle }) => {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
  return [
    section({
      title: 'Preview',
      rows: 8,
      note: 'This link shows a post to its reviewers until it expires or is revoked.',
      empty: 'This address is incomplete. Ask for the link again.',
      read: () => token !== '' && call('GET', `/api/v1/blog/preview/${encodeURIComponent(token)}`),
      show: (post) => {
        if (!post) return null
        setTitle(post.title)
        const article = articleOf({ hasTitle: false })
        article.update(post)
        return h('div', { class: 'reading' }, article.node)
      },
    }),
  ]
}
