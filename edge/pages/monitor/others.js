// Notices what was started elsewhere: in another tab, by another client, by a colleague.

import { ENDED, follow } from './api.js'

// Job frames do not name documents, and an admin sees everybody's jobs: look at most once a second.
const LOOK_MS = 1000
const MAX_KNOWN = 10_000

/**
 * Notices extractions while the page follows none: on news of an unknown job, `look` asks for the document's
 * extraction; when any extraction ends, `ended` asks for the document's pages, because a short one is over before the
 * look.
 */
export function noticeOthers({ look, ended, fail, showLink }) {
  const known = new Set()
  const lookSoon = paced(() => look().catch(fail))
  const endedSoon = paced(() => ended().catch(fail))
  let stop = null
  const take = ({ job_id, status, result }) => {
    const isNew = !known.has(job_id)
    if (known.size > MAX_KNOWN) known.clear()
    known.add(job_id)
    if (!ENDED.has(status)) return isNew && lookSoon()
    // Only results of extractions have this field.
    if (result?.unread !== undefined) endedSoon()
  }
  return {
    watch: () => {
      stop ??= follow('/api/v1/jobs/events', { status: take }, (state) => {
        showLink(state === 'live' ? 'live' : 'lost')
        // Something may have started or ended while nobody listened.
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

/** Does `work` soon after it is requested: at once if it has not been done for `LOOK_MS`. */
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
