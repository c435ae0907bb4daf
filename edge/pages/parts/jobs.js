// Jobs as other pages use them: results, states, and buttons that cancel and retry.

import { actionButton } from './actions.js'
import { ApiError, call } from './api.js'
import { h } from './dom.js'
import { shortId } from './format.js'
import { subscribe } from './streams.js'

/** Final statuses of a job. */
export const FINAL_STATUSES = new Set(['done', 'failed', 'cancelled'])

/** CSS class of a chip, by job status. */
export const TONES = { done: 'good', failed: 'bad', cancelled: 'warn', running: 'live', queued: '', waiting: '' }

/** Makes a chip with the status of a job. */
export const statusChip = (status) => h('span', { class: `chip ${TONES[status] ?? ''}` }, status)

export const jobPath = (id) => `/monitor/jobs/${encodeURIComponent(id)}`

/**
 * Calls a job-backed route and returns the job's result. If the route responds before the job ends, waits for the job.
 * `onStatus` receives the frames of the job. @throws ApiError
 */
export async function callAndWait(method, path, options, onStatus = () => {}) {
  const data = await call(method, path, options)
  if (data?.job_id === undefined || FINAL_STATUSES.has(data.status)) return data
  return waitForJob(data.job_id, onStatus)
}

/** Waits for a job and returns its result. @throws ApiError if the job fails or is cancelled. */
export async function waitForJob(jobId, onStatus = () => {}) {
  await new Promise((resolve, reject) => {
    const stop = subscribe(
      `job:${jobId}`,
      {
        status: (frame) => {
          onStatus(frame)
          if (!FINAL_STATUSES.has(frame.status)) return
          stop()
          if (frame.status === 'done') resolve()
          else reject(new ApiError(500, { detail: frame.error?.detail ?? 'The job was cancelled', code: frame.error?.code }))
        },
      },
      (state) => {
        if (typeof state === 'number') reject(new ApiError(state, { detail: 'The job is no longer accessible' }))
      },
    )
  })
  return (await call('GET', `/api/v1/jobs/${jobId}`)).result
}

export const cancelButton = (id, name) =>
  actionButton('Cancel', 'Cancelling…', `Cancel ${name} ${shortId(id)}`, async () => {
    await call('DELETE', `/api/v1/jobs/${id}`)
    return `Cancelling ${name}`
  })

export const retryButton = (id, name, onRetried = () => {}) =>
  actionButton('Retry', 'Retrying…', `Retry ${name} ${shortId(id)}`, async () => {
    onRetried(await call('POST', `/api/v1/jobs/${id}/retry`))
    return `Retrying ${name}`
  })

/** Makes a progress bar, which is indeterminate without a total. */
export function progressBar(label = 'Progress') {
  const bar = h('progress', { 'aria-label': label })
  const update = (progress) => {
    if (progress?.total) {
      bar.max = progress.total
      bar.value = progress.current ?? 0
    } else bar.removeAttribute('value')
  }
  return { node: bar, update }
}
