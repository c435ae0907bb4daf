// What was begun elsewhere: by another tab, another client, a colleague.

import { ENDED, follow } from './api.js'

// Frames of all jobs don't name documents, and an admin sees those of everybody: one look a second at most.
const LOOK_MS = 1000
const MOST_KNOWN = 10_000

/**
 * Notices extractions while its page follows none: at news of a job that is unknown here, `look` asks for the
 * document's; at the end of any extraction `ended` asks what its pages are, because a short one is over before the look.
 */
export function noticeOthers({ look, ended, fail, showLink }) {
  const known = new Set()
  const lookSoon = paced(() => look().catch(fail))
  const endedSoon = paced(() => ended().catch(fail))
  let stop = null
  const take = ({ job_id, status, result }) => {
    const isNew = !known.has(job_id)
    if (known.size > MOST_KNOWN) known.clear()
    known.add(job_id)
    if (!ENDED.has(status)) return isNew && lookSoon()
    // Only extractions answer this.
    if (result?.unread !== undefined) endedSoon()
  }
  return {
    watch: () => {
      stop ??= follow('/api/v1/jobs/events', { status: take }, (state) => {
        showLink(state === 'live' ? 'live' : 'lost')
        // What began, and what ended, while nobody listened.
        if (state !== 'live') return
        lookSoon()
        endedSoon()
      })
    },
    rest: () => {
      stop?.()
      stop = null
    },
  }
}

/** Does `work` soon after it is called for, at once when it has not been done for `LOOK_MS`. */
function paced(work) {
  let timer = null
  let doneAt = 0
  return () => {
    timer ??= setTimeout(() => {
      timer = null
      doneAt = Date.now()
      work()
    }, Math.max(0, doneAt + LOOK_MS - Date.now()))
  }
}
