// Panel of a batch: the states of its jobs, their graph or groups, and their timeline.

import { actionButton } from '../parts/actions.js'
import { call, readList } from '../parts/api.js'
import { timeline } from '../parts/chart.js'
import { confirmAction } from '../parts/dialog.js'
import { h, keepFocus, panel } from '../parts/dom.js'
import { formatCount, formatDuration, now, shortId } from '../parts/format.js'
import { jobPath, statusChip } from '../parts/jobs.js'
import { failure, skeleton } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { table } from '../parts/table.js'
import { jobsPath } from './bulk.js'
import { jobGraph } from './graph.js'

const STATES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled']
const ENDED = new Set(['done', 'failed', 'cancelled'])
// More jobs are grouped by task and state.
const MAX_NODES = 400
const MAX_GROUPED = 10_000
const MAX_LINES = 40
const READ_MS = 1500

/** Makes the panels of a batch. They follow its jobs until the last one has ended. */
export function makeBatch(id) {
  const path = `/api/v1/batches/${encodeURIComponent(id)}`
  const [summary, tools] = [h('div', {}), h('div', { class: 'actions' })]
  const graph = h('div', { class: 'body' }, skeleton(6))
  const lines = h('div', { class: 'lines-of-jobs' })
  const node = h('div', { class: 'parts' }, panel('Jobs of the batch', { tools: [tools] }, summary, graph), panel('Timeline', {}, lines))
  const state = { jobs: new Map(), isLarge: false, drawn: null, timer: null, toolsKey: '' }

  const load = async () => {
    try {
      const [batch, jobs] = await Promise.all([call('GET', path), readJobs(path)])
      state.jobs = new Map(jobs.map((job) => [job.job_id, job]))
      showBatch(batch)
      showJobs()
      if (!ENDED.has(batch.status)) follow()
    } catch (error) {
      graph.replaceChildren(failure(error, load))
    }
  }
  const showBatch = (batch) => {
    state.batch = batch
    summary.replaceChildren(countsOf(id, batch))
    const key = `${batch.status} ${batch.counts.failed + batch.counts.cancelled > 0}`
    if (key !== state.toolsKey) keepFocus(tools, () => tools.replaceChildren(...buttonsOf(batch, path, refresh)))
    state.toolsKey = key
  }
  const showJobs = () => {
    const jobs = [...state.jobs.values()]
    state.drawn = jobs.length === 0 || jobs.length > MAX_NODES ? null : jobGraph('Graph of jobs', jobs)
    graph.replaceChildren(...(jobs.length === 0 ? [h('p', { class: 'soft' }, 'The batch has no jobs yet.')] : state.drawn === null ? groupsOf(id, jobs) : [state.drawn.node, legend()]))
    showLines(jobs)
  }
  const showLines = (jobs) => {
    const started = jobs.filter(({ started_at }) => started_at !== null).toSorted((a, b) => Date.parse(a.started_at) - Date.parse(b.started_at))
    if (started.length === 0) return lines.replaceChildren(h('p', { class: 'soft' }, 'No job has started yet.'))
    const note = started.length > MAX_LINES ? [h('p', { class: 'soft' }, `The first ${MAX_LINES} of ${formatCount(started.length)} started jobs.`)] : []
    keepFocus(lines, () => lines.replaceChildren(...note, timeline('Timeline of jobs', started.slice(0, MAX_LINES).map(lineOf))))
  }
  // Frames have the states of jobs, but not their times, so the rest is read at intervals.
  const refresh = () => {
    state.timer ??= setTimeout(async () => {
      state.timer = null
      const batch = await call('GET', path).catch(() => null)
      if (batch === null) return
      showBatch(batch)
      const isNew = batch.progress.total !== state.jobs.size && state.jobs.size < MAX_GROUPED
      if (!isNew && state.drawn !== null && !ENDED.has(batch.status)) return showLines([...state.jobs.values()])
      const jobs = await readJobs(path).catch(() => null)
      if (jobs === null) return
      state.jobs = new Map(jobs.map((job) => [job.job_id, job]))
      showJobs()
    }, READ_MS)
  }
  const follow = () => {
    const stop = subscribe(`batch:${id}`, {
      status: (frame) => {
        const job = state.jobs.get(frame.job_id)
        if (job !== undefined) Object.assign(job, timesOf(job, frame), { status: frame.status })
        state.drawn?.setStatus(frame.job_id, frame.status)
        refresh()
        if (frame.job_id === id && ENDED.has(frame.status)) stop()
      },
    })
    const timer = setInterval(() => {
      if (ENDED.has(state.batch.status)) clearInterval(timer)
      else if (!document.hidden) refresh()
    }, READ_MS * 2)
  }
  return { node, load }
}

