// Detects extractions that another tab, client or account started.

import { FINAL_STATUSES } from '../parts/jobs.js'
import { subscribe } from '../parts/streams.js'

// Minimum interval between two reads of a document. Job frames trigger these reads. They do not name documents, and an
// admin gets the frames of all jobs.
const LOOK_MS = 1000
const MAX_KNOWN = 10_000

/**
 * Detects extractions that were started elsewhere. When an unknown job appears, `onNewJob` must read the document's
 * extraction. When any extraction ends, `onExtractionEnd` must read the document's pages, because a short extraction is
 * over before `onNewJob` runs.
 */
export function watchExtractions({ onNewJob, onExtractionEnd, fail, showConnection }) {
  const knownJobs = new Set()
  const reportNewJob = throttle(() => onNewJob().catch(fail))
  const reportExtractionEnd = throttle(() => onExtractionEnd().catch(fail))
  let unsubscribe = null
  const onStatus = ({ job_id, status, result }) => {
    const isNew = !knownJobs.has(job_id)
    if (knownJobs.size > MAX_KNOWN) knownJobs.clear()
    knownJobs.add(job_id)
    if (!FINAL_STATUSES.has(status)) return isNew && reportNewJob()
    // Only extraction results have this field.
    if (result?.unread !== undefined) reportExtractionEnd()
  }
  return {
    watch: () => {
      unsubscribe ??= subscribe('jobs', { status: onStatus }, (state) => {
        showConnection(state)
        // Extractions may have started or ended while the stream was closed.
        if (state !== 'live') return
        reportNewJob()
        reportExtractionEnd()
      })
    },
    stop: () => {
      unsubscribe?.()
      unsubscribe = null
    },
  }
}

/** Returns a function that runs `action` soon, at most once every `LOOK_MS`. */
function throttle(action) {
  let timer = null
  let doneAt = 0
  return () => {
    timer ??= setTimeout(() => {
      timer = null
      doneAt = Date.now()
      action()
    }, Math.max(0, doneAt + LOOK_MS - Date.now()))
  }
}
