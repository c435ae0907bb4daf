// Follows the reading of several documents by one stream, because each new name reopens a stream of named jobs.

import { call } from '../parts/api.js'
import { FINAL_STATUSES } from '../parts/jobs.js'
import { subscribe } from '../parts/streams.js'
import { pathOf } from './records.js'

const followed = new Map()
const watched = new Set()
let isSubscribed = false
let report = () => {}

/** Sets the function that receives the state of the connection. */
export function reportConnection(listener) {
  report = listener
}

function receive(frame) {
  const listeners = followed.get(frame.job_id) ?? []
  if (FINAL_STATUSES.has(frame.status)) followed.delete(frame.job_id)
  for (const listener of listeners) listener(frame)
}

function start() {
  isSubscribed = true
  subscribe('jobs', { status: receive }, (state) => {
    report(state)
    // Frames may have been missed meanwhile.
    if (state === 'live') for (const id of followed.keys()) check(id)
  })
}

async function check(id) {
  const job = await call('GET', `/api/v1/jobs/${id}`).catch(() => null)
  if (job !== null && followed.has(id)) receive({ ...job, job_id: id })
}

/** Calls `onFrame` with each frame of a job until it ends. */
function follow(jobId, onFrame) {
  // Several uploads of the same file wait for the same job.
  followed.set(jobId, [...(followed.get(jobId) ?? []), onFrame])
  if (!isSubscribed) start()
  check(jobId)
}

/** Starts reading a document, and resolves to the last frame of its job. */
export async function readDocument(id, onFrame = () => {}, query = '') {
  const { job_id } = await call('POST', `${pathOf(id)}/extract?background=true${query}`)
  return waitFor(job_id, onFrame)
}

/** Resolves to the last frame of a job. */
function waitFor(jobId, onFrame = () => {}) {
  return new Promise((resolve) => {
    follow(jobId, (frame) => {
      onFrame(frame)
      if (FINAL_STATUSES.has(frame.status)) resolve(frame)
    })
  })
}

/** Follows the readings that documents wait for. `onEnd(id, frame)` runs after each, or immediately if there is none. */
export async function followDocuments(ids, onFrame, onEnd) {
  for (const id of ids) {
    if (watched.has(id)) continue
    watched.add(id)
    const { job_id } = await call('GET', `${pathOf(id)}/extraction`).catch(() => ({ job_id: null }))
    const end = (frame) => {
      watched.delete(id)
      onEnd(id, frame)
    }
    if (job_id === null) end(null)
    else waitFor(job_id, (frame) => onFrame(id, frame)).then(end)
  }
}
