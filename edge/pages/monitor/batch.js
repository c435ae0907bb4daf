// Panel of a batch: the states of its jobs, their graph or groups, and their timeline.

import { call, readList } from '../parts/api.js'
import { timeline } from '../parts/chart.js'
import { h, keepFocus, panel } from '../parts/dom.js'
import { formatCount, now } from '../parts/format.js'
import { FINAL_STATUSES as ENDED } from '../parts/jobs.js'
import { failure, skeleton } from '../parts/states.js'
import { subscribe } from '../parts/streams.js'
import { buttonsOf, countsOf, groupsOf, legend, lineOf } from './batch-parts.js'
import { jobGraph } from './graph.js'

// More jobs are grouped by task and state.
const MAX_NODES = 400
const MAX_GROUPED = 10_000
const MAX_LINES = 40
const READ_MS = 1500

/** Makes the panels of a batch. They follow its jobs until the last one has ended. */
export function makeBatch(id) {
  const path = `/api/v1/batches/${encodeURIComponent(id)}`
  const [summary, tools] = [h('div', {}), h('div', { class: 'actions' })]
  const graph = h('div', {})
  const body = h('div', { class: 'body' }, skeleton(6))
  const lines = h('div', { class: 'lines-of-jobs' })
  const node = h('div', { class: 'parts' }, panel('Jobs of the batch', { tools: [tools] }, body))
  const timelinePanel = panel('Timeline', {}, lines)
  const state = { jobs: new Map(), isLarge: false, drawn: null, timer: null, toolsKey: '' }

  const load = async () => {
    try {
      const [batch, jobs] = await Promise.all([call('GET', path), readJobs(path)])
      state.jobs = new Map(jobs.map((job) => [job.job_id, job]))
      showBatch(batch)
      showJobs()
      body.replaceChildren(summary, graph)
      node.append(timelinePanel)
      if (!ENDED.has(batch.status)) follow()
    } catch (error) {
      body.replaceChildren(failure(error, load))
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
    graph.replaceChildren(
      ...(jobs.length === 0
        ? [h('p', { class: 'soft' }, 'The batch has no jobs yet.')]
        : state.drawn === null
          ? groupsOf(id, jobs)
          : [state.drawn.node, legend()]),
    )
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
