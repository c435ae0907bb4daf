// States of posts.

import { formatMinute } from '../parts/format.js'
import { chip } from '../parts/table.js'

/** Returns the state of a post as people see it: a published post with a time to come is scheduled. */
export function stateOf({ status, published_at }) {
  return status === 'published' && Date.parse(published_at) > Date.now() ? 'scheduled' : status
}

const TONES = { draft: '', scheduled: 'live', published: 'good', archived: 'warn' }

export const stateChip = (post) => chip(stateOf(post), TONES[stateOf(post)])

/** Says when a post became or becomes public; null if neither. */
export const publicSince = ({ published_at }) => (published_at === null ? null : formatMinute(published_at))
