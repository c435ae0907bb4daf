import type { z } from 'zod'
import { isFinal, pause } from '../../client/connection.ts'
import type { JobDetails, JobEvent as JobEventSchema } from '../../routes/jobs/shapes.ts'
import { defineCommand, type Input } from '../command.ts'
import { STATUS } from '../io.ts'
import { colourOf, formatDetail, formatProgress, withFarewell } from '../jobs.ts'
import { type Colour, clean, formatDuration } from '../output.ts'

type JobEvent = z.output<typeof JobEventSchema>

// Log lines have no stream, and workers store them up to two seconds late.
const INTERVAL_MS = 1000
const LOG_DELAY_MS = 2000
/** Most events and log lines of a job that the service returns: the last events, the first lines. */
export const MAX_EVENTS = 1000
export const MAX_LOG_LINES = 200
const LEVEL_COLOURS: Readonly<Partial<Record<string, Colour>>> = {
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
}

/** A line of the output. `id` recognizes it when the job is read again. */
interface Line {
  readonly id: string
  readonly at: string
  readonly kind: string
  readonly colour: Colour | null
  readonly text: string
  readonly json: object
}

export const logs = defineCommand({
  args: 'JOB',
  about: 'Shows the events of a job and the log lines of its attempts in the order of their times.',
  notes: 'Only admins see log lines of built-in tasks. Owners see those that their own workers report.',
  options: { follow: { about: 'show new lines until the job ends' } },
  example: 'logs 01a20118-fbcc-738c-80ed-00058e0e401d --follow',
  scopes: ['jobs:read'],
  run: async (input) => {
    const { args, values, out } = input
    const id = args[0]!
    const shown: Shown = { isBegun: false, seq: 0, ids: new Set() }
    let details = await readLines(input, id, shown)
    if (values.follow)
      details = await withFarewell(
        input,
        `Stopped following. The job goes on: npx millrace logs ${id} --follow`,
        () => followLines(input, id, shown, details),
      )
    const { log } = details
    if (log === null && !out.isJson) out.note('Log lines of this job are for admins')
    if (log !== null && log.length >= MAX_LOG_LINES)
      out.note(`A job has at most ${MAX_LOG_LINES} log lines. Later ones are not stored.`)
    return STATUS.done
  },
})

/** Writes new lines until the job has ended and its last log lines are stored. */
async function followLines(input: Input, id: string, shown: Shown, first: JobDetails): Promise<JobDetails> {
  const { io } = input
  let details = first
  for (let endedAt: number | null = null; ; ) {
    if (endedAt !== null && io.now() - endedAt > LOG_DELAY_MS) return details
    if (isFinal(details.job.status)) endedAt ??= io.now()
    await pause(INTERVAL_MS, io.signal)
    details = await readLines(input, id, shown)
  }
}

/** The lines that were written. */
interface Shown {
  /** True after the line that describes the job. */
  isBegun: boolean
  /** `seq` of the last event; 0 before the first. */
  seq: number
  readonly ids: Set<string>
}

/** Writes the lines of a job that were not shown. */
async function readLines({ api, out }: Input, id: string, shown: Shown): Promise<JobDetails> {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  const options = { isPatient: shown.isBegun }
  const [details, events] = await Promise.all([
    api.call<JobDetails>('GET', `${path}/details`, options),
    api.call<JobEvent[]>('GET', `${path}/history`, options),
  ])
  if (!shown.isBegun && !out.isJson) out.line(describeJob(details))
  shown.isBegun = true
  const missing = events.length < MAX_EVENTS ? 0 : events[0]!.seq - shown.seq - 1
  if (missing > 0) out.note(`${missing} events are missing: the service returns the last ${MAX_EVENTS}`)
  shown.seq = events.at(-1)?.seq ?? shown.seq
  const lines = [...buildLogLines(details), ...events.map(buildEventLine), ...buildEnd(details)]
  for (const line of lines.sort((a, b) => a.at.localeCompare(b.at))) {
    if (shown.ids.has(line.id)) continue
    shown.ids.add(line.id)
    if (out.isJson) out.json(line.json)
    else out.line(`${line.at}  ${out.paint(line.colour, line.kind.padEnd(9))}  ${line.text}`.trimEnd())
  }
  return details
}

function describeJob({ job, tries, max_tries }: JobDetails): string {
  const ran =
    job.started_at === null || job.finished_at === null
      ? ''
      : ` in ${formatDuration(Date.parse(job.finished_at) - Date.parse(job.started_at))}`
  return clean(`${job.name}: ${job.status}${ran}, try ${tries} of ${max_tries}, added ${job.created_at}`)
}

/** Returns log lines. Their ids are their contents, because a late line is not the last by time. */
function buildLogLines({ log }: JobDetails): Line[] {
  const counts = new Map<string, number>()
  return (log ?? []).map((line) => {
    const content = JSON.stringify(line)
    const count = (counts.get(content) ?? 0) + 1
    counts.set(content, count)
    return {
      id: `log ${count} ${content}`,
      at: line.at,
      kind: line.level,
      colour: LEVEL_COLOURS[line.level] ?? 'gray',
      text: clean([line.message, ...formatFields(line.data)].join('  ')),
      json: { kind: 'log', ...line },
    }
  })
}

const formatFields = (data: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(data).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )

function buildEventLine(event: JobEvent): Line {
  const { seq, kind, at, data } = event
  const fields = { id: `event ${seq}`, at, json: event }
  if (kind !== 'status') return { ...fields, kind, colour: null, text: clean(JSON.stringify(data)) }
  const { status, label, ...progress } = data as {
    status: string
    label: string
    current: number | null
    total: number | null
  }
  return { ...fields, kind: status, colour: colourOf(status), text: formatProgress(label, progress) }
}

/** Returns the line of the error with which a job ended. */
function buildEnd({ job }: JobDetails): Line[] {
  if (job.error === null || job.finished_at === null) return []
  const json = { kind: 'error', at: job.finished_at, data: job.error }
  return [{ id: 'error', at: job.finished_at, kind: 'error', colour: 'red', text: formatDetail(job), json }]
}
