import { type JobState, RequestError, remember } from '../../client/connection.ts'
import type { Api } from '../api.ts'
import { parseChoice, parseCount } from '../arguments.ts'
import { defineCommand, type Input } from '../command.ts'
import { STATUS } from '../io.ts'
import { colourOf, formatDetail, type Job, type JobProgress, withFarewell } from '../jobs.ts'
import { type Cell, clean, formatDuration, formatTime } from '../output.ts'

const STATUSES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled'] as const
type Status = (typeof STATUSES)[number]

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 10_000
// Most jobs of a page of the search.
const PAGE_SIZE = 200

/** A job as the search shows it. */
type FoundJob = Pick<
  Job,
  'job_id' | 'name' | 'status' | 'label' | 'error' | 'created_at' | 'started_at' | 'finished_at'
>

const options = {
  status: { value: 'STATUS', about: `only this one: ${STATUSES.join(', ')}` },
  task: { value: 'NAME', about: 'only jobs with this name' },
  queue: { value: 'QUEUE', about: 'only jobs of this queue' },
  limit: { value: 'N', about: `number of jobs; default ${DEFAULT_LIMIT}` },
  follow: { about: 'then show each change until Ctrl-C' },
}

interface Selection {
  readonly status: Status | undefined
  readonly task: string | undefined
  readonly queue: string | undefined
}

export const jobs = defineCommand({
  args: '',
  about: 'Lists jobs, newest first. Admins see all jobs.',
  options,
  example: 'jobs --status failed --limit 5',
  scopes: ['jobs:read'],
  run: async (input) => {
    const { values, out } = input
    const limit = parseCount('limit', values.limit, DEFAULT_LIMIT, MAX_LIMIT)
    const status = parseChoice('status', values.status, STATUSES)
    const selection = { status, task: values.task, queue: values.queue }
    const { found, at } = await findJobs(input, selection, limit)
    if (values.follow)
      return withFarewell(input, 'Stopped following. The jobs go on.', () =>
        followJobs(input, selection, found, at),
      )
    if (out.isJson) for (const job of found) out.json(job)
    else if (found.length === 0) out.note('No jobs')
    else {
      const now = at ?? input.io.now()
      out.table(
        ['JOB', 'TASK', 'STATUS', 'ADDED', 'RAN', 'DETAIL'],
        found.map((job) => buildRow(job, now)),
      )
    }
    return STATUS.done
  },
})

/** Returns jobs, newest first, and the time on the clock of the service in ms, if it says one. */
async function findJobs(
  { api }: Input,
  selection: Selection,
  limit: number,
): Promise<{ readonly found: readonly FoundJob[]; readonly at: number | null }> {
  const found: FoundJob[] = []
  let at: number | null = null
  for (let cursor: string | undefined; found.length < limit; ) {
    const query = { ...selection, limit: Math.min(PAGE_SIZE, limit - found.length), cursor }
    const page = await api.call<{ jobs: FoundJob[]; next: string | null }>('GET', '/api/v1/jobs/search', {
      query,
    })
    at ??= api.answeredAt
    found.push(...page.jobs)
    if (page.next === null) break
    cursor = page.next
  }
  return { found, at }
}

function buildRow(job: FoundJob, now: number): readonly Cell[] {
  const { started_at, finished_at, status } = job
  const ran =
    started_at === null
      ? ''
      : formatDuration((finished_at ? Date.parse(finished_at) : now) - Date.parse(started_at))
  return [
    job.job_id,
    clean(job.name),
    [colourOf(status), status],
    `${formatDuration(now - Date.parse(job.created_at))} ago`,
    ran,
    formatDetail(job),
  ]
}

// A stream that begins some seconds before the list repeats the ends that happened between both.
const OVERLAP_MS = 5000

/** Writes the jobs of a list that was read at `at`, oldest first, then each change of a job. */
async function followJobs(
  input: Input,
  selection: Selection,
  found: readonly FoundJob[],
  at: number | null,
): Promise<number> {
  const { api, io, out } = input
  // Ids grow with the time.
  const newestId = found.reduce((newest, { job_id }) => (job_id > newest ? job_id : newest), '')
  const watcher = createWatcher(input, selection, newestId)
  for (const job of found.toReversed()) watcher.show(job, job.finished_at ?? job.started_at ?? job.created_at)
  const query = Object.entries({ task: selection.task, queue: selection.queue }).filter(
    ([, value]) => value !== undefined,
  )
  const path = `/api/v1/jobs/events?${new URLSearchParams(query as [string, string][])}`
  const stream = api.events<JobState>(path, {
    signal: io.signal,
    ...(at === null ? {} : { lastEventId: String(at - OVERLAP_MS) }),
  })
  for await (const { event, data } of stream) if (event === 'status') await watcher.change(data)
  out.note('The stream has ended')
  return STATUS.unreachable
}

interface Watcher {
  /** Writes a job of the list. */
  show(job: FoundJob, at: string): void
  /** Writes a changed job. */
  change(state: JobState): Promise<void>
}

// As many as the stream remembers.
const MAX_KNOWN_JOBS = 20_000

/** A job of the list or of the stream. */
interface KnownJob {
  /** Null for one that was not shown. */
  readonly name: string | null
  readonly line: string
  /** True if the line is of the list, which has no progress. */
  readonly isListed: boolean
}

const buildLine = (job: JobProgress & { readonly status: string }): string =>
  `${job.status} ${formatDetail(job)}`

function createWatcher({ api, io, out }: Input, selection: Selection, newestId: string): Watcher {
  const known = new Map<string, KnownJob>()
  const write = (
    state: Pick<JobState, 'job_id' | 'status' | 'label' | 'error' | 'progress'>,
    name: string,
    at: string | number,
  ) => {
    if (out.isJson) return out.json({ ...state, name })
    const status = out.paint(colourOf(state.status), state.status.padEnd(9))
    const detail = formatDetail(state)
    out.line(`${formatTime(at)}  ${state.job_id}  ${clean(name)}  ${status}  ${detail}`.trimEnd())
  }
  return {
    show: (job, at) => {
      const { job_id, name, status, label, error } = job
      remember(known, job_id, { name, line: buildLine(job), isListed: true }, MAX_KNOWN_JOBS)
      write({ job_id, status, label, ...(error === null ? {} : { error }) }, name, at)
    },
    change: async (state) => {
      const { job_id, status } = state
      const before = known.get(job_id)
      const line = buildLine(state)
      // A stream begins with the jobs of the list, and repeats some when it resumes.
      const isRepeated =
        before?.line === line || (before?.isListed && before.line === buildLine({ ...state, progress: null }))
      // It begins with all unfinished jobs, of which those that have not started are no news.
      const isOld = before === undefined && job_id < newestId && (status === 'queued' || status === 'waiting')
      const isShown = !isRepeated && !isOld && (selection.status === undefined || selection.status === status)
      // A frame has no name.
      const name = before?.name ?? (isShown ? await findName(api, job_id) : null)
      remember(known, job_id, { name, line, isListed: false }, MAX_KNOWN_JOBS)
      if (isShown && name !== null) write(state, name, io.now())
    },
  }
}

/** Returns the name of a job; null if it has expired meanwhile. */
async function findName(api: Api, id: string): Promise<string | null> {
  try {
    return (await api.call<Job>('GET', `/api/v1/jobs/${id}`, { isPatient: true })).name
  } catch (error) {
    if (error instanceof RequestError && error.response.status === 404) return null
    throw error
  }
}