/** Frames may have no times; then the time of their arrival is close enough until the next read. */
function timesOf(job, { status }) {
  const at = new Date(now()).toISOString()
  const started_at = job.started_at ?? (status === 'running' || status === 'done' || status === 'failed' ? at : null)
  return { started_at, finished_at: job.finished_at ?? (ENDED.has(status) ? at : null) }
}

async function readJobs(path) {
  const jobs = []
  let next = `${path}/jobs?limit=1000`
  while (next !== null && jobs.length < MAX_GROUPED) {
    const page = await readList(next)
    jobs.push(...page.items)
    next = page.next
  }
  return jobs
}

/** Makes the numbers of jobs by state, as links to the list. */
function countsOf(id, { status, counts, progress }) {
  const items = STATES.filter((state) => counts[state] > 0).map((state) => h('a', { class: 'count', href: jobsPath({ batch: id, status: state }) }, h('strong', { class: 'figure' }, formatCount(counts[state])), ' ', statusChip(state)))
  const text = `${status === 'open' ? 'Open for more jobs. ' : ''}${formatCount(progress.current)} of ${formatCount(progress.total)} jobs have ended.`
  return h('div', {}, h('p', { class: 'soft' }, text), h('p', { class: 'counts' }, ...items, h('a', { href: jobsPath({ batch: id }) }, 'All jobs of the batch')))
}

function buttonsOf({ status, counts, name, batch_id }, path, refresh) {
  const subject = name ?? `batch ${shortId(batch_id)}`
  const close = actionButton('Close', 'Closing…', `Close ${subject}`, async () => {
    await call('POST', `${path}/close`)
    refresh()
    return 'The batch takes no more jobs'
  })
  const cancel = actionButton('Cancel', 'Cancelling…', `Cancel ${subject}`, async () => {
    if (!(await confirmAction('Cancel the batch?', 'Its jobs that have not ended are cancelled. They cannot be continued.', 'Cancel batch'))) return null
    await call('DELETE', path)
    refresh()
    return 'Cancelling the batch'
  }, true)
  const retry = actionButton('Retry what failed', 'Retrying…', `Retry what failed in ${subject}`, async () => {
    const again = await call('POST', `${path}/retry`)
    location.assign(jobPath(again.batch_id))
    return null
  }, true)
  cancel.classList.add('risky')
  return [status === 'open' && close, !ENDED.has(status) && status !== 'cancelling' && cancel, ENDED.has(status) && counts.failed + counts.cancelled > 0 && retry].filter(Boolean)
}

const legend = () => h('p', { class: 'legend soft' }, ...STATES.map((state) => h('span', {}, h('span', { class: `dot ${state}`, 'aria-hidden': 'true' }), state)))

/** Makes the table of jobs by task and state, for batches that are too large for a graph. */
function groupsOf(id, jobs) {
  const { node, body, row } = table('Jobs by task and state', [['Task', 'name'], ...STATES.map((state) => [state[0].toUpperCase() + state.slice(1), 'number'])])
  const groups = [...Map.groupBy(jobs, ({ name }) => name)].toSorted(([, a], [, b]) => b.length - a.length)
  for (const [task, its] of groups) {
    const count = (state) => its.filter(({ status }) => status === state).length
    const link = (state) => (count(state) === 0 ? null : h('a', { href: jobsPath({ batch: id, task, status: state }), 'aria-label': `${formatCount(count(state))} ${state} jobs of ${task}` }, formatCount(count(state))))
    body.append(row(h('strong', {}, task), ...STATES.map(link)))
  }
  return [h('div', { class: 'scroll' }, node)]
}

function lineOf({ job_id, name, status, created_at, run_at, started_at, finished_at }) {
  const [due, start] = [Date.parse(run_at ?? created_at), Date.parse(started_at)]
  const end = finished_at === null ? Math.max(now(), start) : Date.parse(finished_at)
  const note = `waited ${formatDuration(start - due)}, ${finished_at === null ? 'running for' : 'ran'} ${formatDuration(end - start)}`
  return {
    label: `${name} ${shortId(job_id)}`,
    href: jobPath(job_id),
    note,
    spans: [{ from: start, to: end, kind: status === 'done' ? 'ran' : status, text: `${status}: ${note}` }],
  }
}
