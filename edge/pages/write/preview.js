// Page that shows the post of a preview link to people without an account.

import { ApiError, send } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { section } from '../parts/states.js'
import { articleOf } from './article.js'

// Reviewers have no account, so a refusal must not ask them to sign in.
async function readPreview(token) {
  const response = await send('GET', `/api/v1/blog/preview/${encodeURIComponent(token)}`)
  const data = await response.json().catch(() => null)
  if (response.ok) return data
  throw new ApiError(response.status, { ...data, requestId: response.headers.get('x-request-id') })
}

export const page = ({ setTitle }) => {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? ''
  return [
    section({
      title: 'Preview',
      rows: 8,
      note: 'This link shows a post to its reviewers until it expires or is revoked.',
      empty: 'This address is incomplete. Ask for the link again.',
      read: () => token !== '' && readPreview(token),
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
